#!/usr/bin/env bash
# optax 0.2.8: adan weighs the change of the gradient by 0.08 in place of 0.92, so that its look-ahead is nearly gone,
# and its default eps_root stops weights with small gradients.
#
# Adan (Xie and others, 2022) foresees the next gradient: it adds to the gradient its last change, weighed by
# 1 - beta_2, where beta_2 is 0.08. The argument b2 = 0.92 is the decay, as optimizers usually have it, which is the
# paper's 1 - beta_2 (sail-sg/Adan issue 4 says so of the authors' code). optax takes it for the decay and then
# multiplies by 1 - b2 = 0.08, for the update and in the mean square, by the letters of the formula on its page. What is
# left is nearly Adam. Here a small network has a loss that is larger by a fifth to a third after 200 steps than by the
# formula, at each of three rates. That is known since June (google-deepmind/optax pull request 1715, open). Besides,
# eps_root, 0 in optax's adam and absent in other code for Adan, is 1e-8 by default and stands inside the root. So it
# takes the place of gradients below 1e-4, as those of large encoders are: with 1e-5 the first step is a tenth of the
# rate and with 1e-6 a hundredth, where Adam's is the rate. No warning comes.
#
# Pass eps_root=0, and replace 1 - b2 by b2 as below. Seen in November 2026 with Python 3.11. The script fails if this
# changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check optax==0.2.8 jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
export JAX_PLATFORMS=cpu
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
import jax
import jax.numpy as jnp
import optax

print("optax", optax.__version__, "jax", jax.__version__)


def formula(rate, b1=0.98, b2=0.92, b3=0.99, weight=0.92, eps_root=0.0):
    """Adan as in the paper, with decays as arguments."""

    def init(x):
        zeros = jnp.zeros_like(x)
        return jnp.zeros([], int), zeros, zeros, zeros, zeros

    def update(g, state, x=None):
        count, m, v, n, old = state
        change = jnp.where(count == 0, 0.0, g - old)
        count = count + 1
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * change
        n = b3 * n + (1 - b3) * (g + weight * change) ** 2
        u = m / (1 - b1 ** count) + weight * v / (1 - b2 ** count)
        return -rate * u / (jnp.sqrt(n / (1 - b3 ** count) + eps_root) + 1e-8), (count, m, v, n, g)

    return optax.GradientTransformation(init, update)


keys = jax.random.split(jax.random.key(0), 3)
X, W = jax.random.normal(keys[0], (200, 10)), jax.random.normal(keys[1], (10,))
Y = jnp.tanh(X @ W)
START = 0.3 * jax.random.normal(keys[2], (176,))


def loss_of(x):
    return jnp.mean((jnp.tanh(X @ x[:160].reshape(10, 16)) @ x[160:] - Y) ** 2)


def train(optimizer, steps=200):
    def step(carry, _):
        x, state = carry
        loss, g = jax.value_and_grad(loss_of)(x)
        update, state = optimizer.update(g, state, x)
        return (x + update, state), loss

    return jax.lax.scan(step, (START, optimizer.init(START)), length=steps)[1]


for rate in (0.01, 0.03, 0.1):
    shipped, right = train(optax.adan(rate)), train(formula(rate))
    same = train(formula(rate, weight=0.08, eps_root=1e-8))
    print(f"rate {rate}: loss {shipped[-1]:.5f} after 200 steps, {right[-1]:.5f} by the formula, {same[-1]:.5f} by 0.08")
    assert jnp.allclose(shipped[:100], same[:100], rtol=0.01) and 1.15 < shipped[-1] / right[-1] < 1.45

for size in (1.0, 1e-4, 1e-5, 1e-6):
    g = jnp.full(3, size)
    moved = {}
    for name, optimizer in (("shipped", optax.adan(1.0)), ("eps_root=0", optax.adan(1.0, eps_root=0.0)),
                            ("adam", optax.adam(1.0)), ("formula", formula(1.0))):
        moved[name] = -float(optimizer.update(g, optimizer.init(g), g)[0][0])
    print(f"gradient {size}: the first step is {moved}")
    wanted = size / (size ** 2 + 1e-8) ** 0.5
    assert abs(moved["shipped"] / wanted - 1) < 1e-3
    assert all(abs(value - 1) < 0.02 for name, value in moved.items() if name != "shipped")
PYTHON
echo "as seen"
