#!/usr/bin/env bash
# optax 0.2.8: triplet_margin_loss with norm_degree=1 adds the differences with their signs, and with 3 it is NaN.
#
# The loss wants the anchor nearer to the positive than to the negative text, by a margin. norm_degree is documented as
# the degree of the distance's norm. The differences are raised to this power without taking their absolute values, so
# only even degrees are norms. Degree 1, the Manhattan distance, is the sum of all differences with their signs: texts
# far apart may have the distance 0, or one below 0. The anchor cancels out of the loss. Its gradient is the same
# constant for all numbers of an embedding, so training learns nothing: here the positive is the nearer one for 42 of
# 100 test anchors, as by chance, and for all of them with degree 2 or with the true Manhattan distance. For odd
# degrees from 3 on the root of a negative sum is NaN. No warning comes. MLX had the same error and mended it this year
# (ml-explore/mlx pull request 3613).
#
# Compute the loss from jnp.abs(anchors - positives).sum(-1). Seen in November 2026 with Python 3.11. The script fails
# if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    optax==0.2.8 jax==0.10.2 jaxlib==0.10.2 ml_dtypes==0.6.0 numpy==2.4.6
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PYTHON'
import jax
import jax.numpy as jnp
import numpy as np
import optax

print("optax", optax.__version__)
random = np.random.default_rng(0)
anchors, positives, negatives = (jnp.array(random.normal(size=(6, 8)), "float32") for _ in range(3))


def right(anchors, positives, negatives, degree=1):
    near, far = (jnp.linalg.norm(anchors - other, degree, axis=-1) for other in (positives, negatives))
    return jnp.maximum(near - far + 1.0, 0)


for degree in (1, 2, 3, 4):
    losses = optax.losses.triplet_margin_loss(anchors, positives, negatives, norm_degree=degree)
    formula = right(anchors, positives, negatives, degree)
    print(f"degree {degree}: {np.array(losses).round(2)}, by the formula {np.array(formula).round(2)}")
    assert np.allclose(losses, formula, atol=1e-3) == (degree % 2 == 0), "other losses than seen"
    assert np.isnan(losses).any() == (degree == 3)

zero, one = jnp.zeros((1, 4)), jnp.array([[5.0, -5.0, 5.0, -5.0]])
for positive, negative in ((zero, zero), (one, zero), (-jnp.ones((1, 4)), jnp.ones((1, 4)))):
    loss = optax.losses.triplet_margin_loss(zero, positive, negative, norm_degree=1)
    print(f"positive {positive[0]}, negative {negative[0]}: {loss[0]}, by the formula "
          f"{right(zero, positive, negative)[0]}")
assert float(optax.losses.triplet_margin_loss(zero, one, zero, norm_degree=1)[0]) == 1.0, "far texts have a distance"


def train(loss):
    """Trains a projection that has to find the 4 of 32 numbers that say whether texts belong together."""
    def texts(count, seed):
        random = np.random.default_rng(seed)
        kinds = random.normal(size=(2, count, 4))
        return [jnp.array(np.concatenate([kind + 0.1 * random.normal(size=(count, 4)),
                                          3 * random.normal(size=(count, 28))], 1), "float32")
                for kind in (kinds[0], kinds[0], kinds[1])]

    def total(weights, anchors, positives, negatives):
        return loss(anchors @ weights, positives @ weights, negatives @ weights).mean()

    weights, optimizer = jnp.array(np.random.default_rng(1).normal(size=(32, 8)) * 0.1, "float32"), optax.adam(0.01)
    state = optimizer.init(weights)

    @jax.jit
    def step(weights, state, *parts):
        updates, state = optimizer.update(jax.grad(total)(weights, *parts), state)
        return optax.apply_updates(weights, updates), state

    for seed in range(600):
        weights, state = step(weights, state, *texts(64, seed))
    anchors, positives, negatives = (part @ weights for part in texts(100, 10_000))
    near, far = (jnp.abs(anchors - other).sum(-1) for other in (positives, negatives))
    return float(total(weights, *texts(100, 10_000))), int((near < far).sum())


for name, loss in (("degree 1", lambda *parts: optax.losses.triplet_margin_loss(*parts, norm_degree=1)),
                   ("degree 2", optax.losses.triplet_margin_loss), ("Manhattan distance", right)):
    ends = train(loss)
    print(f"trained with {name}: test loss {ends[0]:.3f}, the positive is nearer for {ends[1]} of 100")
    assert (ends[1] > 95) == (name != "degree 1") and (ends[1] < 75) == (name == "degree 1"), "other results than seen"
PYTHON
echo "as seen"
