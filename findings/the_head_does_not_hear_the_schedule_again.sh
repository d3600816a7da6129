#!/usr/bin/env bash
# lora-pro-adamw 0.2.1: after load_state_dict a schedule reaches the adapters only, and all other weights keep the
# learning rate of the checkpoint to the end.
#
# LoRAProAdamW trains the adapters itself, and the other weights that are trained, as a new classifier, by an AdamW of
# torch. Its param_groups are those of this AdamW and one of its own. A scheduler writes its learning rates there.
# load_state_dict passes the state on to the AdamW, and torch's method makes new groups, while param_groups of the
# optimizer still holds the old ones. From then on the scheduler writes to groups that nobody reads. So in a run that
# goes on from a checkpoint the classifier stays at the rate of that moment: with a linear decay from 1e-2 to 0 that
# stops half way, it goes on with 5e-3, in the last step too. If the checkpoint falls into the warmup, the rate stays
# small for ever. What get_last_lr and the logs show is the schedule, and nothing warns.
#
# After load_state_dict set optimizer.param_groups = [*optimizer._base.param_groups, optimizer._lora_group], and make
# the scheduler or load its state after that. Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check lora-pro-adamw==0.2.1 torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import copy
from importlib.metadata import version

import torch
from lora_pro import LoRAProAdamW
from torch import nn

print("lora-pro-adamw", version("lora-pro-adamw"), "torch", torch.__version__)
torch.set_num_threads(1)
STEPS = 20


class Adapted(nn.Module):
    """A frozen layer with an adapter."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(0.3 * torch.randn(8, 8), requires_grad=False)
        self.lora_A = nn.Parameter(0.3 * torch.randn(2, 8))
        self.lora_B = nn.Parameter(torch.zeros(8, 2))
        self.r, self.lora_alpha = 2, 4

    def forward(self, x):
        return x @ (self.weight + self.lora_alpha / self.r * self.lora_B @ self.lora_A).T


class Run:
    def __init__(self, schedule):
        torch.manual_seed(0)
        self.model = nn.Sequential(Adapted(), nn.Tanh(), nn.Linear(8, 3)).double()
        self.optimizer = LoRAProAdamW(self.model, lr=1e-2)
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, schedule)

    def steps(self, first, last):
        moved = None
        for step in range(first, last):
            generator = torch.Generator().manual_seed(step)
            texts = torch.randn(16, 8, generator=generator, dtype=torch.float64)
            labels = torch.randint(0, 3, (16,), generator=generator)
            self.optimizer.zero_grad()
            nn.functional.cross_entropy(self.model(texts), labels).backward()
            before = self.model[2].bias.detach().clone()
            self.optimizer.step()
            moved = (self.model[2].bias.detach() - before).abs().max().item()
            self.scheduler.step()
        return moved

    def save(self):
        return copy.deepcopy([self.model.state_dict(), self.optimizer.state_dict(), self.scheduler.state_dict()])

    def load(self, state, mend=False):
        for part, saved in zip((self.model, self.optimizer, self.scheduler), copy.deepcopy(state)):
            part.load_state_dict(saved)
            if mend and part is self.optimizer:
                part.param_groups = [*part._base.param_groups, part._lora_group]
        return self

    def rates(self):
        group = self.optimizer._base.param_groups[0]
        return self.scheduler.get_last_lr()[0], group["lr"], self.optimizer._lora_group["lr"]

    def distance(self, other):
        return [max((one - two).abs().max().item() for one, two in zip(mine.parameters(), theirs.parameters()))
                for mine, theirs in zip((self.model[0], self.model[2]), (other.model[0], other.model[2]))]


for name, saved_at, schedule in (("linear decay to 0", STEPS // 2, lambda step: 1 - step / STEPS),
                                 ("warmup of 10 steps", 2, lambda step: min(1, (step + 1) / 10))):
    whole = Run(schedule)
    whole.steps(0, saved_at)
    state = whole.save()
    whole.steps(saved_at, STEPS - 1)
    print(f"{name}: rates of schedule, classifier and adapters before the last step {whole.rates()}")
    again, mended = Run(schedule).load(state), Run(schedule).load(state, mend=True)
    saved = again.rates()[1]
    for run in (again, mended):
        run.steps(saved_at, STEPS - 1)
    rates = again.rates()
    print(f"  after a restart at step {saved_at}: {rates}; mended {mended.rates()}")
    assert rates[0] == rates[2] == whole.rates()[0] and rates[1] == saved != rates[0], "the schedule is heard now"
    assert mended.rates() == whole.rates()
    moves = [run.steps(STEPS - 1, STEPS) for run in (whole, again, mended)]
    print(f"  the last step moves the classifier by {moves[0]:.5f}, after the restart by {moves[1]:.5f},",
          f"mended {moves[2]:.5f}")
    far, near = again.distance(whole), mended.distance(whole)
    print(f"  at the end the classifier is {far[1]:.4f} away from that of the run without a restart,",
          f"mended {near[1]:.0e}")
    assert max(near) < 1e-9 and far[1] > 1e-3 and not 0.5 < moves[1] / moves[0] < 2
PYTHON
echo "as seen"
