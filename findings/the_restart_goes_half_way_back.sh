#!/usr/bin/env bash
# pytorch-lightning-spells 0.3.0: Lookahead does not save its slow weights, so after a restart its next sync goes half
# of the way back to the weights that the model was built with.
#
# Lookahead keeps a slow copy of all weights, and after each k steps of the inner optimizer moves model and copy to
# the point between both. state_dict gives the state of the inner optimizer only, and load_state_dict does not look
# at the model. The slow weights after a restart are those that the model had when the optimizer was made, which in the
# usual order (make the model, make the optimizer, load both) are the random or pretrained ones. So k steps after
# the restart half of all that was learnt is lost, with alpha=0.5, and no warning comes. Also a schedule that is made
# for this optimizer is not heard after load_state_dict: it writes to param_groups, which were those of the inner
# optimizer until that got new ones. The learning rate stays where the checkpoint has it.
#
# Make the optimizer after the weights are loaded, then load its state, set optimizer.param_groups to
# optimizer.optimizer.param_groups, and make the schedule last. Seen in November 2026 with Python 3.11. The script fails
# if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps pytorch-lightning-spells==0.3.0
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import copy
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import nn

# The module of the optimizers alone: the rest of the package needs Lightning.
sys.path.insert(0, str(Path(find_spec("pytorch_lightning_spells").origin).parent))
from optimizers import Lookahead  # noqa: E402

print("pytorch-lightning-spells", version("pytorch-lightning-spells"), "torch", torch.__version__)
torch.set_num_threads(1)
STEPS, K = 300, 6
rng = torch.Generator().manual_seed(0)
texts = torch.randn(512, 16, generator=rng, dtype=torch.float64)
right = torch.randn(4, 16, generator=rng, dtype=torch.float64)
labels = (texts @ right.T).argmax(1)


class Run:
    def __init__(self, weights=None):
        torch.manual_seed(1)
        self.model = nn.Linear(16, 4).double()
        if weights:
            self.model.load_state_dict(weights)
        self.optimizer = Lookahead(torch.optim.SGD(self.model.parameters(), lr=0.5, momentum=0.9), alpha=0.5, k=K)

    def schedule(self):
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda step: 1 - step / STEPS)
        return self

    def steps(self, first, last):
        losses = []
        for step in range(first, last):
            batch = torch.randperm(512, generator=torch.Generator().manual_seed(step))[:64]
            self.optimizer.zero_grad()
            nn.functional.cross_entropy(self.model(texts[batch]), labels[batch]).backward()
            self.optimizer.step()
            self.scheduler.step()
            losses.append(self.loss())
        return losses

    def loss(self):
        with torch.no_grad():
            return nn.functional.cross_entropy(self.model(texts), labels).item()

    def state(self):
        return copy.deepcopy([self.model.state_dict(), self.optimizer.state_dict(), self.scheduler.state_dict()])

    def rate(self):
        return self.optimizer.optimizer.param_groups[0]["lr"]


whole = Run().schedule()
start = copy.deepcopy(whole.model.weight.detach())
whole.steps(0, STEPS // 2)
state, before = whole.state(), whole.loss()
learnt = copy.deepcopy(whole.model.weight.detach())
on = whole.steps(STEPS // 2, STEPS - 1)
print(f"loss at half {before:.4f}; without a restart {max(on[:K]):.4f} at most in the next {K} steps,",
      f"{on[-1]:.4f} at the end")

again = Run().schedule()
for part, saved in zip((again.model, again.optimizer, again.scheduler), copy.deepcopy(state)):
    part.load_state_dict(saved)
assert again.loss() == before
losses = again.steps(STEPS // 2, STEPS // 2 + K)
back = ((again.model.weight - learnt).norm() / (start - learnt).norm()).item()
print(f"after a restart: {[f'{loss:.4f}' for loss in losses]}, {back:.2f} of the way back to the first weights")
assert max(losses[:-1]) < 1.1 * before < 1.5 * before < losses[-1], "the slow weights are saved now"
assert 0.4 < back < 0.6

again.steps(STEPS // 2 + K, STEPS - 1)
rates = again.rate(), again.scheduler.get_last_lr()[0], whole.rate()
print(f"learning rate before the last step {rates[0]:.4f}, by the schedule {rates[1]:.4f}, without a restart",
      f"{rates[2]:.4f}")
assert rates[1] == rates[2] < 0.01 < rates[0] == 0.25, "the schedule is heard now"

mended = Run(state[0])
mended.optimizer.load_state_dict(copy.deepcopy(state[1]))
mended.optimizer.param_groups = mended.optimizer.optimizer.param_groups
mended.schedule()
mended.scheduler.load_state_dict(state[2])
for group in mended.optimizer.param_groups:
    group["lr"] = mended.scheduler.get_last_lr()[0]
losses = mended.steps(STEPS // 2, STEPS - 1)
print(f"in the order of above: {max(losses[:K]):.4f} at most in the next {K} steps, {losses[-1]:.4f} at the end,",
      f"learning rate {mended.rate():.4f}")
assert max(losses[:K]) < 1.1 * before and mended.rate() == whole.rate()
PYTHON
echo "as seen"
