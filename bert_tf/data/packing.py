"""Sequences of one or two texts, such as [CLS] A [SEP] B [SEP], many at once."""

import numpy as np


def truncate_pairs(a_length, b_length, max_seq_length, layout):
    """What the original's `_truncate_seq_pair` leaves: it pops from the end of the longer, of B
    where both are equally long (google-research/bert, run_classifier.py).

    Args:
        a_length, b_length: int [B], tokens of each part; B is none where its length is 0.
        max_seq_length: S, special tokens included.
        layout: the `Layout` of the vocabulary.

    Returns:
        The two lengths that fit, int [B].
    """
    room = layout.room(max_seq_length, b_length > 0)
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
            length is 0 there is A only.
        max_seq_length: S.
        vocabulary: has `layout`, `cls_id` and `sep_id`.

    Returns:
        dict of input_ids, int32 [B, S], input_mask and segment_ids, bool [B, S]; padding is 0.
        Where the class token is the last, segment_ids is uint8 and the class token's segment 2
        (XLNet, arXiv:1906.08237).
    """
    a_start, a_length, b_start, b_length = (
        np.asarray(run)[:, None] for run in (a_start, a_length, b_start, b_length))
    layout = vocabulary.layout
    length, b_offset = layout.length(a_length, b_length), layout.b_offset(a_length)
    column = np.arange(max_seq_length)[None]
    in_a = (column >= layout.before) & (column < layout.before + a_length)
    in_b = (column >= b_offset) & (column < b_offset + b_length)
    source = np.where(in_a, a_start - layout.before, b_start - b_offset) + column
    input_mask = column < length
    input_ids = np.where(input_mask, np.int32(vocabulary.sep_id), np.int32(0))
    segment_ids = (column >= b_offset) & input_mask & (b_length > 0)
    if layout.cls_last:
        is_cls = column == length - 1
        input_ids[is_cls] = vocabulary.cls_id
        segment_ids = np.where(is_cls, np.uint8(2), segment_ids.astype(np.uint8))
    elif layout.before:
        input_ids[:, :layout.before] = vocabulary.cls_id
    kept = in_a | in_b
    input_ids[kept] = tokens[source[kept]]
    return {"input_ids": input_ids, "input_mask": input_mask, "segment_ids": segment_ids}
