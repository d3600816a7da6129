#!/usr/bin/env bash
# ema-pytorch 0.8.3: PostHocEMA and KarrasEMA decay once for update_every steps as if for one, so the average keeps the
# first weights of the training.
#
# Karras and others average weights with the decay (1 - 1/t) ** (gamma + 1) at each step t, so that the average always
# reaches back over the same share of the training, and a sigma_rel of 0.1 means a spread of 10% of it. To save time the
# classes update at each update_every-th step only, 100 by default and 10 in the README. They decay by the number of the
# step all the same, 100 times too little. After 20,000 steps with sigma_rel 0.1 the average's weights are, on average,
# those of step 1,464, when they should be those of step 17,762, and with update_every=10 those of step 8,847. The
# weights of the first 100 steps have a share of 63%. PostHocEMA computes averages of other spreads from its checkpoints
# after training, by the formula, which they don't follow: the one for sigma_rel 0.15 has the mean step 827 in place of
# 16,401. So the average is a model from the beginning of the training, worse than the last weights, and with no hint of
# why. EMA, the class with a fixed decay, is right.
#
# Pass update_every=1. Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check ema-pytorch==0.8.3 torch==2.13.0 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import torch
from ema_pytorch import KarrasEMA, PostHocEMA

print("ema-pytorch", version("ema-pytorch"), "torch", torch.__version__)
STEPS = 20_000


def run(average, model):
    """The weight of the model is the number of the step, and 1 in the second place for the first 100 steps."""
    for step in range(STEPS):
        model.weight.data[0, 0] = step
        model.weight.data[0, 1] = step < 100
        average.update()


means, firsts = {}, {}
for every in (1, 10, 100):
    model = torch.nn.Linear(2, 1, bias=False).double()
    average = KarrasEMA(model, sigma_rel=0.1, update_every=every)
    run(average, model)
    means[every], firsts[every] = average.ema_model.weight[0].tolist()
    print(f"update_every={every}: the mean step is {means[every]:.0f} of {STEPS},",
          f"the first 100 steps have a share of {firsts[every]:.3f}")
right = STEPS * (average.gamma + 1) / (average.gamma + 2)
print(f"by the formula {right:.0f}")
assert abs(means[1] - right) < 0.001 * STEPS and firsts[1] < 1e-6, "not right for each step"
assert means[100] < 0.1 * STEPS and means[10] < 0.5 * STEPS and firsts[100] > 0.5, "the average has forgotten the start"

model = torch.nn.Linear(2, 1, bias=False).double()
posthoc = PostHocEMA(model, sigma_rels=(0.05, 0.28), checkpoint_every_num_steps=2000, checkpoint_dtype=torch.float64)
run(posthoc, model)
made = posthoc.synthesize_ema_model(sigma_rel=0.15)
gamma = made.gamma
print(f"made after training for sigma_rel 0.15: mean step {made.ema_model.weight[0, 0].item():.0f},",
      f"by the formula {STEPS * (gamma + 1) / (gamma + 2):.0f}")
assert made.ema_model.weight[0, 0].item() < 0.3 * STEPS, "the average of another spread is right now"
PYTHON
echo "as seen"
