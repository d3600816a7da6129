#!/usr/bin/env bash
# pytorch-accelerated 0.1.61: with warmup, CosineLrScheduler drops to the minimum as many epochs before the end as the
# warmup is long, so that with a warmup of half the training nothing else is left.
#
# CosineLrScheduler raises the rate linearly in num_warmup_epochs and lowers it by a cosine, "between any warmup or
# cooldown epochs", until total_num_epochs, "inclusive of any warmup and cooldown epochs". The cosine has the right
# length, total minus warmup. But the question whether it is over compares the number of all updates with that length,
# where it should be the total. So for as many updates as the warmup had, the rate is lr_min, and it gets there in one
# step: with 10 epochs and 3 of warmup, from 41% of the rate to nothing, for 3 epochs. With 5 of warmup the peak is
# never reached, and all steps together are half as long as they should be. What is lost is the end of the decay, where
# the loss falls most, and the time of the last epochs. warmup_starting_lr_ratio is wrong besides: the start is this
# share of the rate, and what is added in the warmup is the whole rate, so that with 0.5 and 10 steps the rate rises to
# 1.4 times itself and falls back. Without warmup the cosine is right to its end. No warning comes.
#
# Take get_cosine_schedule_with_warmup of transformers, or LambdaLR with the formula below. Seen in November 2026 with
# Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pytorch-accelerated==0.1.61 accelerate==1.15.0 \
    torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/python" -W ignore - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
from importlib.metadata import version
from math import cos, pi

import torch
from pytorch_accelerated.schedulers import CosineLrScheduler

print("pytorch-accelerated", version("pytorch-accelerated"), "torch", torch.__version__)
STEPS = 10                  # in an epoch


def rates(epochs, warmup, **options):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler = CosineLrScheduler(optimizer, epochs, STEPS, num_warmup_epochs=warmup, lr_min=0.0, **options)
    seen = []
    for _ in range(epochs * STEPS):
        scheduler.step()
        seen.append(optimizer.param_groups[0]["lr"])
    return seen


def formula(epochs, warmup):
    """A linear warmup from 1e-6, and a cosine to 0 at the end."""
    total, rise = epochs * STEPS, warmup * STEPS
    up = [1e-6 + step / rise * (1 - 1e-6) for step in range(rise)]
    return up + [0.5 * (1 + cos(pi * step / (total - rise))) for step in range(total - rise)]


for warmup in (0, 1, 2, 3, 5):
    seen, right = rates(10, warmup), formula(10, warmup)
    lost = sum(rate == 0 for rate in seen)
    same = [abs(a - b) < 1e-9 for a, b in zip(seen, right)]
    area = sum(seen) / sum(right)
    print(f"{warmup} of 10 epochs of warmup: the last {lost} of 100 steps have a rate of 0; before that"
          f" {seen[-lost - 1]:.2f}; all rates together are {area:.0%} of the formula's, the highest is {max(seen):.2f}")
    assert lost == warmup * STEPS and all(same[: 100 - lost]) and not any(same[100 - lost:])
seen = rates(10, 3)
assert 0.40 < seen[69] < 0.42 and seen[70] == 0
assert max(rates(10, 5)) < 1 and sum(rates(10, 5)) < 0.51 * sum(formula(10, 5))

seen = rates(10, 1, warmup_starting_lr_ratio=0.5)
print("a warmup from a half:", [round(rate, 2) for rate in seen[:12]])
assert seen[0] == 0.5 and abs(seen[9] - 1.4) < 1e-3 and seen[10] == 1
PYTHON
echo "as seen"
