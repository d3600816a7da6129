#!/usr/bin/env bash
# pytorch-accelerated 0.1.61: WSDLrScheduler saves everything but the number of its steps, so that a run that goes on
# from a saved state warms up again and never comes to its decay.
#
# WSD keeps the rate constant after a warmup and lowers it in the last part of the training, here a fifth, which is
# where most of the loss falls. save_training_state "saves everything needed for an exact training resume". The state of
# the scheduler is its __dict__ without the optimizer and without the names that begin with an underscore. The number of
# updates is _num_updates. So after resume_from the scheduler counts from 0: the rate falls from 1 to 0.000001, rises in
# a warmup as at the very beginning, and stays at the top to the end. A run of 100 steps that was stopped after 60 ends
# at a rate of 1 in place of 0.02, and one that was stopped in the decay jumps from the low rate to that of the warmup
# and up to the full one. is_continuation_from_checkpoint counts from 0 too, for which it is meant. CosineLrScheduler
# has a list of its own with the number in it, and goes on as it should. No warning comes.
#
# Save scheduler._num_updates yourself, and set it after the scheduler is made, as below. Seen in November 2026 with
# Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pytorch-accelerated==0.1.61 accelerate==1.15.0 \
    torch==2.13.0 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" -W ignore - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
import os
import tempfile
from functools import partial
from importlib.metadata import version

import torch
from pytorch_accelerated import Trainer
from pytorch_accelerated.callbacks import TrainerCallback
from pytorch_accelerated.schedulers import CosineLrScheduler, WSDLrScheduler
from torch.utils.data import TensorDataset

print("pytorch-accelerated", version("pytorch-accelerated"), "torch", torch.__version__)
torch.set_num_threads(1)
os.chdir(tempfile.mkdtemp())
DATA = TensorDataset(torch.randn(40, 4), torch.randn(40, 1))           # 10 batches of 4 in an epoch
WSD = partial(WSDLrScheduler, total_steps=100, num_warmup_steps=10, decay_phase_ratio=0.2)
COSINE = partial(CosineLrScheduler, total_num_epochs=10, num_update_steps_per_epoch=10)


class Watch(TrainerCallback):
    """Notes the rate of each step, and saves the state after some epoch."""

    def __init__(self, save_at=None, count_from=None):
        self.rates, self.save_at, self.count_from = [], save_at, count_from

    def on_training_run_start(self, trainer, **kwargs):
        if self.count_from is not None:
            trainer.scheduler._num_updates = self.count_from

    def on_train_step_end(self, trainer, **kwargs):
        self.rates.append(trainer.optimizer.param_groups[0]["lr"])

    def on_training_run_epoch_end(self, trainer, **kwargs):
        if trainer.run_history.current_epoch == self.save_at:
            trainer.save_training_state("state")
            self.saved_steps = trainer.scheduler._num_updates


def train(scheduler, epochs=10, resume=None, **options):
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    watch = Watch(**options)
    trainer = Trainer(model, torch.nn.MSELoss(), torch.optim.SGD(model.parameters(), lr=1.0), callbacks=[watch])
    trainer.train(DATA, epochs, per_device_batch_size=4, create_scheduler_fn=scheduler, resume_from=resume)
    return watch


for name, scheduler, forgets in (("WSDLrScheduler", WSD, True), ("CosineLrScheduler", COSINE, False)):
    for stop in (6, 9):
        whole = train(scheduler, save_at=stop)
        right = whole.rates[stop * 10:]
        rest = train(scheduler, resume="state").rates[: len(right)]     # it goes on for an epoch more
        print(f"{name}, stopped after {stop} epochs: the next rates are {[round(r, 2) for r in rest[:4]]} and the last"
              f" is {rest[-1]:.2f}; without the stop {[round(r, 2) for r in right[:4]]} and {right[-1]:.2f}")
        assert len(rest) == len(right) and (rest == right) != forgets
        if forgets:
            assert rest[1:] == whole.rates[1: len(rest)]               # the beginning once more
            told = train(scheduler, resume="state", count_from=whole.saved_steps).rates[: len(right)]
            assert told == right
PYTHON
echo "as seen"
