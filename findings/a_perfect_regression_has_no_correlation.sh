#!/usr/bin/env bash
# Keras 3.15.1: PearsonCorrelation and ConcordanceCorrelation of a regression model with one output are NaN and 0,
# however good it is, and with axis=0 they are means over the batches that depend on the batch size.
#
# "PCC measures the linear relationship between the true values and the predicted values", "widely used in regression
# tasks", and the documentation puts PearsonCorrelation() into compile(). The metric takes the correlation along the
# last axis of each batch, and averages. A model that gives each text one number, as for the similarity of two
# sentences, has outputs of the shape (batch, 1): the last axis holds one number, whose deviation from its mean is 0.
# So Pearson's is 0 / 0 and the concordance 0, for a perfect model too; EarlyStopping and ModelCheckpoint, which
# compare with it, never see an improvement. With axis=0, or with targets and outputs of the shape (batch,), it is the
# mean of the correlations in single batches. That is not the correlation over the data: where the texts are sorted by
# score 0.89 becomes 0.33, and a last batch of one text makes Pearson's NaN. R2Score, which counts over an epoch, is
# right in all these cases.
#
# Take scipy.stats.pearsonr of model.predict. Seen in November 2026 with Python 3.11 on JAX. The script fails if this
# changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check keras==3.15.1 jax==0.10.2 jaxlib==0.10.2 \
    numpy==2.4.6
KERAS_BACKEND=jax "$folder/venv/bin/python" -W ignore - <<'PYTHON'
import keras
import numpy as np

print("keras", keras.__version__, "backend", keras.backend.backend())
rng = np.random.default_rng(0)
scores = rng.uniform(0, 5, 1001).astype("float32")
vectors = (scores + 0.7 * rng.normal(size=1001)).astype("float32")[:, None]
PEARSON, CONCORDANCE = keras.metrics.PearsonCorrelation, keras.metrics.ConcordanceCorrelation


def definition(kind, one, other):
    """The coefficients of Pearson and of Lin, over all texts."""
    one, other = one.ravel().astype("float64"), other.ravel().astype("float64")
    if kind is PEARSON:
        return np.corrcoef(one, other)[0, 1]
    together = np.mean((one - one.mean()) * (other - other.mean()))
    return 2 * together / (one.var() + other.var() + (one.mean() - other.mean()) ** 2)


inputs = keras.Input([1])
model = keras.Model(inputs, keras.layers.Dense(1, kernel_initializer="ones")(inputs))
for kind in (PEARSON, CONCORDANCE):
    model.compile(loss="mse", metrics=[kind(name="metric"), keras.metrics.R2Score(name="r2")])
    found = model.evaluate(vectors, scores[:, None], batch_size=32, verbose=0, return_dict=True)
    perfect = model.evaluate(scores[:, None], scores[:, None], batch_size=32, verbose=0, return_dict=True)
    right = definition(kind, scores, vectors)
    print(f"{kind.__name__} in compile(): {found['metric']}, over all texts {right:.3f}; for a perfect model",
          f"{perfect['metric']}; R2Score {found['r2']:.3f} and {perfect['r2']:.3f}")
    assert np.isnan(found["metric"]) if kind is PEARSON else found["metric"] == 0, "one output has a correlation now"
    assert np.isnan(perfect["metric"]) if kind is PEARSON else perfect["metric"] == 0
    assert right > 0.85 and abs(perfect["r2"] - 1) < 1e-5


def by_batches(kind, one, other, size, shape):
    metric = kind(axis=0 if len(shape) == 2 else -1)
    for start in range(0, len(one), size):
        metric.update_state(*(part[start:start + size].reshape(shape) for part in (one, other)))
    return float(metric.result())


order = np.argsort(scores)
for kind in (PEARSON, CONCORDANCE):
    right = definition(kind, scores, vectors)
    for shape in ((-1, 1), (-1,)):
        mixed = [by_batches(kind, scores[:1000], vectors[:1000], size, shape) for size in (1000, 200, 8)]
        ordered = by_batches(kind, scores[order][:1000], vectors[order][:1000], 200, shape)
        print(f"{kind.__name__}, {'axis=0' if len(shape) == 2 else 'shape (batch,)'}: in batches of 1000, 200 and 8",
              f"{[round(value, 3) for value in mixed]}, sorted by score in batches of 200 {ordered:.3f};",
              f"over all texts {right:.3f}")
        assert abs(mixed[0] - definition(kind, scores[:1000], vectors[:1000])) < 1e-3
        assert ordered < right - 0.3, "it is over all texts now"
    last = by_batches(kind, scores, vectors, 8, (-1,))
    print(f"  with one more text, which is a batch by itself: {last:.3f}")
    assert np.isnan(last) if kind is PEARSON else last < mixed[2]
PYTHON
echo "as seen"
