#!/usr/bin/env bash
# Keras 3.15.1 with TensorFlow 2.20.0: under MirroredStrategy, fit stops on a first batch that the
# replicas cannot share evenly, while a later batch of that kind works.
#
# Before the first step fit builds what is not built yet (the metrics, for example) from one batch,
# and for that adds up the parts of the replicas as if they had the same shape. Five rows on two
# replicas are 3 and 2, so TensorFlow reports an AddN of unequal shapes, which names neither fit nor
# the batch. It meets whoever tries a new script on a handful of rows, or has a batch size that the
# number of GPUs does not divide, and not whoever has an uneven last batch.
#
# A batch size that the replicas divide helps, with at least one full batch of data. Two logical CPUs
# are the replicas here. Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check keras==3.15.1 tensorflow==2.20.0
TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES='' KERAS_BACKEND=tensorflow \
    "$folder/venv/bin/python" - 2>/dev/null <<'PYTHON'
import keras
import numpy as np
import tensorflow as tf

print("keras", keras.__version__, "tensorflow", tf.__version__)
processor = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(processor, [tf.config.LogicalDeviceConfiguration()] * 2)


def steps(rows, batch_size):
    """The steps that fit takes on so many rows, or the start of its error."""
    with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
        model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1)])
        model.compile(optimizer="adam", loss="mse")
    features, targets = np.ones((rows, 3), "float32"), np.ones((rows, 1), "float32")
    try:
        model.fit(features, targets, batch_size=batch_size, verbose=0)
    except tf.errors.InvalidArgumentError as error:
        return "AddN" if "AddN" in str(error) else str(error)
    return int(model.optimizer.iterations.numpy())


for rows, batch_size, seen in [(8, 8, 1), (13, 8, 2), (5, 4, 2), (5, 5, "AddN"), (5, 8, "AddN"), (9, 3, "AddN")]:
    result = steps(rows, batch_size)
    print(f"{rows} rows in batches of {batch_size}:", result if result == "AddN" else f"{result} steps")
    assert result == seen, f"not {seen}"
PYTHON
echo "as seen"
