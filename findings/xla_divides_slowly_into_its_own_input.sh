#!/usr/bin/env bash
# tensorflow 2.20.0: a compiled loop that divides, and assigns the result to the variable that it reads,
# takes about five times the CPU time of the same loop with a result of its own.
#
# With jit_compile=True on a processor, XLA writes the new value over the old one, which saves an array.
# Then the loop has one array as input and output, and its roots and quotients are computed one number at
# a time; with another output they are vectorised. An Adam update is such a loop: x - m / (sqrt(v) + eps).
# Additions and products alone don't show it. The numbers are equal to the last bit. tensorflow 2.21.0 computes
# both forms equally fast; packages that are built against 2.20, such as tensorflow-text 2.20, can't take it.
#
# Return the change from the compiled function and call assign_sub outside of it: that has the speed of the
# fast form and needs one array more. Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check tensorflow-cpu==2.20.0
TF_CPP_MIN_LOG_LEVEL=3 "$folder/venv/bin/python" - <<'PYTHON'
import time

import numpy as np
import tensorflow as tf

tf.config.threading.set_intra_op_parallelism_threads(1)
print("tensorflow", tf.__version__)
ROUNDS = 7
numbers = tf.random.stateless_uniform([10_000_000], seed=[1, 2])


def new_value(old, x, divides):
    return old - (x / (tf.sqrt(x) + 1e-6) if divides else x * (x + 1e-6))


def run(divides, assigns):
    """The result of `ROUNDS` updates, and the median CPU milliseconds of one."""
    variable, seconds = tf.Variable(tf.zeros_like(numbers)), []

    @tf.function(jit_compile=True, autograph=False)
    def update(x):
        new = new_value(variable, x, divides)
        if assigns:
            variable.assign(new)
        return None if assigns else new

    for turn in range(ROUNDS + 1):      # the first one compiles
        begin = time.process_time()
        result = update(numbers)
        seconds.append(time.process_time() - begin)
        if not assigns:
            variable.assign(result)
    return variable.numpy(), 1000 * sorted(seconds[1:])[ROUNDS // 2]


ratios = {}
for divides in (True, False):
    (over, slow), (apart, fast) = run(divides, True), run(divides, False)
    assert np.array_equal(over, apart)
    ratios[divides] = slow / fast
    print(f"{'divides' if divides else 'multiplies':<10}  over its input {slow:.1f} ms, "
          f"a result of its own {fast:.1f} ms: {slow / fast:.1f} times")
assert ratios[True] > 2 and ratios[True] > 1.5 * ratios[False], ratios
PYTHON
echo "as seen"
