#!/usr/bin/env bash
# pytorch_optimizer 4.1.0: DAdaptAdan and RACS take the longer steps the smaller the gradients are, so that a hundredth
# of the loss makes a hundred times the step.
#
# Adan divides by the root of the mean of squared gradients, so that steps don't depend on the size of the loss.
# DAdaptAdan, which finds its rate by itself, squares the gradient twice: grad_diff is replaced by its square, and the
# mean is taken of grad_diff times grad_diff. The root is then a square, and a step is one by the gradient. RACS (Gong
# and others, 2025) divides by the roots of a number for each row and one for each column whose products are to be
# near the squared gradients: the paper's iteration divides the one by the other. The package takes the mean square of
# the row and that of the column, so that the product is of the fourth power too. The latter begins at 1 and hides it
# for some hundred steps. Gradients of a large network are small for each weight, and smaller by the mean over a batch
# or a sum of losses with weights. Here a network learns with a loss of 0.06 to 0.08 by dadaptation's DAdaptAdan, of the
# authors, at each size of the loss. By the package's it is at 0.4, where guessing has it, and at more than 100 with a
# hundredth of the loss. RACS learns that one at first, to 0.01, and has 0.5 in the end. It looks like a learning rate
# that is too high. No warning comes.
#
# Take DAdaptAdan of dadaptation, and compute RACS as below. Seen in November 2026 with Python 3.11. The script fails if
# this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pytorch_optimizer==4.1.0 dadaptation==3.2 \
    torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
from importlib.metadata import version

import dadaptation
import torch
from pytorch_optimizer import RACS, DAdaptAdan

print("pytorch_optimizer", version("pytorch_optimizer"), "torch", torch.__version__)
torch.set_num_threads(1)


class Formula(torch.optim.Optimizer):
    """RACS as in the paper, algorithm 1."""

    def __init__(self, params, lr=1e-3, beta=0.9, alpha=0.05, gamma=1.01):
        super().__init__(params, {"lr": lr, "beta": beta, "alpha": alpha, "gamma": gamma})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                state, squares = self.state[p], p.grad.reshape(len(p), -1).square()
                q = torch.ones(len(squares))
                for _ in range(5):
                    s = squares.T @ q / q.square().sum()
                    q = squares @ s / s.square().sum()
                for name, new in (("s", s), ("q", q)):
                    state[name] = group["beta"] * state.get(name, new) + (1 - group["beta"]) * new
                update = p.grad.reshape(len(p), -1) / (state["q"][:, None] * state["s"]).sqrt()
                length = update.norm()
                limit = min(1, group["gamma"] * state.get("length", length) / length)
                state["length"] = length * limit
                p -= group["lr"] * group["alpha"] * limit * update.view_as(p)


def train(make, scale, steps=1200):
    torch.manual_seed(0)
    x = torch.randn(512, 16)
    y = torch.tanh(x @ torch.randn(16, 8) / 4)
    model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.Tanh(), torch.nn.Linear(64, 8))
    optimizer = make(model.parameters())
    losses = []
    for _ in range(steps):
        chosen = torch.randint(0, 512, (32,))
        loss = (model(x[chosen]) - y[chosen]).square().mean()
        optimizer.zero_grad()
        (scale * loss).backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


ends, best = {}, {}
for name, make in (
        ("DAdaptAdan", DAdaptAdan),
        ("of the authors", lambda parameters: dadaptation.DAdaptAdan(parameters, weight_decay=0.0)),
        ("RACS", RACS), ("by the paper", Formula)):
    for scale in (1, 0.1, 0.01):
        losses = train(make, scale)
        ends[name, scale] = sum(losses[-50:]) / 50
        best[name, scale] = min(losses)
        print(f"{name}, {scale} of the loss: {losses[0]:.3f} at first, {best[name, scale]:.4f} at best, "
              f"{ends[name, scale]:.4f} in the end")
for scale in (1, 0.1, 0.01):
    assert 0.05 < ends["of the authors", scale] < 0.1
    assert abs(ends["by the paper", scale] - ends["by the paper", 1]) < 1e-3 and ends["by the paper", 1] < 0.05
assert ends["DAdaptAdan", 1] > 0.35 and ends["DAdaptAdan", 0.01] > 100
assert ends["RACS", 0.01] > 0.4 and best["RACS", 0.01] < 0.03

rows, columns = torch.rand(6) + 0.5, torch.rand(4) + 0.5
for scale in (1.0, 0.1, 0.01):
    moved = {}
    for name, make in (("RACS", lambda p: RACS(p, gamma=1.5)), ("by the paper", Formula)):
        p = torch.nn.Parameter(torch.zeros(6, 4))
        optimizer = make([p])
        for _ in range(300):
            before = p.detach().clone()
            p.grad = scale * rows[:, None] * columns
            optimizer.step()
        moved[name] = (before - p.detach()) / (1e-3 * 0.05)
    expected = 1 / (scale * rows.square().mean().sqrt() * columns.square().mean().sqrt())
    print(f"gradient times {scale}: RACS moves by {moved['RACS'].mean():.3f}, not {moved['by the paper'].mean():.3f}")
    assert torch.allclose(moved["RACS"], expected.expand(6, 4), rtol=0.02)
    assert torch.allclose(moved["by the paper"], torch.ones(6, 4), rtol=0.02)
for scale in (1.0, 0.1):
    p = torch.nn.Parameter(torch.zeros(3))
    optimizer = DAdaptAdan([p])
    for _ in range(2):
        p.grad = torch.full((3,), scale)
        optimizer.step()
    mean = optimizer.state[p]["exp_avg_sq"]
    assert torch.allclose(mean, torch.full((3,), (1 - 0.99 ** 2) * scale ** 4), rtol=1e-3), "another power"
PYTHON
echo "as seen"
