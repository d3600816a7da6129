#!/usr/bin/env bash
# colt5-attention 0.11.2: topk with a mask chooses the same places as without it, so of a short text's best tokens most
# are padding.
#
# colt5_attention.topk is a top-k that gradients pass through, to choose the tokens of a text that deserve a heavy
# layer, as in CoLT5 (Ainslie and others, 2023). It takes a mask. Coordinate descent respects it: masked places get the
# score 0. This score is only used for the gradient, since for the values it is replaced by 1 (straight through), and
# the hard torch.topk that follows sorts the values it was given, masked ones too. So the indices are those of a call
# without a mask. With random scores and texts of 20 tokens in rows of 64, about 5.5 of 8 chosen tokens are padding,
# each with a gate of 1, as if it had been chosen. The result of a text depends on how far it is padded: in rows of 512
# 7.7 of 8 are. Only coor_descent_values shows zeros there. The router of the same package, CoordinateDescentRouter,
# sorts the masked scores and is right. No warning comes.
#
# Pass x.masked_fill(~mask, -torch.finfo(x.dtype).max) together with the mask, and at most as many k as a text has
# tokens. Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    colt5-attention==0.11.2 local-attention==1.11.2 einops==0.8.2 torch==2.13.0 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
from importlib.metadata import version

import torch
from colt5_attention import CoordinateDescentRouter, topk

print("colt5-attention", version("colt5-attention"))
torch.set_num_threads(1)
TEXTS, TOKENS, K = 500, 20, 8
scores = torch.randn(TEXTS, 512, generator=torch.Generator().manual_seed(0))


def padding(indices):
    return (indices >= TOKENS).sum(-1).float().mean().item()


for length in (TOKENS, 64, 512):
    x = scores[:, :length].clone().requires_grad_()
    mask = (torch.arange(length) < TOKENS).expand(TEXTS, -1)
    hidden = x.masked_fill(~mask, -torch.finfo(x.dtype).max)
    right = torch.topk(hidden, K).indices
    masked, unmasked, mended = topk(x, K, mask=mask), topk(x, K), topk(hidden, K, mask=mask)
    of_a_text = len(set(right[0].tolist()) & set(masked.indices[0].tolist()))
    print(f"rows of {length}: {padding(masked.indices):.2f} of {K} are padding, with the scores filled",
          f"{padding(mended.indices):.2f}; the first text keeps {of_a_text} of its {K} best tokens")
    assert torch.equal(masked.indices, unmasked.indices) and torch.equal(masked.values, unmasked.values)
    assert torch.equal(mended.indices, right) and padding(mended.indices) == 0
    assert bool((masked.gates == 1).all())
    assert bool((masked.coor_descent_values[masked.indices >= TOKENS] == 0).all())
    expected = K * (1 - TOKENS / length)  # as by lot
    assert abs(padding(masked.indices) - expected) < 0.15
    assert torch.equal(masked.indices, right) == (length == TOKENS)
    for chosen in (masked, mended):
        gradient, = torch.autograd.grad(chosen.values.sum(), x, retain_graph=True)
        assert bool(((gradient != 0).sum(1) >= K - 1).all())

torch.manual_seed(0)
router = CoordinateDescentRouter(dim=16)
states, mask = torch.randn(50, 64, 16), (torch.arange(64) < TOKENS).expand(50, -1)
with torch.no_grad():
    routed = router(states, num_tokens=K, mask=mask)
print(f"the router of the package: {padding(routed.indices):.2f} of {K} are padding")
assert padding(routed.indices) == 0
PYTHON
echo "as seen"
