#!/usr/bin/env bash
# torch-optimizer 0.3.0: RAdam gives all parameter groups the learning rate of the first, so that a head learns at the
# rate of its encoder, and layer-wise decay is none.
#
# Fine-tuning takes groups of parameters with rates of their own: a small one for the pretrained encoder, a larger one
# for the new head, or one for each layer. RAdam keeps the step size of the last ten steps in a buffer, to compute it
# once for all parameters. The size has the learning rate in it, and the buffer is a default of the optimizer, one list
# for all groups. The first group fills it at each step, and the others read its size. With the rates 0.00002 and 0.001
# the head moves as with 0.00002, to the last bit, a fiftieth of what it should, and the task isn't learned. With the
# head first in the list the encoder moves fifty times too far, away from what it had learned, and a second group with
# the rate 0 is not frozen. All 22 other optimizers of the package respect the rates, and so does torch.optim.RAdam. No
# warning comes.
#
# It was reported in 2020 and closed as mended, at https://github.com/jettify/pytorch-optimizer/issues/96, but groups
# get buffers of their own only where their betas differ. Take torch.optim.RAdam. Seen in November 2026 with Python
# 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch-optimizer==0.3.0 pytorch-ranger==0.1.1 \
    torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
from importlib.metadata import version

import torch
import torch_optimizer

print("torch-optimizer", version("torch-optimizer"), "torch", torch.__version__)
torch.set_num_threads(1)
torch.manual_seed(0)
ENCODER, HEAD = torch.randn(2, 6, 4)


def move(optimizer, *groups, steps=20):
    """Returns how far each group's parameter moves, with the same gradients for all."""
    parameters = [torch.nn.Parameter(start.clone()) for start, _ in groups]
    stepped = optimizer([{"params": [p], **options} for p, (_, options) in zip(parameters, groups)], lr=0.001)
    for step in range(steps):
        for p in parameters:
            p.grad = torch.randn(p.shape, generator=torch.Generator().manual_seed(step))
        stepped.step()
    return [p.detach() - start for p, (start, _) in zip(parameters, groups)]


def names():
    """All optimizers of the package but Lookahead, which wraps another."""
    return [cls for name, cls in torch_optimizer._NAME_OPTIM_MAP.items() if name != "lookahead"]


ignore = []
for optimizer in [*names(), torch.optim.RAdam]:
    encoder, head = move(optimizer, (ENCODER, {"lr": 0.00002}), (HEAD, {"lr": 0.001}))
    alone, = move(optimizer, (HEAD, {"lr": 0.001}))
    share = (head.norm() / alone.norm()).item()
    if not torch.equal(head, alone):
        ignore.append(optimizer)
        print(f"{optimizer.__module__}.{optimizer.__name__}: the head moves by {share:.4f} of what it should")
assert ignore == [torch_optimizer.RAdam] and len(names()) == 23
slow, = move(torch_optimizer.RAdam, (HEAD, {"lr": 0.00002}))
encoder, head = move(torch_optimizer.RAdam, (ENCODER, {"lr": 0.00002}), (HEAD, {"lr": 0.001}))
assert torch.equal(head, slow)
alone, = move(torch_optimizer.RAdam, (HEAD, {"lr": 0.001}))
right, = move(torch.optim.RAdam, (HEAD, {"lr": 0.001}))
assert torch.allclose(alone, right, rtol=0.01, atol=1e-6) and abs(head.norm() / right.norm() - 1 / 50) < 0.001
head, encoder = move(torch_optimizer.RAdam, (HEAD, {"lr": 0.001}), (ENCODER, {"lr": 0.00002}))
right, = move(torch.optim.RAdam, (ENCODER, {"lr": 0.00002}))
print(f"with the head first the encoder moves {encoder.norm() / right.norm():.1f} times too far")
assert abs(encoder.norm() / right.norm() - 50) < 2
_, frozen = move(torch_optimizer.RAdam, (HEAD, {"lr": 0.001}), (ENCODER, {"lr": 0.0}))
_, other = move(torch_optimizer.RAdam, (HEAD, {"lr": 0.001}), (HEAD, {"lr": 0.0, "betas": (0.9, 0.99)}))
print(f"a group with the rate 0 moves by {frozen.norm():.4f}, with other betas by {other.norm():.4f}")
assert frozen.norm() > 0.001 and other.norm() == 0

inputs = torch.randn(512, 16)
labels = (inputs[:, :8].sum(1) > 0).long()
for optimizer, low, high in ((torch_optimizer.RAdam, 0.4, 0.75), (torch.optim.RAdam, 0.9, 1)):
    torch.manual_seed(1)
    encoder, head = torch.nn.Linear(16, 32), torch.nn.Linear(32, 2)
    stepped = optimizer([{"params": encoder.parameters(), "lr": 0.00002}, {"params": head.parameters(), "lr": 0.01}])
    for _ in range(300):
        stepped.zero_grad()
        logits = head(encoder(inputs).tanh())
        torch.nn.functional.cross_entropy(logits, labels).backward()
        stepped.step()
    right = (logits.argmax(1) == labels).float().mean().item()
    print(f"{optimizer.__module__}: {right:.1%} are right after 300 steps with a rate of 0.01 for the head")
    assert low < right <= high
PYTHON
echo "as seen"
