"""What the values of records must be, whatever job wrote them."""

import numpy as np


def label_count(task):
    """What the labels of a task, as a manifest describes it, must be below; None for numbers."""
    if task["kind"] == "regression":
        return None
    if task["multi_label"]:
        return 2
    return task["num_choices"] if task["kind"] == "multiple_choice" else len(task["labels"])


def find_problems(f, sizes, vocab_size=0, num_labels=None):
    """The records whose values can't be.

    Args:
        f: dict of feature -> array [B, length].
        sizes: has max_seq_length, S.
        vocab_size: what ids must be below; 0 if not known.
        num_labels: what label_ids must be below, if they are ids.

    Returns:
        dict of a sentence -> bool [B].
    """
    limit = vocab_size or np.iinfo(np.int64).max
    rows, size = len(f["input_mask"]), sizes["max_seq_length"]
    mask = f["input_mask"].reshape(rows, -1, size)      # several sequences in a multiple choice
    length = mask.sum(2, keepdims=True)
    problems = {
        "an input id is outside the vocabulary.": _outside(f["input_ids"], limit),
        "input_mask is not ones, then zeros.": (mask != (np.arange(size) < length)).any((1, 2)),
        "segment_ids are not 0 or 1.": _outside(f["segment_ids"], 2),
    }
    if "masked_lm_positions" in f:
        problems.update(_pretraining(f, length[:, 0], limit))
    if num_labels:
        problems[f"a label is not below {num_labels}."] = _outside(f["label_ids"], num_labels)
    if "label_weights" in f:
        problems["label_weights are not 0 or 1."] = _outside(f["label_weights"], 2)
        problems["a label lies in the padding."] = (
            (f["label_weights"] > 0) & (f["input_mask"] == 0)).any(1)
    for name in ("start_positions", "end_positions"):
        if name in f:
            problems[f"{name} lies in the padding."] = (f[name] < 0).any(1) | (
                f[name] >= length[:, 0]).any(1)
    return problems


def _outside(values, end):
    return ((values < 0) | (values >= end)).any(1)


def _pretraining(f, length, limit):
    """Those of masked LM and next sentence; `length` [B, 1] counts the tokens."""
    positions, used = f["masked_lm_positions"], f["masked_lm_weights"] > 0
    return {
        "a label is outside the vocabulary.": _outside(f["masked_lm_ids"], limit),
        "next_sentence_labels is not 0 or 1.": _outside(f["next_sentence_labels"], 2),
        "a masked position is [CLS] or lies in the padding.":
            (used & ((positions < 1) | (positions >= length - 1))).any(1),
        "masked positions are not in order.":
            (used[:, 1:] & (np.diff(positions, axis=1) <= 0)).any(1),
        "masked_lm_weights are not ones, then zeros.":
            (f["masked_lm_weights"] != (np.arange(used.shape[1]) < used.sum(1)[:, None])).any(1),
        "nothing is masked.": ~used.any(1),
    }
