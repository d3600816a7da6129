"""Counts of text and instances, and the report that warns of what spoils pre-training."""

import collections
import zlib

import numpy as np

from bert_tf.data import masking

_LENGTH_BINS = 8
_LINE_SAMPLE = 64       # one line in so many is compared across pieces


def count_text(lines, documents, unk_id):
    """Counts of one piece of text.

    Args:
        lines: list of str.
        documents: the `Documents` made of them.
        unk_id: id of [UNK].

    Returns:
        counts: dict of ints, to be summed over pieces.
        sample: hashes of a sixty-fourth of the lines, to find lines repeated in several pieces.
    """
    lines = [line for line in map(str.strip, lines) if line]
    lengths = np.array([end - first for first, end in documents.ranges])
    encoded = (line.encode("utf-8") for line in lines)
    counts = {
        "documents": len(documents.ranges),
        "one_sentence_documents": int((lengths == 1).sum()),
        "sentences": len(documents.sentence_starts) - 1,
        "tokens": len(documents.tokens),
        "unknown_tokens": int((documents.tokens == unk_id).sum()),
        "lines": len(lines),
        "repeated_lines_within_pieces": len(lines) - len(set(lines)),
    }
    return counts, [h << 32 | zlib.adler32(line) for line in encoded
                    if (h := zlib.crc32(line)) % _LINE_SAMPLE == 0]


def count_instances(instances, max_seq_length, layout):
    """Counts of the `Instances` of one piece, packed by a `Layout`: dict of ints and a histogram of
    their lengths."""
    used = np.arange(instances.positions.shape[1]) < instances.counts[:, None]
    replacements = instances.replacements[used]
    lengths = layout.length(instances.pairs[:, 1], instances.pairs[:, 3])
    bins = np.minimum(lengths * _LENGTH_BINS // (max_seq_length + 1), _LENGTH_BINS - 1)
    return {
        "instances": len(instances.pairs),
        "random_next": int(instances.pairs[:, 4].sum()),
        "positions": int(lengths.sum()),
        "full_length": int((lengths == max_seq_length).sum()),
        "predictions": int(instances.counts.sum()),
        "masked": int((replacements == masking.MASK).sum()),
        "kept": int((replacements == masking.KEEP).sum()),
        "replaced": int((replacements >= 0).sum()),
        "length_histogram": np.bincount(bins, minlength=_LENGTH_BINS).tolist(),
    }


def merge(results):
    """Sums the counts of all pieces and derives their shares.

    Args:
        results: list of {"counts": dict, "line_sample": list}, one a piece.

    Returns:
        (counts, rates): the share of repeated lines is exact for one piece. For more it is that
        within pieces, which finds the few lines that come again and again, or that of the sample,
        which finds documents that stand in several pieces, whichever is larger.
    """
    counts = collections.Counter()
    histogram = np.zeros(_LENGTH_BINS, int)
    for result in results:
        counts.update({k: v for k, v in result["counts"].items() if k != "length_histogram"})
        histogram += result["counts"]["length_histogram"]

    def share(part, whole):
        return counts[part] / max(counts[whole], 1)

    sample = [h for result in results for h in result["line_sample"]]
    rates = {
        "unknown_tokens": share("unknown_tokens", "tokens"),
        "repeated_lines": max(share("repeated_lines_within_pieces", "lines"),
                              0 if len(results) == 1 or not sample
                              else 1 - len(set(sample)) / len(sample)),
        "one_sentence_documents": share("one_sentence_documents", "documents"),
        "random_next": share("random_next", "instances"),
        "full_length": share("full_length", "instances"),
        "predicted_positions": share("predictions", "positions"),
        "masked": share("masked", "predictions"),
        "kept": share("kept", "predictions"),
        "replaced": share("replaced", "predictions"),
    }
    return {**counts, "length_histogram": histogram.tolist()}, rates


def report(record):
    """The text of the report on a manifest: figures, then warnings."""
    counts, rates, options = record["counts"], record["rates"], record["options"]
    lines = [
        f"{counts['documents']:,} documents, {counts['sentences']:,} sentences, "
        f"{counts['tokens']:,} tokens, {rates['unknown_tokens']:.2%} [UNK], "
        f"{rates['repeated_lines']:.1%} repeated lines",
        f"{counts['instances']:,} instances of up to {options['max_seq_length']} tokens "
        f"({rates['full_length']:.0%} of that length), "
        f"{rates['random_next']:.1%} with a random next sentence",
        f"{counts['predictions']:,} predictions, {rates['predicted_positions']:.1%} of the tokens: "
        f"{rates['masked']:.1%} [MASK], {rates['kept']:.1%} kept, {rates['replaced']:.1%} replaced",
    ]
    warnings = [
        (rates["unknown_tokens"] > 0.01,
         "much of the text is [UNK]: the vocabulary or --do_lower_case does not fit it."),
        (rates["repeated_lines"] > 0.1,
         "many lines are repeated: the model will learn them by heart; remove them first."),
        (rates["one_sentence_documents"] > 0.1,
         "many documents have one sentence: their next sentence is always a random one. Is there "
         "a blank line after every line?"),
        (counts["documents"] < 2,
         "there is one document only: random next sentences come from it too, so next sentence "
         "prediction can't be learned. Put blank lines between documents."),
        (rates["random_next"] > 0.65,
         "most next sentences are random: documents or sentences are short or long for "
         "--max_seq_length; a model can guess the label from the base rate."),
    ]
    warnings = [text for wrong, text in warnings if wrong] + record["notes"]
    return "\n".join(lines + [f"warning: {text}" for text in warnings])
