#!/usr/bin/env bash
# bitsandbytes 0.50.2: LAMB and LARS never move a weight tensor that begins with zeros, as biases and LoRA's B do.
#
# LAMB scales the step of each tensor to the length of the tensor. Where that length is 0, the authors' code takes the
# plain step. bitsandbytes.optim.LAMB bounds the length of the step by that of the tensor instead: 0 stays 0 for ever,
# with each gradient, here on the CPU. In a BERT from scratch that is each bias, those of LayerNorm among them, and in a
# fine-tuned one the bias of the new head. LoRA begins with B = 0: the loss of an adapter after 200 steps is the loss
# before, to the last digit, where AdamW and LAMB by the formula bring it below a hundredth. LAMB32bit and LARS do the
# same, and LAMB8bit does for tensors of less than 4,096 numbers. It has no bound at all for larger ones, so that it is
# AdamW8bit for those, to the last bit. And a long tensor is moved by AdamW's step, where LAMB's is 13 times as long.
# The page of the optimizer speaks of a trust ratio that keeps updates from being overly large or small. No warning
# comes.
#
# The same mistake was made and mended in another LAMB, at https://github.com/cybertronai/pytorch-lamb/pull/6; that the
# bound is missing in LAMB8bit stands in https://github.com/bitsandbytes-foundation/bitsandbytes/pull/1998. Take a LAMB
# of another package. Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check bitsandbytes==0.50.2 torch==2.13.0 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
import bitsandbytes
import torch
from bitsandbytes.optim import LAMB, LARS, AdamW, AdamW8bit, LAMB8bit, LAMB32bit

print("bitsandbytes", bitsandbytes.__version__, "torch", torch.__version__)


class Formula(torch.optim.Optimizer):
    """LAMB as the paper and its authors' code have it, without decay."""

    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                count = state["count"] = state.get("count", 0) + 1
                state["m"] = 0.9 * state.get("m", 0) + 0.1 * p.grad
                state["v"] = 0.999 * state.get("v", 0) + 0.001 * p.grad ** 2
                update = state["m"] / (1 - 0.9 ** count) / ((state["v"] / (1 - 0.999 ** count)).sqrt() + 1e-8)
                ratio = p.norm() / update.norm() if p.any() and update.any() else 1
                p -= group["lr"] * ratio * update


def make(optimizer, parameters, lr):
    others = {LARS: {"momentum": 0.9}, AdamW: {"weight_decay": 0.0}, AdamW8bit: {"weight_decay": 0.0}}
    return optimizer(parameters, lr=lr, **others.get(optimizer, {}))


def train(optimizer, model, x, y, lr=0.01, steps=200):
    optimizer = make(optimizer, [p for p in model.parameters() if p.requires_grad], lr)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def layer(width=32, out=1):
    model = torch.nn.Linear(width, out)
    torch.nn.init.normal_(model.weight, std=0.02)
    torch.nn.init.zeros_(model.bias)
    return model


class Adapted(torch.nn.Module):
    """A frozen layer with LoRA's two matrices."""

    def __init__(self, width, rank=8):
        super().__init__()
        self.frozen = torch.nn.Linear(width, width).requires_grad_(False)
        self.a = torch.nn.Parameter(torch.randn(rank, width) / width ** 0.5)
        self.b = torch.nn.Parameter(torch.zeros(width, rank))

    def forward(self, x):
        return self.frozen(x) + x @ self.a.T @ self.b.T


torch.manual_seed(0)
X = torch.randn(256, 32)
for optimizer, stays in ((LAMB, True), (LAMB32bit, True), (LAMB8bit, True), (LARS, True), (AdamW, False),
                         (Formula, False)):
    torch.manual_seed(1)
    model = torch.nn.Sequential(layer(32, 32), torch.nn.LayerNorm(32), torch.nn.Tanh(), layer(32))
    losses = train(optimizer, model, X, X[:, :1] + 1)
    biases = torch.cat([p.detach() for name, p in model.named_parameters() if name.endswith("bias")])
    print(f"{optimizer.__name__}: {int((biases == 0).sum())} of {len(biases)} biases are 0, loss {losses[-1]:.3f}")
    assert bool((biases == 0).all()) == stays and losses[-1] < losses[0]

for optimizer, stays in ((LAMB, True), (LAMB32bit, True), (LAMB8bit, True), (LARS, True), (AdamW, False),
                         (Formula, False)):
    torch.manual_seed(1)
    model = Adapted(32)
    change = torch.randn(32, 2) @ torch.randn(2, 32) / 32
    with torch.no_grad():
        y = model.frozen(X) + X @ change
    losses = train(optimizer, model, X, y, 0.05)
    print(f"{optimizer.__name__}, LoRA: loss {losses[0]:.6f}, {losses[-1]:.6f} after 200 steps")
    assert losses[-1] == losses[0] and not model.b.any() if stays else losses[-1] < losses[0] / 100

print("the first steps of large tensors:")
for start, shown in ((torch.zeros(64, 64), "zeros"), (torch.full((64, 64), 10.0), "tens")):
    steps = {}
    for optimizer in (LAMB, LAMB8bit, AdamW, AdamW8bit, Formula):
        torch.manual_seed(1)
        p = torch.nn.Parameter(start.clone())
        stepped = make(optimizer, [p], 0.01)
        for _ in range(3):
            p.grad = torch.randn(64, 64)
            stepped.step()
        steps[optimizer] = p.detach() - start
        print(f"{shown}: {optimizer.__name__} moves by {steps[optimizer].norm():.3f}")
    assert torch.equal(steps[LAMB8bit], steps[AdamW8bit]) and steps[LAMB8bit].any()
    if shown == "zeros":
        assert not steps[LAMB].any()
    else:
        assert torch.equal(steps[LAMB], steps[AdamW]) and 12 < steps[Formula].norm() / steps[LAMB].norm() < 14
PYTHON
echo "as seen"
