"""From normalised words back to the characters of the text (google-research/bert run_squad.py)."""

from bert_tf.tokenization.words import split_words


def project(text, original, lower):
    """The part of `original` that is `text` before it was normalised (get_final_text).

    Args:
        text: words of WordPiece joined by spaces, lower-cased where the vocabulary is.
        original: the words of the paragraph that hold it, joined by spaces.
        lower: whether the tokenizer lower-cases.

    Returns:
        str; all of `original` where characters can't be matched one to one.
    """
    normal = " ".join(split_words(original, lower))
    start = normal.find(text)
    kept = [place for place, char in enumerate(original) if char != " "]
    if not text or start < 0 or len(kept) != len(normal) - normal.count(" "):
        return original
    first = start - normal.count(" ", 0, start)
    last = first + len(text) - text.count(" ") - 1
    return original[kept[first]:kept[last] + 1]
