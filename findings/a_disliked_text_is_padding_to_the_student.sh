#!/usr/bin/env bash
# tensorflow-ranking 0.5.5 with TensorFlow 2.15.1: CoupledRankDistilLoss takes each text with a teacher's score below 0
# for padding, so that a student learns nothing of it, and nothing at all where the sum of the scores is not above 0.
#
# CoupledRankDistilLoss distils a ranker (RankDistil, Reddi and others, 2021): it is the cross-entropy between the
# orders that the teacher's scores make likely (Plackett-Luce) and those of the student's. Such a probability is a
# softmax over scores, so that a number added to all scores changes nothing. A cross-encoder's scores are logits, and
# mostly below 0. But the library marks padding by labels below 0, for grades of relevance, and the loss does so with
# the teacher's scores. So texts that the teacher scores below 0 get no gradient; and a list whose valid scores sum to
# 0 or less is dropped as one without a relevant text: for a list with negative scores alone the loss is 0. With the
# same scores plus 5 the gradients are those of the formula, computed here over all 24 orders of four texts. The value
# is no warning: it falls as always, for the texts with a score above 0. The docstrings have the formula, call the
# labels the scores of a teacher, and say nothing of 0. ragged=True, where padding needs no mark, mends nothing of lists
# whose sum is 0 or less. No warning comes.
#
# Pass scores - minimum + 1 for each list: none is below 0. Seen in December 2026 with Python 3.11. The script fails if
# this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
pip() { "$folder/venv/bin/pip" install --quiet --disable-pip-version-check "$@"; }
pip tensorflow-cpu==2.15.1 keras==2.15.0 numpy==1.26.4 six==1.17.0
pip --no-deps tensorflow-ranking==0.5.5
TF_CPP_MIN_LOG_LEVEL=3 "$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
from importlib.metadata import version
from itertools import permutations

import numpy as np
import tensorflow as tf
import tensorflow_ranking as tfr

print("tensorflow-ranking", version("tensorflow-ranking"), "tensorflow", tf.__version__)
student = np.array([0.3, 1.0, -0.5, 0.2], np.float32)


def log_probability(scores, order):
    sorted_scores = tf.gather(scores, order)
    return sum(sorted_scores[i] - tf.reduce_logsumexp(sorted_scores[i:]) for i in range(len(order)))


def by_formula(teacher):
    """The loss and its gradient over all orders."""
    scores = tf.Variable(student)
    with tf.GradientTape() as tape:
        loss = -sum(tf.exp(log_probability(tf.constant(teacher), order)) * log_probability(scores, order)
                    for order in permutations(range(4)))
    return float(loss), tf.convert_to_tensor(tape.gradient(loss, scores)).numpy()


def by_library(teacher, ragged=False):
    loss = tfr.keras.losses.CoupledRankDistilLoss(sample_size=5000, ragged=ragged)
    labels, scores = tf.constant(teacher[None]), tf.Variable(student[None])
    tf.random.set_seed(0)
    with tf.GradientTape() as tape:
        pair = [tf.RaggedTensor.from_tensor(x) for x in (labels, scores)] if ragged else (labels, scores)
        value = loss(*pair)
    return float(value), tape.gradient(value, scores).numpy()[0]


for teacher in ([2.0, -0.5, -2.0, 1.0], [-1.0, -3.0, -6.0, -2.0], [3.0, 1.0, 0.5, 2.0]):
    teacher = np.array(teacher, np.float32)
    (right, want), (value, got) = by_formula(teacher), by_library(teacher)
    (shifted_value, shifted), (ragged_value, ragged) = by_library(teacher + 5), by_library(teacher, ragged=True)
    mended = by_library(teacher - teacher.min() + 1)[1]
    below = teacher < 0
    print(f"teacher {teacher}: loss {value:.2f} with gradient {got.round(2)}; plus 5 {shifted_value:.2f}"
          f" {shifted.round(2)}, ragged {ragged_value:.2f} {ragged.round(2)}, by formula {right:.2f} {want.round(2)}")
    assert np.allclose(mended, want, atol=0.06) and (np.abs(want[below]) > 0.2).all()
    if teacher.min() > -5:
        assert np.allclose(shifted, want, atol=0.06) and abs(shifted_value - right) < 0.1
    assert np.all(got[below] == 0)
    if teacher.sum() <= 0:
        assert value == 0 and not got.any() and ragged_value == 0 and not ragged.any()
    elif not below.any():
        assert np.allclose(got, want, atol=0.06) and abs(value - right) < 0.1
    else:
        assert np.allclose(ragged, want, atol=0.06) and got[~below].any()
PYTHON
echo "as seen"
