#!/usr/bin/env bash
# Keras 3.15.1: after model.quantize, the table of an Embedding and the kernel of a Dense layer are whole numbers
# without their scales, so a model that reads them, as one with tied weights, computes nonsense.
#
# A masked language model mostly scores tokens with the table of its embeddings: matmul(vectors,
# transpose(words.embeddings)). embeddings is a public property, and it takes care to unpack the weights of int4 and to
# add those of LoRA. In int8 and int4 it gives integers, from -127 to 127 or from -8 to 7. Each row has a scale of
# its own, by its largest number, which is left out. The product with floats is valid, so nothing fails. All scores
# are some ten to some hundred times too large, so the model is certain of each token, and the loss goes from 2.2 to
# about 260. Rows of different lengths have become equally long, so other tokens come first. The layer itself
# stays right: the vectors of the words are as before. Dense.kernel leaves the scales out too, for a layer that is
# used backwards or a penalty on the weights. No warning comes. All backends share this code.
#
# Take ReversibleEmbedding, or divide the rows by embeddings_scale[:, None] in int8. Seen in November 2026 with Python
# 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    keras==3.15.1 jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
KERAS_BACKEND=jax "$folder/venv/bin/python" - <<'PYTHON' 2>"$folder/log" || { cat "$folder/log"; exit 1; }
import keras
import numpy as np
from keras import layers, ops

print("keras", keras.__version__)
keras.utils.set_random_seed(0)
VOCABULARY, SIZE = 500, 64
rng = np.random.default_rng(0)
# The vectors of words differ in length, and are heard with noise; the bias makes each the nearest to itself.
WORDS = 0.4 * np.exp(0.4 * rng.standard_normal((VOCABULARY, 1))) * rng.standard_normal((VOCABULARY, SIZE))
TEXTS = rng.integers(0, VOCABULARY, (64, 32))
NOISE = rng.standard_normal((64, 32, SIZE))


class Scores(layers.Layer):
    """The logarithms of the probabilities of all tokens, by the table of `words`, of integers or floats."""

    def __init__(self, words):
        super().__init__()
        self.words, self.scaled = words, False
        self.bias = self.add_weight(shape=(VOCABULARY,), initializer="zeros")

    def call(self, vectors):
        table = self.words.embeddings
        if self.scaled:
            table = table / self.words.embeddings_scale[:, None]
        return ops.log_softmax(ops.matmul(vectors, ops.transpose(table)) + self.bias)


def measured(mode=None, scaled=False):
    """The mean loss of the tokens of TEXTS, the part of them that scores best, and the layer of words."""
    words = layers.Embedding(VOCABULARY, SIZE, name="words")
    ids, noise = keras.Input((None,), dtype="int32"), keras.Input((None, SIZE))
    scores = Scores(words)
    model = keras.Model([ids, noise], scores(words(ids) + noise))
    words.set_weights([WORDS])
    scores.bias.assign(-np.square(WORDS).sum(-1) / 2)
    if mode:
        model.quantize(mode, filters="words")
    scores.scaled = scaled
    found = np.asarray(model([TEXTS, NOISE]))
    loss = -np.take_along_axis(found, TEXTS[..., None], -1).mean()
    return float(loss), float((found.argmax(-1) == TEXTS).mean()), words


loss, right, _ = measured()
print(f"float: loss {loss:.2f}, {right:.1%} of the tokens right")
for mode in ("int8", "int4"):
    bad_loss, bad_right, words = measured(mode)
    moved = np.abs(np.asarray(words(TEXTS)) - WORDS[TEXTS]).mean() / np.abs(WORDS[TEXTS]).mean()
    table = np.asarray(words.embeddings)
    print(f"{mode}: loss {bad_loss:.2f}, {bad_right:.1%} of the tokens right; words.embeddings is {table.dtype} from "
          f"{table.min()} to {table.max()}; the words' own vectors are {moved:.1%} off")
    dense = layers.Dense(8)
    dense.build((None, SIZE))
    dense.quantize(mode)
    assert table.dtype == np.asarray(dense.kernel).dtype == np.int8 and moved < 0.2
    assert bad_right < right - 0.04 and bad_loss > 4 * loss, "otherwise than seen"
scaled_loss, scaled_right, _ = measured("int8", scaled=True)
print(f"int8 and the scales: loss {scaled_loss:.2f}, {scaled_right:.1%} of the tokens right")
assert abs(scaled_loss - loss) < 0.05
PYTHON
echo "as seen"
