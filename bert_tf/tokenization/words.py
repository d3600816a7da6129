"""From text to words: cleaned, lower-cased, cut at punctuation (the original's BasicTokenizer)."""

import unicodedata

from bert_tf.tokenization import characters


def split_chunks(text):
    """The parts of `text` between spaces, not yet cleaned (list of str).

    `str.split()`, but not at the controls that cleaning deletes and so joins what is around them.
    """
    for char in characters.DELETED_SPACES:
        text = text.replace(char, "")
    return text.split()


def split_words(text, lower):
    """The words of `text` (list of str), each a run of letters or one symbol.

    Args:
        text: str.
        lower: whether to lower-case and drop accents.
    """
    table = characters.SPLIT_LOWER if lower else characters.SPLIT_CASED
    if text.isascii() and text.isprintable():
        if lower:
            text = text.lower()
        return [text] if text.isalnum() else text.translate(table).split()
    parts = text.translate(characters.CLEAN).split()
    if lower:
        # Part by part, because a final sigma depends on what stands around it.
        parts = [unicodedata.normalize("NFD", part.lower()) for part in parts]
    return " ".join(parts).translate(table).split()
