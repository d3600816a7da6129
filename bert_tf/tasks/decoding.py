"""From what a model answers to predictions, in the form that bert_tf.metrics takes.

Shapes: N examples, L labels, C choices, S sequence; W windows, in which tagged sentences are seen.
"""

import itertools

import numpy as np

_LEAST_PROBABILITY = 0.5    # of a label, where an example may have several


def decode(task, answers, examples, is_word=None):
    """The predictions for all examples.

    Args:
        task: `Task`.
        answers: dict of arrays: `logits` [N, L or C] or, in tagging, [W, S, L]; `probabilities` of
            the same shape; `values` [N, 1] in regression.
        examples: list of N `Example`.
        is_word: in tagging, 0 or 1 [W, S]: `label_weights` of the records.

    Returns:
        Ids of labels or choices, int [N]; numbers, float [N]; 0 or 1 [N, L]; or a list of
        sentences, each a list of tags.
    """
    if task.kind == "regression":
        return answers["values"][:, 0]
    if task.multi_label:
        return (answers["probabilities"] > _LEAST_PROBABILITY).astype(np.int64)
    best = answers["logits"].argmax(-1)
    if task.kind != "tagging":
        return best
    tags = iter(np.array(task.labels, object)[best[is_word.astype(bool)]].tolist())
    return [list(itertools.islice(tags, len(example.texts))) for example in examples]


def targets(task, examples):
    """The right answers of examples in the same form.

    Args:
        task: `Task`.
        examples: list of `Example`.
    """
    if task.kind == "tagging":
        return [[task.labels[tag] for tag in example.label] for example in examples]
    return np.array([example.label for example in examples])


def is_degenerate(task, predictions, labels):
    """Whether all examples are given one answer, though not all have the same label."""
    if task.kind in ("tagging", "multiple_choice"):
        return False
    return len(np.unique(predictions, axis=0)) == 1 < len(np.unique(labels, axis=0))
