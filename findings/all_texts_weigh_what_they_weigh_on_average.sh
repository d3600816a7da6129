#!/usr/bin/env bash
# coral-ordinal 0.1.8 with TensorFlow 2.15.1: OrdinalCrossEntropy gives all texts of a batch the mean of their weights,
# so that sample_weight and class_weight change the size of the loss and not what is learned.
#
# coral-ordinal is the CORAL layer and loss for ordered classes, such as stars, in Keras. Keras asks a loss for one
# number for each text, multiplies by the weights of the texts, and takes the mean. OrdinalCrossEntropy.call takes the
# mean over the batch itself, for the usual reduction, and hands Keras a single number. Keras multiplies that by each
# weight. So the loss is the mean loss times the mean weight: a text with the weight 0 teaches as much as any other, one
# with the weight 10 no more, and class_weight for rare stars does nothing. Training with weights of 10 and 0.1 gives
# the very weights of the model that their mean for all gives. With reduction="sum" it is the sum times the sum. In the
# tracker of the repository class_weight is recommended for rare classes, and it is said that sample_weight is
# supported; the last package on PyPI, of 2022, does not support them. No warning comes.
#
# Wrap it in a loss whose call returns one number for each text, like EachText below. Seen in December 2026 with Python
# 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
pip() { "$folder/venv/bin/pip" install --quiet --disable-pip-version-check "$@"; }
pip tensorflow-cpu==2.15.1 keras==2.15.0 numpy==1.26.4
pip --no-deps coral-ordinal==0.1.8
TF_CPP_MIN_LOG_LEVEL=3 "$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
from importlib.metadata import version

import coral_ordinal
import numpy as np
import tensorflow as tf

print("coral-ordinal", version("coral-ordinal"), "tensorflow", tf.__version__)
rng = np.random.default_rng(0)
logits = rng.normal(size=(6, 4)).astype(np.float32)
stars = rng.integers(0, 5, 6)
above = (np.arange(4) < stars[:, None]).astype(float)                 # is a text above each of the four limits?
loss_of = -(above * -np.log1p(np.exp(-logits)) + (1 - above) * -np.log1p(np.exp(logits))).sum(1)
for weights in ([1, 1, 1, 1, 1, 1], [6, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 6], [2, 2, 2, 0, 0, 0]):
    want = (loss_of * weights).mean()
    got = float(coral_ordinal.OrdinalCrossEntropy()(stars[:, None], logits, sample_weight=np.array(weights)[:, None]))
    total = float(coral_ordinal.OrdinalCrossEntropy(reduction="sum")(stars[:, None], logits,
                                                                      sample_weight=np.array(weights)[:, None]))
    print(f"weights {weights}: the loss is {got:.4f}, by formula {want:.4f}")
    assert abs(got - loss_of.mean() * np.mean(weights)) < 1e-4
    assert abs(total - loss_of.sum() * np.sum(weights)) < 1e-3
    assert (abs(got - want) < 1e-4) == (len(set(weights)) == 1)


class EachText(coral_ordinal.OrdinalCrossEntropy):
    def call(self, y_true, y_pred):
        return tf.map_fn(lambda pair: super(EachText, self).call(pair[0][None], pair[1][None]), (y_true, y_pred),
                         fn_output_signature=tf.float32)


texts = rng.normal(size=(256, 8)).astype(np.float32)
labels = np.clip(np.round(texts[:, 0] + 0.3 * rng.normal(size=256) + 2), 0, 4).astype(int)


def learned(loss, **weights):
    tf.keras.utils.set_random_seed(0)
    model = tf.keras.Sequential([tf.keras.Input((8,)), coral_ordinal.CoralOrdinal(5)])
    model.compile(tf.keras.optimizers.SGD(0.1), loss)
    model.fit(texts, labels[:, None], batch_size=256, epochs=20, verbose=0, **weights)
    return np.concatenate([weight.ravel() for weight in model.get_weights()])


rare = np.where(labels == 4, 10.0, 0.1)
alike = np.full(256, rare.mean())
for loss in (coral_ordinal.OrdinalCrossEntropy, EachText):
    by_weight, by_class, by_mean = (learned(loss(), **options) for options in (
        {"sample_weight": rare}, {"class_weight": {star: 10.0 if star == 4 else 0.1 for star in range(5)}},
        {"sample_weight": alike}))
    apart = [np.abs(one - by_mean).max() for one in (by_weight, by_class)]
    print(f"{loss.__name__}: weights of 10 for five stars and 0.1 for the others and their mean for all end"
          f" {apart[0]:.1e} apart, by class_weight {apart[1]:.1e}")
    assert max(apart) < 1e-4 if loss is coral_ordinal.OrdinalCrossEntropy else min(apart) > 0.1
PYTHON
echo "as seen"
