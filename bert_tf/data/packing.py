"""[CLS] A [SEP] B [SEP]: many pairs of token runs at once; the original packs one by one."""

import numpy as np


def truncate_pairs(a_length, b_length, max_seq_length):
    """What the original's `_truncate_seq_pair` leaves: it pops from the end of the longer, of B
    where both are equally long (google-research/bert, run_classifier.py).

    Args:
        a_length, b_length: int [B], tokens of each part; B is none where its length is 0.
        max_seq_length: S, with [CLS] and a [SEP] a part.

    Returns:
        The two lengths that fit, int [B].
    """
    room = max_seq_length - 2 - (b_length > 0)
    excess = np.maximum(a_length + b_length - room, 0)
    a_popped = np.minimum(excess, np.maximum(a_length - b_length, 0))
    b_popped = np.minimum(excess, np.maximum(b_length - a_length, 0))
    # Both are equally long now: they are popped in turn, B first.
    rest = np.where(b_length > 0, excess - a_popped - b_popped, 0)
    return a_length - a_popped - rest // 2, b_length - b_popped - (rest + 1) // 2


def pack_pairs(tokens, a_start, a_length, b_start, b_length, max_seq_length, vocabulary):
    """Packs runs of tokens that fit.

    Args:
        tokens: int32 [T].
        a_start, a_length, b_start, b_length: int [B], the runs of A and B in `tokens`; where B's
            length is 0 it is [CLS] A [SEP].
        max_seq_length: S.
        vocabulary: names the ids of [CLS] and [SEP].

    Returns:
        dict of input_ids, int [B, S], input_mask and segment_ids, bool [B, S]; padding is 0.
    """
    a_start, a_length, b_start, b_length = (
        np.asarray(run)[:, None] for run in (a_start, a_length, b_start, b_length))
    column = np.arange(max_seq_length)[None]
    length = a_length + b_length + 2 + (b_length > 0)
    in_a = (column >= 1) & (column <= a_length)
    in_b = (column >= a_length + 2) & (column < length - 1)
    source = np.where(in_a, a_start - 1, b_start - a_length - 2) + column
    input_ids = np.zeros(in_a.shape, np.int32)
    kept = in_a | in_b
    input_ids[kept] = tokens[source[kept]]
    input_ids[:, 0] = vocabulary.cls_id
    np.put_along_axis(input_ids, a_length + 1, vocabulary.sep_id, 1)
    np.put_along_axis(input_ids, length - 1, vocabulary.sep_id, 1)
    return {"input_ids": input_ids, "input_mask": column < length,
            "segment_ids": (column >= a_length + 2) & (column < length)}
