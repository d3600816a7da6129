#!/usr/bin/env bash
# keras-rs 0.4.0: ListMLELoss grows as a model ranks better, and does not see the order of passages far below the
# best one.
#
# ListMLE is the loss for a reranker that learns the whole order of a query's passages. It adds, from the first
# place on, the log of the share that each passage has among those that are still left. keras-rs subtracts the best
# score of the list from all, takes the exponentials and adds 1e-10 to the sum of what is left. With the best passage
# more than 23 above the rest this sum is below 1e-10. So the loss is no longer that of the shares but the distance
# to the best, which is to shrink: the gradient draws the best passage down and all others up. Cosines between 0
# and 1 at the temperature 0.02 reach a distance of 50. There the list in perfect order here costs 24 in place of
# 0.0001, more than one whose third and fourth passages are the wrong way round at 0.05. With scores far apart
# the second to last passages may stand in any order at the same loss. No warning comes, and the loss is finite.
#
# Compute the logarithms of the sums with a cumulative logsumexp, as below. sentence-transformers mended the same
# in its own ListMLE (pull request 4012 of huggingface/sentence-transformers). Seen in November 2026 with Python
# 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    keras-rs==0.4.0 keras==3.15.1 jax==0.10.2 jaxlib==0.10.2 ml_dtypes==0.6.0 numpy==2.4.6
JAX_PLATFORMS=cpu KERAS_BACKEND=jax "$folder/venv/bin/python" - <<'PYTHON'
import jax
import jax.numpy as jnp
import keras
import keras_rs

print("keras-rs", keras_rs.__version__, "keras", keras.__version__, "backend", keras.backend.backend())


def right(scores, temperature):
    """ListMLE of scores that are in the right order: the log of each one's share among those left."""
    scores = jnp.asarray(scores) / temperature
    return jnp.sum(jax.lax.cumlogsumexp(scores, reverse=True) - scores)


def seen(scores, temperature):
    loss = keras_rs.losses.ListMLELoss(temperature=temperature)
    return loss(jnp.asarray([[3.0, 2.0, 1.0, 0.0]]), jnp.asarray([scores]))


def compare(scores, temperature):
    losses = [float(loss(scores, temperature)) for loss in (seen, right)]
    gradients = [[round(float(number), 3) for number in jax.grad(loss)(jnp.asarray(scores), temperature)]
                 for loss in (seen, right)]
    print(f"{scores} at {temperature}: loss {losses[0]:.4f}, right {losses[1]:.4f}; gradient", *gradients)
    return losses, gradients


for scores, temperature in (([2.0, 1.0, 0.5, 0.0], 1.0), ([0.9, 0.5, 0.3, 0.1], 0.05)):
    losses, _ = compare(scores, temperature)
    assert abs(losses[0] - losses[1]) < 1e-3, "not right for scores that are near each other"
worse, _ = compare([0.9, 0.5, 0.1, 0.3], 0.05)
losses, gradients = compare([0.9, 0.5, 0.3, 0.1], 0.02)
assert losses[0] > 20 > worse[0] > worse[1] > 1 > 0.001 > losses[1], "the perfect order costs little now"
assert gradients[0][0] > 90 and max(map(abs, gradients[1])) < 0.1, "the best passage is not drawn down now"

orders = [compare([40.0, *rest], 1.0)[0] for rest in ((3.0, 2.0, 1.0), (1.0, 2.0, 3.0))]
assert abs(orders[0][0] - orders[1][0]) < 1e-3 and abs(orders[0][1] - orders[1][1]) > 2, "the order of the rest counts"
PYTHON
echo "as seen"
