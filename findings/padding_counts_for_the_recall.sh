#!/usr/bin/env bash
# Keras 3.15.1: fit and evaluate leave padding out of the loss and the accuracy, and count it in Precision, Recall,
# AUC, RootMeanSquaredError and others.
#
# Embedding(mask_zero=True) marks the padding, and layers pass the mask on. Keras applies it to the loss and to the
# metrics that are a mean of something for each token. Metrics with their own update_state do not look at
# it: the counts (TruePositives and the like), Precision, Recall, AUC and its relatives, the IoU family and
# RootMeanSquaredError, which is no longer the root of MeanSquaredError. weighted_metrics does the same. Padding
# has the label 0 mostly, and one logit, since all of it looks alike. Here a tagger that guesses has an AUC of
# 0.52 without padding. Padded to three times the length it has 0.90, or 0.10 if the vector of padding is another one,
# with all else equal. So a score depends on the length to which texts are padded, and on the model's output
# at places that nobody trains. tf_keras 2.20.1, the older Keras, gives the mask to all of them: TensorFlow 2.2
# did not, which was reported as a regression (tensorflow/tensorflow issue 40002). No warning comes.
#
# Pass sample_weight=(ids != 0) and list the metrics in weighted_metrics. Seen in November 2026 with Python 3.11. The
# script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    keras==3.15.1 jax==0.10.2 jaxlib==0.10.2 ml_dtypes==0.6.0 numpy==2.4.6
JAX_PLATFORMS=cpu KERAS_BACKEND=jax "$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' \
    || { cat "$folder/log"; exit 1; }
import keras
import numpy as np
from keras import metrics

print("keras", keras.__version__, "backend", keras.backend.backend())
TEXTS, REAL, PADDED, WORDS = 64, 10, 30, 50
rng = np.random.default_rng(0)
IDS = np.zeros((TEXTS, PADDED), "int32")
IDS[:, :REAL] = rng.integers(1, WORDS, size=(TEXTS, REAL))
TAGS = np.where(IDS > 0, rng.integers(0, 2, size=IDS.shape), 0)[..., None]
TABLE = rng.normal(size=(WORDS, 1))
HEARS = ("BinaryAccuracy", "BinaryCrossentropy", "MeanSquaredError")
DEAF = ("Precision", "Recall", "AUC", "RootMeanSquaredError", "BinaryIoU", "FalsePositives")


def evaluate(tokens, padding_logit, weights=None, column="metrics"):
    """Scores of a tagger that guesses, on texts padded to `tokens`, by the name of the metric."""
    ids = keras.Input((None,), dtype="int32")
    logits = keras.layers.Embedding(WORDS, 1, mask_zero=True)(ids)
    model = keras.Model(ids, keras.layers.Activation("sigmoid")(logits))
    model.set_weights([np.concatenate([[[padding_logit]], TABLE[1:]])])
    model.compile("sgd", "binary_crossentropy", jit_compile=False,
                  **{column: [getattr(metrics, name)(name=name) for name in HEARS + DEAF]})
    return model.evaluate(IDS[:, :tokens], TAGS[:, :tokens], sample_weight=weights, batch_size=TEXTS,
                          return_dict=True, verbose=0)


right = evaluate(REAL, 0)
print("without padding:", {name: round(score, 4) for name, score in right.items()})
assert np.isclose(right["RootMeanSquaredError"] ** 2, right["MeanSquaredError"], atol=1e-5)
for padding_logit in (-3, 3):
    for column in ("metrics", "weighted_metrics"):
        scores = evaluate(PADDED, padding_logit, column=column)
        print(f"padded to {PADDED}, logit of padding {padding_logit}, {column}:",
              {name: round(score, 4) for name, score in scores.items()})
        assert all(np.isclose(scores[name], right[name], atol=1e-4) for name in ("loss", *HEARS)), "also wrong"
        moved = {name for name in DEAF if abs(scores[name] - right[name]) > 0.02}
        # Sure and right padding has no false positive, and nothing of it counts for recall.
        same = {"Recall", "Precision", "FalsePositives"} if padding_logit < 0 else {"Recall"}
        assert moved == set(DEAF) - same, moved
        weights = (IDS != 0).astype("float32")
        if column == "weighted_metrics":
            scores = evaluate(PADDED, padding_logit, weights, column)
            assert all(np.isclose(scores[name], right[name], atol=1e-3) for name in HEARS + DEAF), "weights don't help"
PYTHON
echo "as seen"
