#!/usr/bin/env bash
# pytorch-ignite 0.5.5: ReduceLROnPlateauScheduler drops min_lr, so the learning rate falls until nothing is learnt.
#
# The handler lowers the learning rate each time that a measure stops improving. It wraps ReduceLROnPlateau of PyTorch
# and passes its arguments on: "scheduler_kwargs: Keyword arguments to be passed to the wrapped ReduceLROnPlateau". One
# of them is min_lr, below which the rate is not to fall. Unless param_group_index is given too, the handler writes 0
# over it. With param_group_index=1 it puts min_lr at the second place of a list whose first place is read, which is 0.
# Only param_group_index=0 keeps the floor. Validation loss is noisy at the end of fine-tuning, so most evaluations find
# no improvement: after 20 of them with factor 0.5 the rate is 4e-11, where PyTorch's scheduler with the same arguments
# stays at 5e-6. A loss that would still fall does so no more: in the toy training below it goes from 2.00 to 0.97, and
# to 0.02 with the floor. No warning comes.
#
# Attach a handler that calls torch.optim.lr_scheduler.ReduceLROnPlateau itself. Seen in November 2026 with Python 3.11.
# The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pytorch-ignite==0.5.5 torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import ignite
import torch
from ignite.engine import Engine
from ignite.handlers import ReduceLROnPlateauScheduler
from torch.optim.lr_scheduler import ReduceLROnPlateau

print("pytorch-ignite", ignite.__version__, "torch", torch.__version__)
SETTINGS = dict(factor=0.5, patience=0, min_lr=5e-6, eps=0.0)


def optimizer():
    return torch.optim.AdamW([{"params": [torch.zeros(1, requires_grad=True)]} for _ in range(2)], lr=2e-5)


def rates(optimizer):
    return [group["lr"] for group in optimizer.param_groups]


def by_ignite(evaluations=20, **group):
    evaluator, tuned = Engine(lambda *_: None), optimizer()
    handler = ReduceLROnPlateauScheduler(tuned, "loss", **SETTINGS, **group)
    for _ in range(evaluations):
        evaluator.state.metrics["loss"] = 1.0
        handler(evaluator)
    return rates(tuned)


tuned = optimizer()
scheduler = ReduceLROnPlateau(tuned, **SETTINGS)
for _ in range(20):
    scheduler.step(1.0)
print("PyTorch: the rates of the two groups after 20 evaluations", rates(tuned))
assert rates(tuned) == [5e-6, 5e-6]
for group, seen in (({}, [2e-5 / 2**19] * 2), ({"param_group_index": 0}, [5e-6, 2e-5]),
                    ({"param_group_index": 1}, [2e-5, 2e-5 / 2**19])):
    print("ignite", group, by_ignite(**group))
    assert by_ignite(**group) == seen, "otherwise than seen"


def train(ignites):
    """The loss after 4,000 steps with an evaluation, whose result is noise, after each 20."""
    weight = torch.full((1,), 2.0, requires_grad=True)
    tuned = torch.optim.SGD([weight], lr=2e-3)
    settings = dict(factor=0.5, patience=2, min_lr=5e-4, eps=0.0)
    if ignites:
        evaluator = Engine(lambda *_: None)
        handler = ReduceLROnPlateauScheduler(tuned, "loss", **settings)
    else:
        handler = ReduceLROnPlateau(tuned, **settings)
    noise = torch.Generator().manual_seed(0)
    for step in range(4000):
        tuned.zero_grad()
        loss = weight.square().sum() / 2
        loss.backward()
        tuned.step()
        if step % 20 == 19:
            noisy = loss.item() + torch.randn((), generator=noise).item()
            if ignites:
                evaluator.state.metrics["loss"] = noisy
                handler(evaluator)
            else:
                handler.step(noisy)
    return weight.square().sum().item() / 2


losses = train(True), train(False)
print(f"a loss of 2.00 falls to {losses[0]:.2f} with ignite's handler, to {losses[1]:.2f} with PyTorch's scheduler")
assert 0.8 < losses[0] < 1.2 and losses[1] < 0.05, "otherwise than seen"
PYTHON
echo "as seen"
