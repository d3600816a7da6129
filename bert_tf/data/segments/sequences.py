"""The sequences of semi-supervised sequence learning: tokens, and what is predicted at each of them
(tensorflow/models research/adversarial_text, data/data_utils.py).

Shapes: N tokens of a text, the end of the text included; T steps.
"""

from typing import NamedTuple

import numpy as np


class Sequence(NamedTuple):
    """T steps.

    Attributes:
        ids: int [T], the tokens that are read.
        labels: int [T], what is predicted.
        weights: float32 [T], what each prediction counts.
    """

    ids: np.ndarray
    labels: np.ndarray
    weights: np.ndarray


def reverse(ids: np.ndarray) -> np.ndarray:
    """The tokens from right to left; the end of the text stays last."""
    return np.concatenate([ids[:-1][::-1], ids[-1:]])


def language_model(ids: np.ndarray) -> Sequence:
    """Each token predicts the next; the last predicts itself and does not count."""
    weights = np.ones(len(ids), np.float32)
    weights[-1] = 0
    return Sequence(ids, np.append(ids[1:], ids[-1]), weights)


def autoencoder(ids: np.ndarray) -> Sequence:
    """The text is read, then read again and predicted: 2 N - 1 steps, of which the last N count."""
    count = len(ids)
    labels = np.concatenate([np.zeros(count - 1, ids.dtype), ids])
    weights = np.repeat(np.array([0, 1], np.float32), [count - 1, count])
    return Sequence(np.concatenate([ids, ids[:-1]]), labels, weights)


def classification(ids: np.ndarray, label: int, label_gain: bool = False) -> Sequence:
    """The label of a text is predicted at its last token; with a gain at all, with weights that
    rise from 0 to 1."""
    weights = np.zeros(len(ids), np.float32)
    if label_gain:
        weights = np.linspace(0, 1, len(ids), dtype=np.float32)
    weights[-1] = 1
    labels = np.full(len(ids), label if label_gain else 0)
    labels[-1] = label
    return Sequence(ids, labels, weights)


def bidirectional(ids: np.ndarray) -> np.ndarray:
    """int [N, 2]: at each step the token of the text and that of its reverse."""
    return np.stack([ids, reverse(ids)], axis=1)
