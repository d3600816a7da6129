#!/usr/bin/env bash
# gradient-accumulator 0.5.2 with TensorFlow 2.12.1: GradientAccumulateOptimizer moves a row of an embedding as many
# times too far as it stands in the batch, and again at each micro-batch before the accumulation is complete.
#
# The package lets TensorFlow 2 sum the gradients of several micro-batches before a step: by a model,
# GradientAccumulateModel, or by an optimizer around another one. The gradient of an embedding comes as rows with
# their numbers. The wrapper overrides the method that gets rows which may repeat (_resource_apply_sparse_duplicate_
# indices), by which Keras would have summed the repeated ones first. It adds all rows to the accumulated gradient, as
# it should, and hands the optimizer the accumulated row once for each time that it stands in the batch. So a token
# that occurs n times gets n times its gradient, even with accum_steps=1: [CLS] of 32 texts gets 32 times its gradient.
# And the rows are handed over in each micro-batch, not in the last alone, for it is "accum_gradient" that is passed and
# not "grad", which is 0 until then. A row that is in all of k micro-batches moves (k + 1) / 2 times too far on top,
# with accum_steps=16 8.5 times. Special tokens, frequent words, positions and segments are such rows, while a word
# that occurs once is right, so that a loss still falls. All other weights are right for the gradients that they get.
# The README speaks of a theoretically "infinitely large batch size" and of no limit for embeddings. The repository's
# test for embeddings trains, and the line that would compare the results is commented out. No warning comes.
#
# Use GradientAccumulateModel, which equals one step with the whole batch. Seen in December 2026 with Python 3.11. The
# script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
pip() { "$folder/venv/bin/pip" install --quiet --disable-pip-version-check "$@"; }
pip tensorflow-cpu==2.12.1 keras==2.12.0 numpy==1.23.2 protobuf==4.25.9
pip --no-deps gradient-accumulator==0.5.2
TF_CPP_MIN_LOG_LEVEL=3 "$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
from importlib.metadata import version

import numpy as np
import tensorflow as tf
from gradient_accumulator import GradientAccumulateModel, GradientAccumulateOptimizer

print("gradient-accumulator", version("gradient-accumulator"), "tensorflow", tf.__version__)
SGD = tf.keras.optimizers.legacy.SGD


def way(micro_batches, wrap=True):
    """How far SGD with rate 1 moves three rows whose gradient is 1 each time that they occur."""
    table = tf.Variable(tf.zeros((3, 1)))
    optimizer = GradientAccumulateOptimizer(SGD(1.0), accum_steps=len(micro_batches)) if wrap else SGD(1.0)
    for ids in micro_batches:
        optimizer.apply_gradients([(tf.IndexedSlices(tf.ones((len(ids), 1)), tf.constant(ids), (3, 1)), table)])
    return -table.numpy()[:, 0]


for micro_batches, seen in (
    ([[0, 0, 0, 1]], [9, 1, 0]),
    ([[0], [0], [0], [0]], [2.5, 0, 0]),
    ([[0, 1], [0], [0], [0, 2]], [2.5, 0.25, 0.25]),
    ([[0, 0, 0, 1]] * 4, [22.5, 2.5, 0]),
    ([[0]] * 16, [8.5, 0, 0]),
):
    want = [sum(ids.count(row) for ids in micro_batches) / len(micro_batches) for row in range(3)]
    got = way(micro_batches)
    print(f"micro-batches {micro_batches}: the rows move {got}, the mean gradient is {want}")
    assert np.allclose(got, seen)
assert np.allclose(way([[0, 0, 0, 1]], wrap=False), [3, 1, 0])        # SGD itself sums the repeated rows first

# A classifier of texts that begin with the same token: one step with 32 texts, or four micro-batches of 8.
rng = np.random.default_rng(0)
texts = np.concatenate([np.zeros((32, 1), int), rng.integers(1, 1000, (32, 15))], axis=1)
labels = np.ones((32, 1), "float32")


def steps(kind):
    tf.keras.utils.set_random_seed(0)
    tokens = tf.keras.Input((16,), dtype="int32")
    embedded = tf.keras.layers.Embedding(1000, 8, name="words")(tokens)
    embedded += tf.keras.layers.Embedding(16, 8, name="places")(tf.zeros_like(tokens) + tf.range(16))
    output = tf.keras.layers.Dense(1, activation="sigmoid")(tf.keras.layers.GlobalAveragePooling1D()(embedded))
    model = tf.keras.Model(tokens, output)
    if kind == "model":
        model = GradientAccumulateModel(accum_steps=4, inputs=tokens, outputs=output)
    model.compile(GradientAccumulateOptimizer(SGD(0.1), accum_steps=4) if kind == "optimizer" else SGD(0.1), "bce")
    before = [model.get_layer(name).get_weights()[0] for name in ("words", "places")]
    model.fit(texts, labels, batch_size=32 if kind == "whole" else 8, shuffle=False, verbose=0)
    words, places = [model.get_layer(name).get_weights()[0] - old for name, old in zip(("words", "places"), before)]
    once = np.flatnonzero(np.bincount(texts.ravel(), minlength=1000) == 1)
    return np.linalg.norm(words[0]), np.linalg.norm(places), np.linalg.norm(words[once])


whole = steps("whole")
for kind, least, most in (("model", 0.999, 1.001), ("optimizer", 19, 21)):
    cls, places, once = np.divide(steps(kind), whole)
    print(f"{kind}: [CLS] moves {cls:.2f} times as far as with the whole batch, places {places:.2f}, words that occur"
          f" once {once:.2f}")
    assert least < cls < most and 0.9 < once < 1.1
    assert least < places < most
PYTHON
echo "as seen"
