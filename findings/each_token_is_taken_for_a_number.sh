#!/usr/bin/env bash
# xplique 2.0.2: given a score for each token, Deletion and Insertion rate all explanations alike, the exact one, its
# reverse and noise; and ModelRandomizationMetric randomizes nothing in a model of fewer than four layers.
#
# Deletion sets the most important features to 0 step by step and looks how fast the score of the model falls. A text
# is an array of tokens and the numbers of their embeddings, an explanation of it a score for each token. For images
# the metric knows that an explanation may have one number for all channels, and MuFidelity knows it for tokens too.
# Deletion and Insertion flatten texts to single numbers and take the places of the tokens for places among these: with
# 10 tokens of 16 numbers they delete the first 10 numbers of the first token, in some order, and then nothing more,
# with no error. Three explanations of a model whose tokens contribute independently have 15.19. Each score repeated
# for all numbers of its token, the exact one has 2.65, its reverse 12.96.
# ModelRandomizationMetric asks whether an explanation changes when "top 25% layers" of the model are randomized, which
# it must. The number of layers is int(0.25 * n), where a nested encoder is one layer: of two or three it is none. The
# model is compared with itself, and all explanations have 1.0, the worst value, and look as if they ignored the model.
#
# Give Deletion np.repeat(scores[..., None], size, axis=-1), and the other ProgressiveLayerRandomization(1). Seen in
# November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check tensorflow-cpu==2.20.0 keras==3.15.1 \
    tensorflow-probability==0.25.0 tf-keras==2.20.1 numpy==2.2.6 scipy==1.15.3 scikit-learn==1.7.2 \
    scikit-image==0.25.2 opencv-python-headless==5.0.0.93 matplotlib==3.11.2 einops==0.8.2 deprecated==1.3.1
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps xplique==2.0.2
export TF_CPP_MIN_LOG_LEVEL=3
"$folder/venv/bin/python" -W ignore - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
from importlib.metadata import version

import numpy as np
import tensorflow as tf
from xplique.attributions import GradientInput, Saliency
from xplique.metrics import Deletion, Insertion, ModelRandomizationMetric, MuFidelity
from xplique.metrics.randomization import ProgressiveLayerRandomization

print("xplique", version("xplique"), "tensorflow", tf.__version__)
TEXTS, TOKENS, SIZE = 40, 10, 16
rng = np.random.default_rng(0)
texts = rng.normal(size=(TEXTS, TOKENS, SIZE)).astype("float32")
direction = rng.normal(size=SIZE).astype("float32")
labels = np.tile([[0, 1]], (TEXTS, 1)).astype("float32")


class Sum(tf.keras.Model):
    def call(self, texts):
        score = tf.reduce_sum(tf.nn.relu(tf.tensordot(texts, direction, 1)), -1)
        return tf.stack([-score, score], -1)


model = Sum()
exact = np.maximum(texts @ direction, 0)
noise = rng.normal(size=exact.shape).astype("float32")
values = {}
for name, scores in (("exact", exact), ("reversed", -exact), ("noise", noise)):
    wide = np.repeat(scores[..., None], SIZE, axis=-1)
    values[name] = [float(metric(model, texts, labels).evaluate(own)) for own in (scores, wide)
                    for metric in (Deletion, Insertion)]
    values[name].append(MuFidelity(model, texts, labels, grid_size=None, nb_samples=60).evaluate(scores))
    print(f"{name}: a score for each token, deletion {values[name][0]:.2f}, insertion {values[name][1]:.2f};"
          f" repeated {values[name][2]:.2f} and {values[name][3]:.2f}; MuFidelity {values[name][4]:.2f}")
narrow = np.array([row[:2] for row in values.values()])
assert np.ptp(narrow, axis=0).max() < 0.1
assert values["exact"][2] < values["noise"][2] - 2 < values["reversed"][2] - 4
assert values["exact"][3] > values["noise"][3] + 2 > values["reversed"][3] + 4
assert values["exact"][4] > 0.1 > -0.1 > values["reversed"][4]
untouched = texts.copy()
untouched[:, 0, :TOKENS] = 0
start, end = (float(np.mean(model(own)[:, 1])) for own in (texts, untouched))
print(f"the score falls from {start:.2f} to {end:.2f} at most, which is that without 10 numbers of the first token")
assert end - 0.01 < values["exact"][0] < start

for layers in (2, 3, 4):
    tf.keras.utils.set_random_seed(0)
    dense = [tf.keras.layers.Dense(16, "relu") for _ in range(layers - 1)]
    network = tf.keras.Sequential([tf.keras.Input((TOKENS, SIZE)), tf.keras.layers.Flatten(), *dense,
                                   tf.keras.layers.Dense(2)])
    default = [ModelRandomizationMetric(network, texts, labels).evaluate(explain(network))
               for explain in (Saliency, GradientInput)]
    last = ProgressiveLayerRandomization(1)
    one = ModelRandomizationMetric(network, texts, labels, last).evaluate(Saliency(network))
    print(f"{layers} layers: correlation {default[0]:.2f} and {default[1]:.2f} by default, {one:.2f} with one anew")
    assert one < 0.8 and (min(default) > 0.999 if layers < 4 else default[0] < 0.8)
PYTHON
echo "as seen"
