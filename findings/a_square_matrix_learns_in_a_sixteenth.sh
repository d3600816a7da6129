#!/usr/bin/env bash
# tauon-optimizer 0.1.4: a square matrix is only changed in a sixteenth of its directions, and of another matrix all
# that lies outside of a square corner gets the plain gradient.
#
# Muon makes the singular values of its step equal. tauon says to do so in two iterations, with "exact orthogonalization
# in strictly 2 steps with zero accuracy loss" and "isotropic step sizes across all spectral directions". For the first
# iteration it takes the gradient's product with the slowest quarter of cosines over the rows and over the columns,
# and what it goes on with is this part alone. The rest of the gradient is dropped, in each step anew. So of a matrix
# of 64 by 64, as of 768 by 768, 15 of 16 directions never change: a linear layer that is to learn another one keeps
# 94% of its error for good, where Muon of torch learns it. Rows of a matrix have no order, so slow cosines over them
# are no better than others.
# Of a matrix that is not square, as the table of tokens and both layers of a feed-forward network, the first
# min(rows, columns) rows or columns go this way, and the others get the momentum as it is. Its size is that of the
# loss: with a gradient a thousand times smaller three quarters of a feed-forward layer go a thousand times slower, and
# with a large one they explode, while the corner does not notice.
#
# Use Muon of torch or another package for square and other matrices. Seen in November 2026 with Python 3.11. The script
# fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check tauon-optimizer==0.1.4 torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import torch
from tauon import tauon
from torch import nn

print("tauon-optimizer", version("tauon-optimizer"), "torch", torch.__version__)
torch.manual_seed(0)
torch.set_num_threads(1)
SIZE = 64


def step(gradient, optimizer=tauon, **options):
    """The change of a matrix of zeros by one step."""
    matrix = nn.Parameter(torch.zeros_like(gradient))
    matrix.grad = gradient.clone()
    optimizer([matrix], lr=1.0, weight_decay=0.0, **options).step()
    return -matrix.detach()


gradient = torch.randn(SIZE, SIZE)
values = torch.linalg.svdvals(step(gradient))
muon = torch.linalg.svdvals(step(gradient, torch.optim.Muon))
rank = int((values > 1e-4 * values[0]).sum())
wide = int((muon > 0.1 * muon[0]).sum())
print(f"singular values of a step of {SIZE} by {SIZE}: {rank} of {SIZE} are not 0, from {values[rank - 1]:.3f} to",
      f"{values[0]:.3f}; of Muon of torch {wide} have at least a tenth of the largest")
assert rank == SIZE // 4, "the step has its full rank now"
assert wide > 0.9 * SIZE

places = torch.arange(SIZE)
cosines = torch.cos(torch.pi * places[:, None] * (places[None] + 0.5) / SIZE)
cosines /= cosines.norm(dim=1, keepdim=True)
steps = [cosines @ step(torch.randn(SIZE, SIZE)) @ cosines.T for _ in range(20)]
inside = torch.zeros(SIZE, SIZE, dtype=torch.bool)
inside[:SIZE // 4, :SIZE // 4] = True
outside = max(change[~inside].abs().max().item() / change[inside].abs().max().item() for change in steps)
print(f"share of the directions that 20 steps use: {inside.float().mean():.4f}; the largest part outside {outside:.0e}")
assert outside < 1e-4 and inside.float().mean() == 1 / 16
dropped = cosines.T @ torch.where(inside, 0.0, torch.randn(SIZE, SIZE)) @ cosines
cosine = nn.functional.cosine_similarity(step(dropped).flatten(), dropped.flatten(), dim=0).item()
print(f"cosine of a gradient outside of them and its step: {cosine:.0e}, which rounding errors make")
assert abs(cosine) < 1e-4


def learn(optimizer, rate):
    """The relative error of a linear layer that is to become another one, after 1,000 steps."""
    torch.manual_seed(1)
    right = torch.randn(SIZE, SIZE) / SIZE ** 0.5
    layer = nn.Linear(SIZE, SIZE, bias=False)
    nn.init.zeros_(layer.weight)
    run = optimizer([layer.weight], lr=rate, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.LinearLR(run, 1.0, 0.0, 1000)
    for _ in range(1000):
        texts = torch.randn(256, SIZE)
        run.zero_grad()
        ((layer(texts) - texts @ right.T) ** 2).mean().backward()
        run.step()
        schedule.step()
    return float(((layer.weight - right) ** 2).sum() / (right ** 2).sum())


errors = {rate: learn(tauon, rate) for rate in (0.003, 0.02, 0.1)}
muon = learn(torch.optim.Muon, 0.02)
print(f"error after 1,000 steps: {[f'{error:.3f} at {rate}' for rate, error in errors.items()]},",
      f"Muon of torch {muon:.5f}")
assert min(errors.values()) > 0.9 and muon < 0.01

gradient = torch.randn(4 * SIZE, SIZE)
for scale in (1e-3, 1.0, 1e3):
    change = step(scale * gradient)
    corner, rest = (part.pow(2).mean().sqrt().item() for part in (change[:SIZE], change[SIZE:]))
    print(f"{4 * SIZE} by {SIZE}, gradient times {scale:g}: mean step of the first {SIZE} rows {corner:.4f},",
          f"of the others {rest:.4f}")
    assert torch.allclose(change[SIZE:] / scale, step(gradient)[SIZE:], rtol=1e-4), "all rows are treated alike now"
    assert 0.001 < corner < 1
PYTHON
echo "as seen"
