#!/usr/bin/env bash
# marin-haliax 0.2.20.dev202606180959: mask_to_bias turns the mask round, so attention sees the padding alone.
#
# haliax is the library of named axes behind levanter and marin. Its attention takes a mask, True for what may be seen,
# and a bias, which is added to the scores. haliax.nn.attention.mask_to_bias makes a bias of a mask, for a kernel that
# takes no mask, or to add it to that of ALiBi. It multiplies the mask by -1e9: what may be seen gets -1e9, and what is
# hidden gets 0. dot_product_attention, causal_mask, prefix_lm_mask and forgetful_causal_mask of the same module all
# take True for visible. So a text with padding attends to its padding alone, whatever stands there, and with
# causal_mask each token sees the tokens after it and none before. In a text without padding all scores sink by
# 1e9, where float32 has steps of 64: its attention becomes a plain mean of the values. The shapes are right,
# nothing is NaN, and a batch of texts of one length trains. haliax 1.3 and the version 0.2.227 of October 2026, for
# Python 3.12, have the same line.
#
# Pass the mask itself, or mask_to_bias(~mask). Seen in November 2026 with Python 3.11. The script fails if this
# changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check marin-haliax==0.2.20.dev202606180959 \
    jax==0.10.2 jaxlib==0.10.2 equinox==0.13.8 jaxtyping==0.3.11 numpy==2.4.6
cd "$folder"
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
from importlib.metadata import version

import haliax
import jax
import numpy as np
from haliax.nn import attention

print("marin-haliax", version("marin-haliax"), "jax", jax.__version__)
LENGTH, SIZE = 12, 8
Batch, Query, Key, Size = haliax.make_axes(batch=2, query=LENGTH, key=LENGTH, size=SIZE)
query, key, value = (haliax.random.normal(seed, axes) for seed, axes in zip(
    jax.random.split(jax.random.PRNGKey(0), 3), ((Batch, Query, Size), (Batch, Key, Size), (Batch, Key, Size))))
padding = np.arange(LENGTH) < np.array([[8], [12]])  # one text of 8 tokens and one of 12
masks = {"padding": haliax.named(padding, (Batch, Key)), "causal": attention.causal_mask(Query, Key)}


def attend(**settings):
    return np.asarray(attention.dot_product_attention(Key, Size, query, key, value, **settings).array)


def formula(visible):
    """The same in NumPy, with True for what may be seen."""
    q, k, v = (np.asarray(x.array, np.float64) for x in (query, key, value))
    scores = np.where(visible, q @ k.transpose(0, 2, 1) / SIZE ** 0.5, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


visible = {"padding": np.broadcast_to(padding[:, None], (2, LENGTH, LENGTH)),
           "causal": np.broadcast_to(np.tri(LENGTH, dtype=bool), (2, LENGTH, LENGTH))}
for name, mask in masks.items():
    bias = attention.mask_to_bias(mask)
    right = formula(visible[name])
    errors = {"mask": attend(mask=mask) - right, "mask_to_bias(mask)": attend(bias=bias) - right,
              "mask_to_bias(~mask)": attend(bias=attention.mask_to_bias(~mask)) - right}
    print(name, {kind: round(float(abs(error).max()), 5) for kind, error in errors.items()})
    assert abs(errors["mask"]).max() < 1e-5 and abs(errors["mask_to_bias(~mask)"]).max() < 1e-5
    assert abs(errors["mask_to_bias(mask)"]).max() > 1
    with np.errstate(invalid="ignore", divide="ignore"):
        turned = formula(~visible[name])
    some = ~visible[name].all(-1)  # the rows that have something hidden
    assert abs(attend(bias=bias) - turned)[some].max() < 1e-5, "it is not the mask turned round"

assert np.float32(1e9) + np.float32(30) == np.float32(1e9) and np.spacing(np.float32(1e9)) == 64
plain = np.asarray(value.array)[1].mean(0)
found = attend(bias=attention.mask_to_bias(masks["padding"]))
print("the text without padding: away from the mean of its values by", abs(found[1] - plain).max())
assert abs(found[1] - plain).max() < 1e-5
other = haliax.named(np.asarray(value.array) + 100 * ~padding[..., None], (Batch, Key, Size))
moved = {}
for kind, settings in (("mask", {"mask": masks["padding"]}),
                       ("bias", {"bias": attention.mask_to_bias(masks["padding"])})):
    shown = attention.dot_product_attention(Key, Size, query, key, other, **settings).array
    moved[kind] = float(abs(np.asarray(shown)[0] - attend(**settings)[0]).max())
print("100 added to the values of the padding moves the text by", moved)
assert moved["mask"] == 0 and 99 < moved["bias"] < 101
PYTHON
echo "as seen"
