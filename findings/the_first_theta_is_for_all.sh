#!/usr/bin/env bash
# equinox 0.13.8: of several rotary embeddings with heads of one size, all turn by the theta of the one that ran first.
#
# The theta of rotary positions says how slowly the angles grow. ModernBERT has two of them, 160,000 in the layers that
# look at the whole text and 10,000 in those that look at 128 tokens, with heads of 64 in both; Gemma 3 has the like.
# RotaryPositionalEmbedding keeps its sines and cosines for the whole process, under the size of the head and the dtype,
# and without theta. The second embedding finds the first one's table and takes it. In ModernBERT the first layer is a
# global one, so all layers have 160,000: here the rotated vectors of a local layer are off by 89% of their length on
# average. The table is made anew only for a longer text than before, with the theta of the embedding that meets that
# text first. So the same model has other outputs in a process in which a local layer ran before, as in a test of one
# layer or beside a second model, and a model that was trained so is another one elsewhere. A compiled function keeps
# the table that it was traced with. The attribute theta of each embedding shows the right number, and no warning comes.
#
# Call equinox.clear_caches() before each call, or rotate by a function of your own with process_heads. Seen in
# November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check equinox==0.13.8 jax==0.10.2 jaxlib==0.10.2 \
    numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import equinox as eqx
import jax
import numpy as np

print("equinox", version("equinox"), "jax", jax.__version__)
GLOBAL, LOCAL = 160_000.0, 10_000.0


def by_formula(x, theta):
    length, size = x.shape
    angles = np.arange(length)[:, None] * theta ** (-np.arange(0, size, 2) / size)
    cos, sin = np.cos(np.tile(angles, 2)), np.sin(np.tile(angles, 2))
    return x * cos + np.concatenate([-x[:, size // 2:], x[:, :size // 2]], -1) * sin


def error(got, want):
    return float(np.mean(np.linalg.norm(got - want, axis=-1) / np.linalg.norm(want, axis=-1)))


def rotate(x, theta, call=lambda layer, x: layer(x)):
    """The errors of an embedding with this theta to the formula with the global and with the local theta."""
    layer = eqx.nn.RotaryPositionalEmbedding(x.shape[1], theta=theta)
    assert layer.theta == theta
    got = np.asarray(call(layer, x))
    errors = error(got, by_formula(x, GLOBAL)), error(got, by_formula(x, LOCAL))
    print(f"heads of {x.shape[1]}, {x.shape[0]} tokens, theta {theta:.0f}:",
          f"off by {errors[0]:.6f} from {GLOBAL:.0f}, by {errors[1]:.6f} from {LOCAL:.0f}")
    return errors


random = np.random.default_rng(0)
text = random.normal(size=(128, 64)).astype("float32")
assert rotate(text, GLOBAL)[0] < 1e-4, "the first one is wrong"
off_global, off_local = rotate(text, LOCAL)
assert off_global < 1e-4 and 0.85 < off_local < 0.93, "the second embedding has its own theta"
compiled = eqx.filter_jit(lambda layer, x: layer(x))
off_global, off_local = rotate(text, LOCAL, compiled)
assert off_global < 1e-4 and off_local > 0.3, "the compiled one has its own theta"
eqx.clear_caches()
assert rotate(text, LOCAL)[1] < 1e-4 and rotate(text, LOCAL, compiled)[1] > 0.3, "the compiled one is right again"

print("a longer text meets the local layer first:")
long = random.normal(size=(256, 64)).astype("float32")
assert rotate(long, LOCAL)[1] < 1e-4 and rotate(long, GLOBAL)[0] > 0.3, "the table has another theta"
assert rotate(text, GLOBAL)[0] > 0.3, "the same call as the first one is right again"

print("another size of heads, the local layer first:")
small = text[:, :32]
assert rotate(small, LOCAL)[1] < 1e-4 and rotate(small, GLOBAL)[1] < 1e-4, "the second embedding has its own theta"

print("with the cache cleared before each call:")
for theta in (GLOBAL, LOCAL, GLOBAL):
    eqx.clear_caches()
    assert min(rotate(text, theta)) < 1e-4 and rotate(text, theta)[theta == LOCAL] < 1e-4
PYTHON
echo "as seen"
