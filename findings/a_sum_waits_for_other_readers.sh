#!/usr/bin/env bash
# tensorflow 2.21.0: tf.add_n of three or more tensors adds them in an order that depends on which other
# operations have read them by then, also with enable_op_determinism().
#
# The kernel looks for an input that nothing else will read, puts that one first and adds the others to it.
# While another operation still has to read the first two inputs, the third one comes first. In float32 the
# sum then has other bits: here 0 in place of 1. Two graphs differ only in whether the other operation runs
# before the sum or after it. In a real graph nobody says which comes first, and threads decide. The gradient
# of a tensor that three operations use is such a sum, as that of the queries in XLNet's attention, which are
# used with three biases. So the same step with the same seeds gives other weights now and then, on a busy
# machine more often, and a run that is killed and resumed does not end as one that was not.
# enable_op_determinism() promises the same outputs for the same inputs; the sum differs with it, too.
#
# Make one tensor of what is used several times, for example by tf.stack, so that its gradient is one tensor;
# or add by +, two at a time. Seen in November 2026 with Python 3.11, on a CPU. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check tensorflow-cpu==2.21.0
cd "$folder"
CUDA_VISIBLE_DEVICES= TF_CPP_MIN_LOG_LEVEL=3 "$folder/venv/bin/python" - <<'PYTHON'
import tensorflow as tf


def add(parts, reads_late, by_add_n=True):
    """The sum, and what another operation reads of the first two parts, before the sum or after it."""
    def total():
        return tf.add_n(parts) if by_add_n else parts[0] + parts[1] + parts[2]

    if reads_late:
        result = total()
        with tf.control_dependencies([result]):
            return result, tf.concat(parts[:2], 0)
    reader = tf.concat(parts[:2], 0)
    with tf.control_dependencies([reader]):
        return total(), reader


@tf.function(autograph=False)
def graph(values, **how):
    # Results of operations: the memory of an argument is never used again.
    return add([value**3 for value in tf.unstack(values)], **how)


print("tensorflow", tf.__version__)
values = tf.constant([[1000.0], [-1000.0], [1.0]])
for is_deterministic in (False, True):
    if is_deterministic:
        tf.config.experimental.enable_op_determinism()
    early, late, plain, also_plain = (
        float(graph(values, reads_late=reads_late, by_add_n=by_add_n)[0][0])
        for by_add_n in (True, False) for reads_late in (False, True))
    print("deterministic operations:", is_deterministic, "| add_n, read before:", early,
          "| add_n, read after:", late, "| +:", plain, also_plain)
    assert (early, late) == (1, 0), "other sums than seen"
    assert plain == also_plain == 1, "+ depends on other readers, too"
print("as seen")
PYTHON
