#!/usr/bin/env bash
# Keras 3.15.1 on TensorFlow: Adam moves the embedding of a token that occurs n times in a batch up to the root of n
# times too far.
#
# TensorFlow gives the gradient of an Embedding as a list of rows, a row for each place in the batch, so a token
# that occurs often has many rows, to be added. Adam divides the mean of gradients by the root of the mean of
# their squares. Keras 3 squares each row by itself and adds the squares, so the divisor is too small: the first
# step of Adam(0.1) is 0.1, as it should be, for a token that occurs once, 0.4 for 16 times and 1 for 100. AdamW,
# Nadam, RMSprop, Adagrad and Adadelta do this too. clipnorm and global_clipnorm measure the rows before they are
# added and find too small a length, and clipvalue clips each row. Plain SGD is right, as is all of it with
# one-hot vectors times a matrix, the same model in other words. Common words, [CLS] and [SEP], which are in every
# text, are trained with many times the rate, and it grows with the batch size. No warning comes.
#
# Add the rows first: override apply of the optimizer, as SummedAdam below. Seen in November 2026 with Python 3.11.
# The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check tensorflow-cpu==2.21.0 keras==3.15.1
TF_CPP_MIN_LOG_LEVEL=3 KERAS_BACKEND=tensorflow "$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' \
    || { cat "$folder/log"; exit 1; }
import keras
import numpy as np
import tensorflow as tf

print("keras", keras.__version__, "tensorflow", tf.__version__)


class SummedAdam(keras.optimizers.Adam):
    def apply(self, grads, trainable_variables=None):
        return super().apply([tf.convert_to_tensor(gradient) for gradient in grads], trainable_variables)


def step(optimizer, count, one_hot=False, compiled=False):
    """How far one step of fit moves token 1, which occurs `count` times in the batch, against a gradient of 1 each."""
    ids = keras.Input((None,), dtype="int32")
    if one_hot:
        outputs = keras.layers.Dense(2, use_bias=False, kernel_initializer="ones")(keras.ops.one_hot(ids, 4))
    else:
        outputs = keras.layers.Embedding(4, 2, embeddings_initializer="ones")(ids)
    model = keras.Model(ids, outputs)
    model.compile(optimizer, loss=lambda _, outputs: keras.ops.sum(outputs), jit_compile=compiled)
    model.fit(np.ones((1, count), "int32"), np.zeros((1, 1)), verbose=0)
    return float(1 - model.get_weights()[0][1, 0])


for count in (1, 16, 100):
    steps = [step(keras.optimizers.Adam(0.1), count), step(keras.optimizers.Adam(0.1), count, compiled=True),
             step(keras.optimizers.Adam(0.1), count, one_hot=True), step(SummedAdam(0.1), count)]
    print(count, "times: Adam, compiled, with one-hot vectors, SummedAdam:", [round(length, 4) for length in steps])
    assert np.allclose(steps, [0.1 * count ** 0.5] * 2 + [0.1] * 2, atol=1e-3), "other steps than seen"

OTHERS = {"AdamW": 4, "Nadam": 4, "RMSprop": 4, "Adagrad": 4, "Adadelta": 4, "SGD": 1, "Lion": 1}
for name, ratio in OTHERS.items():
    steps = [step(getattr(keras.optimizers, name)(0.1), 16, one_hot=one_hot) for one_hot in (False, True)]
    print(f"16 times, {name}: {steps[0]:.6f}, with one-hot vectors {steps[1]:.6f}")
    assert abs(steps[0] / steps[1] - ratio) < 0.2, f"not {ratio} times as far"
for clip in ({"clipnorm": 1.0}, {"global_clipnorm": 1.0}, {"clipvalue": 1.0}):
    steps = [step(keras.optimizers.SGD(0.1, **clip), 16, one_hot=one_hot) for one_hot in (False, True)]
    print(f"16 times, SGD with {clip}: {steps[0]:.4f}, with one-hot vectors {steps[1]:.4f}")
    assert steps[0] > 3.5 * steps[1], "clipping is right now"
PYTHON
echo "as seen"
