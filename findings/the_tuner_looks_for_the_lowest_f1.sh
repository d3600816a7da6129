#!/usr/bin/env bash
# keras-tuner 1.4.8 with Keras 3.15.1: the objective "val_f1_score" is minimised, so the search returns the worst model.
#
# An objective may be given by its name, and "the direction of the optimization (min or max) will be inferred", says
# the documentation. KerasTuner has a list of metrics that are to be large: accuracies, AUC, Precision, Recall and some
# more, from the time before Keras had F1. Another name is looked up in keras.metrics, and what is found there counts
# as a loss. A name that isn't found raises an error that asks for the direction. Keras 3 finds "f1_score", the name of
# keras.metrics.F1Score, and so it does "r2_score", "cosine_similarity", "pearson_correlation" and
# "concordance_correlation": all are minimised. Here the learning rates 0, 0.001 and 0.1 are tried, and the best one is
# 0, the untrained model. Within a trial the epoch with the lowest F1 is kept as the best one. The summary says
# 'direction="min"', if it is asked for.
#
# Pass keras_tuner.Objective("val_f1_score", direction="max"). Seen in November 2026 with Python 3.11. The script fails
# if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    keras-tuner==1.4.8 keras==3.15.1 six==1.17.0 jax==0.10.2 jaxlib==0.10.2 ml_dtypes==0.6.0 numpy==2.4.6
cd "$folder"
JAX_PLATFORMS=cpu KERAS_BACKEND=jax "$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import keras
import keras_tuner
import numpy as np

print("keras-tuner", version("keras-tuner"), "keras", keras.__version__, "backend", keras.backend.backend())
generator = np.random.default_rng(0)
vectors = generator.normal(size=(600, 8)).astype("float32")
labels = np.eye(3, dtype="float32")[vectors[:, :3].argmax(axis=1)]


def build(parameters):
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(3, activation="softmax")])
    rate = parameters.Choice("rate", [0.0, 0.001, 0.1])
    model.compile(keras.optimizers.Adam(rate), "categorical_crossentropy", metrics=[keras.metrics.F1Score("macro")])
    return model


def search(objective, name):
    tuner = keras_tuner.GridSearch(build, objective, project_name=name)
    tuner.search(vectors[:400], labels[:400], epochs=5, validation_data=(vectors[400:], labels[400:]), verbose=0)
    scores = {trial.hyperparameters.get("rate"): round(trial.score, 3) for trial in tuner.oracle.trials.values()}
    return tuner.get_best_hyperparameters()[0].get("rate"), scores, tuner.oracle.objective.direction


assert keras.metrics.F1Score("macro").name == "f1_score"
named = search("val_f1_score", "named")
told = search(keras_tuner.Objective("val_f1_score", direction="max"), "told")
for how, (best, scores, direction) in (("by the name", named), ("with the direction", told)):
    print(f"objective {how}: {direction}, F1 by learning rate {scores}, best rate {best}")
assert named[2] == "min" and named[0] == 0.0, "the direction is right now"
assert told[0] == 0.1 and told[1][0.1] > 0.8 > 0.5 > named[1][0.0]

infer = {name: keras_tuner.Oracle(objective="val_" + name).objective.direction
         for name in ("accuracy", "auc", "recall", "r2_score", "cosine_similarity", "pearson_correlation")}
print(infer)
assert {infer[name] for name in ("accuracy", "auc", "recall")} == {"max"}
assert {infer[name] for name in ("r2_score", "cosine_similarity", "pearson_correlation")} == {"min"}
PYTHON
echo "as seen"
