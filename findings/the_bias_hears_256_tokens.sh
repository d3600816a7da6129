#!/usr/bin/env bash
# tensorflow 2.21.0 on a processor: the gradient of bias_add in bfloat16 stops growing at 256 equal rows.
#
# The gradient of a bias is the sum over all tokens of the batch. For bfloat16 BiasAddGrad adds them one by
# one in bfloat16, which has 8 bits, so from 256 times the size of a summand on nothing is added. With
# jit_compile=True it is the same. The sum of the same tensor by reduce_sum is right, as are bias_add in
# float16 and float32 here, and the form x + bias. Keras's Dense adds its bias by bias_add, so it concerns
# each layer under the policy "mixed_bfloat16". The head of a tagger whose tokens are nearly all "O" shows
# it most, as their gradients have one sign: of a batch of 4,096 tokens its bias gets a twelfth of its
# gradient, while the kernel's is right.
#
# Write x + bias, or add the bias in float32. Seen in November 2026 with Python 3.11. The
# script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check tensorflow-cpu==2.21.0 keras==3.15.1
TF_CPP_MIN_LOG_LEVEL=3 KERAS_BACKEND=tensorflow "$folder/venv/bin/python" - <<'PYTHON' 2>/dev/null
import keras
import tensorflow as tf

print("tensorflow", tf.__version__, "keras", keras.__version__)


def bias_gradient(rows, dtype, add=tf.nn.bias_add, compiled=False):
    """The gradient of a bias that is added to so many rows, each with the gradient 1."""
    @tf.function(jit_compile=compiled)
    def gradient(x, bias):
        with tf.GradientTape() as tape:
            tape.watch(bias)
            y = add(x, bias)
        return tape.gradient(y, bias, output_gradients=tf.ones_like(y))
    return float(gradient(tf.zeros((rows, 4), dtype), tf.zeros(4, dtype))[0])


for rows in (128, 256, 512, 4096):
    wrong = [bias_gradient(rows, "bfloat16", compiled=compiled) for compiled in (False, True)]
    results = {"float16": bias_gradient(rows, "float16"),
               "bfloat16, x + bias": bias_gradient(rows, "bfloat16", tf.add),
               "reduce_sum": float(tf.reduce_sum(tf.ones((rows, 4), "bfloat16"), 0)[0])}
    print(rows, "rows: bfloat16, and compiled:", wrong, results)
    assert wrong == [min(rows, 256)] * 2, "the gradient is another one"
    assert set(results.values()) == {rows}, "another form is wrong"


def head(policy):
    """The gradients of a tagger's head over 32 texts of 128 tokens, all with the first of 4 tags."""
    layer = keras.layers.Dense(4, kernel_initializer="zeros", dtype=policy)
    with tf.GradientTape() as tape:
        logits = tf.cast(layer(tf.ones((32, 128, 8))), "float32")
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=tf.zeros((32, 128), "int32"), logits=logits))
    kernel, bias = tape.gradient(loss, layer.trainable_variables)
    print(f"{policy:<14} bias {[round(float(x), 4) for x in bias]} kernel[0] {[round(float(x), 4) for x in kernel[0]]}")
    return float(bias[0]), float(kernel[0, 0])


assert head("float32") == (-0.75, -0.75)
bias, kernel = head("mixed_bfloat16")
assert abs(kernel + 0.75) < 0.01 and abs(bias + 0.75 / 12) < 0.001, "another gradient than seen"
PYTHON
echo "as seen"
