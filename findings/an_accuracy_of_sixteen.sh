#!/usr/bin/env bash
# flax 0.12.8: nnx.metrics.Average and Accuracy divide by the size of the mask, not of what it hides, and Welford does
# not look at it.
#
# The last batch of a test set is filled up to the size of the others, and a mask says which texts are real.
# nnx.metrics takes a mask since this year (pull request 5332 of google/flax), "broadcastable to the shape of values",
# and MultiMetric passes it "to all the metrics". For a tagger the values have the shape (texts, tokens), and a mask of
# texts is (texts, 1). The values are multiplied by it, which spreads it over the tokens, and are added up. The count is
# the sum of the mask itself, the number of texts. So the mean is as many times too large as a text has tokens,
# here 16: an accuracy of 13.2 can be seen, but a loss may pass for that of a bad model. Added to the full
# batches before it, one masked batch of many moves the mean a little and looks credible. Accuracy is an Average. A
# pull request is open (5588). Welford, which gives the spread beside the mean, takes the mask and drops it, in any
# shape: the filling counts in full. No warning comes.
#
# Spread the mask first, jnp.broadcast_to(mask, values.shape), and cut the filling off before Welford. Seen in
# November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    flax==0.12.8 jax==0.10.2 jaxlib==0.10.2 ml_dtypes==0.6.0 numpy==2.4.6
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
import flax
import jax.numpy as jnp
import numpy as np
from flax import nnx

print("flax", flax.__version__)
TEXTS, TOKENS, TAGS, REAL = 8, 16, 5, 5
rng = np.random.default_rng(0)
LOGITS = rng.normal(size=(TEXTS, TOKENS, TAGS)).astype("float32")
LABELS = np.where(rng.random((TEXTS, TOKENS)) < 0.8, LOGITS.argmax(-1), 0)
LOGITS[REAL:] = 0  # what the model says about the filling
LOSSES = -np.take_along_axis(LOGITS - np.log(np.exp(LOGITS).sum(-1, keepdims=True)), LABELS[..., None], -1)[..., 0]
BY_TEXT = np.arange(TEXTS)[:, None] < REAL
BY_TOKEN = np.broadcast_to(BY_TEXT, LABELS.shape)


def scores(logits, losses, labels, mask=None):
    """Accuracy, mean loss, and Welford's mean and spread of the loss of these texts."""
    metrics = nnx.MultiMetric(accuracy=nnx.metrics.Accuracy(), loss=nnx.metrics.Average("loss"),
                              spread=nnx.metrics.Welford("loss"))
    mask = {} if mask is None else {"mask": jnp.array(mask)}
    metrics.update(logits=jnp.array(logits), labels=jnp.array(labels), loss=jnp.array(losses), **mask)
    result = metrics.compute()
    return np.array([result["accuracy"], result["loss"], result["spread"].mean, result["spread"].standard_deviation])


right = scores(LOGITS[:REAL], LOSSES[:REAL], LABELS[:REAL])
by_token, by_text = (scores(LOGITS, LOSSES, LABELS, mask) for mask in (BY_TOKEN, BY_TEXT))
unmasked = scores(LOGITS, LOSSES, LABELS)
for name, row in (("real texts alone", right), ("mask (texts, tokens)", by_token), ("mask (texts, 1)", by_text),
                  ("no mask", unmasked)):
    print(f"{name}: accuracy {row[0]:.4f}, loss {row[1]:.4f}, Welford {row[2]:.4f} with spread {row[3]:.4f}")
assert np.allclose(right[1], LOSSES[:REAL].mean(), atol=1e-5) and np.allclose(by_token[:2], right[:2], atol=1e-5)
assert np.allclose(by_text[:2], TOKENS * right[:2], rtol=1e-4), "a mask of texts is right now"
for row in (by_token, by_text):
    assert np.allclose(row[2:], unmasked[2:], atol=1e-5), "Welford looks at the mask now"
assert abs(right[2] - unmasked[2]) > 0.1, "the filling does not matter here"

# A full batch without a mask beside the last one: the accuracy of both together.
accuracy = nnx.metrics.Accuracy()
accuracy.update(logits=jnp.array(LOGITS[:REAL]), labels=jnp.array(LABELS[:REAL]))
accuracy.update(logits=jnp.array(LOGITS), labels=jnp.array(LABELS), mask=jnp.array(BY_TEXT))
print(f"both batches: accuracy {float(accuracy.compute()):.4f}, right {right[0]:.4f}")
assert float(accuracy.compute()) > 1.2, "both together are right now"
PYTHON
echo "as seen"
