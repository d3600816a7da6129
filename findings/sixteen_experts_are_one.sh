#!/usr/bin/env bash
# PEER-pytorch 0.2.2: by default num_experts_per_head has no effect, and each head asks one expert in place of 16.
#
# PEER (He, 2024) is a layer of a million experts of one neuron each. Each head finds the num_experts_per_head experts
# that fit a token best, and adds up what they say, weighted by their scores; the README has 8 heads and 16 experts
# each, "he settled on 16". The package takes no softmax over the scores by default (non_competing_scores=True), but a
# ReLU of each, as Csordas and others found to be better, and for that it also cuts the number of experts to 1. So a
# token is read by 8 neurons in place of 128. num_experts_per_head=1, 16 or 64 give one output to the last bit, and
# one set of gradients: the experts of second rank never learn from a token, and a search over this number compares a
# model with itself. PEERLora does the same with its 4: lora_k says 16, and the rank of what is added is 4. Fitting
# 256 random pairs with 2 heads has an error of 0.86 after 300 steps, and of 0.33 with the 16 that were asked for, the
# same ReLU and the same weights at the beginning. A comment in the code says to "increase number of heads" for such
# scores, and the README nothing. A user asked why in 2024, at https://github.com/lucidrains/PEER-pytorch/issues/4,
# without an answer. No warning comes.
#
# Set layer.num_experts_per_head_topk = 16 after making the layer. Seen in November 2026 with Python 3.11. The script
# fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check PEER-pytorch==0.2.2 einx==0.4.3 einops==0.8.2 \
    torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
from importlib.metadata import version

import torch
from PEER_pytorch import PEER
from PEER_pytorch.PEERLora import PEERLora

print("PEER-pytorch", version("PEER-pytorch"), "torch", torch.__version__)
torch.set_num_threads(1)
DIM, HEADS, EXPERTS = 32, 2, 1024


def build(per_head, cls=PEER, mend=False, **options):
    torch.manual_seed(0)
    layer = cls(DIM, heads=HEADS, num_experts=EXPERTS, num_experts_per_head=per_head, **options)
    if mend:
        layer.num_experts_per_head_topk = per_head
    return layer


def asked(layer, token):
    """How many experts have a gradient from this token, and the output."""
    output = layer(token)
    output.square().sum().backward()
    table = next(p for n, p in layer.named_parameters() if n in ("weight_up_embed.weight", "proj_out_lora_b.weight"))
    return int((table.grad.abs().sum(-1) > 0).sum()), output.detach()


token = torch.randn(1, 1, DIM, generator=torch.Generator().manual_seed(1))
for cls in (PEER, PEERLora):
    numbers, outputs = zip(*(asked(build(n, cls), token) for n in (1, 16, 32)))
    mended, other = asked(build(16, cls, mend=True), token)
    softmax, _ = asked(build(16, cls, non_competing_scores=False), token)
    print(f"{cls.__name__}: with 1, 16 and 32 experts for each of {HEADS} heads a token asks {numbers} in all, mended"
          f" {mended}, with non_competing_scores=False {softmax}")
    assert numbers == (HEADS,) * 3 and torch.equal(outputs[0], outputs[1]) and torch.equal(outputs[0], outputs[2])
    assert HEADS * 12 < mended <= HEADS * 16 and HEADS * 12 < softmax <= HEADS * 16
    assert not torch.equal(other, outputs[0])
assert build(16, PEERLora).lora_k == 32

texts, answers = torch.randn(2, 1, 256, DIM, generator=torch.Generator().manual_seed(2))
errors = {}
for mend in (False, True):
    layer = build(16, mend=mend)
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.003)
    for _ in range(300):
        loss = (layer(texts) - answers).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    errors[mend] = loss.item()
print(f"256 pairs after 300 steps: error {errors[False]:.3f}, and {errors[True]:.3f} with 16 experts")
assert errors[False] > 2 * errors[True]
PYTHON
echo "as seen"
