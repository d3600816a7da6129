#!/usr/bin/env bash
# Keras 3.15.1: BackupAndRestore(save_freq=n) stores at which batch it saved and never reads it, so each restart begins
# the epoch anew with weights and optimizer of the middle.
#
# With a number of batches as save_freq, the callback is for epochs that are longer than a job may run. It
# writes the weights, the optimizer's state and a file with the epoch and the batch. A restart loads the weights and
# the epoch, and fit begins this epoch at its first batch. A job of one epoch of 1,000 batches that is ended at batch
# 700 four times, and saves every 100, reads the first 700 batches five times. If it is ended again and again before
# the end of the epoch, it never reads the rest. The optimizer counts all batches: the learning rate, which is to reach
# 0 at batch 1,000, is 0 for the rest of the epoch, which is read last, so that it leaves no trace in the weights.
# fit reports one epoch, and nothing is said. The page promises the weights and the epoch number; what the stored batch
# is for it does not say.
#
# Read the batch from training_metadata.json before fit, and give fit a data set that begins behind it. Seen in November
# 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    keras==3.15.1 jax==0.10.2 jaxlib==0.10.2 ml_dtypes==0.6.0 numpy==2.4.6
cd "$folder"
JAX_PLATFORMS=cpu KERAS_BACKEND=jax "$folder/venv/bin/python" -W ignore - <<'PYTHON'
import collections
import json

import keras
import numpy as np

print("keras", keras.__version__)
BATCHES = 1000


class Ended(Exception):
    pass


class EndsAt(keras.callbacks.Callback):
    """Ends the job after a number of its batches, and notes what it has read and with which rate."""

    def __init__(self, count, notes):
        super().__init__()
        self.count, self.notes = count, notes

    def on_train_batch_end(self, batch, logs=None):
        self.notes.append((batch, float(self.model.optimizer.learning_rate)))
        if len(self.notes) == self.count:
            raise Ended


def job(folder, count=None):
    """Trains one epoch: weight n of 1,000 gets a gradient from batch n only. Returns the weights and the notes."""
    dense = keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")
    model = keras.Sequential([keras.Input((BATCHES,)), dense])
    rate = keras.optimizers.schedules.PolynomialDecay(1.0, BATCHES, 0.0)
    model.compile(keras.optimizers.SGD(rate), loss=lambda _, outputs: -keras.ops.sum(outputs))
    notes = []
    try:
        model.fit(np.eye(BATCHES, dtype="float32"), np.zeros(BATCHES), batch_size=1, shuffle=False, verbose=0,
                  callbacks=[keras.callbacks.BackupAndRestore(folder, save_freq=100, delete_checkpoint=False),
                             EndsAt(count, notes)])
    except Ended:
        print(f"    ended after {len(notes)} batches, stored: {open(folder + '/training_metadata.json').read()}")
    return model.get_weights()[0][:, 0], notes


whole, notes = job("whole")
assert [batch for batch, _ in notes] == list(range(BATCHES)) and (whole[:999] > 0).all()
read = collections.Counter()
for attempt in range(5):
    weights, notes = job("parts", 700 if attempt < 4 else None)
    read.update(batch for batch, _ in notes)
    print(f"attempt {attempt + 1}: reads the batches {notes[0][0]} to {notes[-1][0]} at rates of {notes[0][1]:.3f} to "
          f"{notes[-1][1]:.3f}")
    assert notes[0][0] == 0, "it goes on where it was"
print("batches by how often they were read:", dict(collections.Counter(read.values())))
print("weights of the last 300 batches: uninterrupted", whole[700:].round(2)[:3], "restarted", weights[700:].max())
assert dict(collections.Counter(read.values())) == {5: 700, 1: 300}, "other batches than seen"
assert (abs(weights[700:]) < 1e-6).all(), "the last batches change the weights"
assert json.load(open("parts/training_metadata.json")) == {"epoch": 0, "batch": 999}
PYTHON
echo "as seen"
