#!/usr/bin/env bash
# Keras 3.15.1: for a tagger, sample_weight with a number for each text weighs the places of the tokens if
# the batch has as many texts as a text has tokens, and raises an error otherwise.
#
# fit and evaluate document sample_weight as a flat array, a weight for each sample, and a 2D array as
# the other choice for sequences. The losses of a tagger are [texts, tokens]. Keras multiplies them by the
# flat array as NumPy would, along the last axis. 32 texts of 32 tokens, or 128 of 128, pass: here the text
# with weight 1 is the first, and the loss is that of every text's first token. Texts that are
# to count nothing are trained on. The same array with the shape (texts, 1) is right at all sizes. The
# code is Keras's own, for all backends.
#
# Pass sample_weight[:, None]. Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    keras==3.15.1 jax==0.10.2 jaxlib==0.10.2 ml_dtypes==0.6.0 numpy==2.4.6
JAX_PLATFORMS=cpu KERAS_BACKEND=jax "$folder/venv/bin/python" - <<'PYTHON'
import keras
import numpy as np

print("keras", keras.__version__, "backend", keras.backend.backend())
rng = np.random.default_rng(0)


def evaluate(texts, tokens, shape=(-1,)):
    """The loss of a tagger that returns its input where the first text alone has a weight."""
    weights = np.zeros(texts, "float32")
    weights[0] = 1
    inputs = keras.layers.Input((tokens, 3))
    model = keras.Model(inputs, keras.layers.Activation("linear")(inputs))
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True), run_eagerly=True)
    logits = rng.normal(size=(texts, tokens, 3)).astype("float32")
    tags = rng.integers(0, 3, size=(texts, tokens))
    log_odds = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    losses = -np.take_along_axis(log_odds, tags[..., None], -1)[..., 0]
    try:
        loss = model.evaluate(logits, tags, sample_weight=weights.reshape(shape), batch_size=texts, verbose=0)
    except ValueError as error:
        loss = str(error).partition("\n")[0]
    of_text, of_place = losses[0].sum() / losses.size, losses[:, 0].sum() / losses.size
    print(f"{texts} texts of {tokens} tokens, weights {weights.reshape(shape).shape}: {loss};",
          f"first text {of_text:.6f}, first tokens {of_place:.6f}")
    return loss, of_text, of_place


for size in (4, 32):
    loss, of_text, of_place = evaluate(size, size)
    assert abs(loss - of_place) < 1e-5 < 1e-3 < abs(loss - of_text), "the weights are those of the texts now"
    loss, of_text, of_place = evaluate(size, size, (-1, 1))
    assert abs(loss - of_text) < 1e-5, "a column of weights is wrong too"
assert "broadcasting" in str(evaluate(8, 32)[0]), "other sizes are accepted now"
PYTHON
echo "as seen"
