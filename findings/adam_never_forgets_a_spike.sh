#!/usr/bin/env bash
# optax 0.2.8: with parameters in bfloat16, the second moment of Adam only grows, so one spike of the
# gradient slows learning for good.
#
# optax keeps the mean of squares in the type of the parameter, and its page gives it as b2 * v plus
# (1 - b2) * g * g. The default b2, 0.999, is 1.0 in bfloat16: the old mean is kept whole, and a new square
# is added until it is too small to count. Here the gradient is 1 for 100 steps and 0.01 from then on. In
# float32 the mean has shrunk to 0.0001 after 10,000 further steps and an update is as large as the
# learning rate, as Adam promises. In bfloat16 the mean is the same to the last bit, and an update is
# a thirtieth of it for ever. The first gradients of a training are often the largest, so this meets
# most parameters. mu_dtype="float32" concerns the other moment only. No warning comes; the loss falls slowly.
#
# Keep the parameters in float32 and cast in the model, or give b2=0.99, which stays below 1. Seen in
# November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    optax==0.2.8 jax==0.10.2 jaxlib==0.10.2 ml_dtypes==0.6.0 numpy==2.4.6
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PYTHON'
import jax
import jax.numpy as jnp
import optax

print("optax", optax.__version__, "jax", jax.__version__)


def train(dtype, **options):
    """The updates and second moments after the 100 steps of gradient 1, and 10,000 of 0.01 later."""
    adam = optax.adam(1.0, **options)
    parameter = jnp.zeros((), dtype)

    def step(state, gradient):
        update, state = adam.update(gradient.astype(dtype), state, parameter)
        return state, (update, state[0].nu)

    gradients = jnp.concatenate([jnp.full(100, 1.0), jnp.full(10_000, 0.01)])
    updates, moments = jax.lax.scan(step, adam.init(parameter), gradients)[1]
    result = [float(values[place]) for place in (99, -1) for values in (updates, moments)]
    print(f"{dtype:<9} {str(options or ''):<23} after the spike: update {result[0]:.3f}, v {result[1]:.4f};",
          f"10,000 steps later: update {result[2]:.3f}, v {result[3]:.4f}")
    return result


for options in ({}, {"mu_dtype": "float32"}):
    _, spike, update, later = train("bfloat16", **options)
    assert later == spike and abs(update) < 0.05, "the second moment shrinks now"
for dtype, options in (("float32", {}), ("float16", {}), ("bfloat16", {"b2": 0.99})):
    _, spike, update, later = train(dtype, **options)
    assert later < spike / 50 and abs(update) > 0.5, "this one does not recover either"
PYTHON
echo "as seen"
