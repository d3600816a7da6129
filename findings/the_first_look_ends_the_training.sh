#!/usr/bin/env bash
# grades 1.0.6: at its first look at the weights the callback takes all of them for converged, so a run that goes on
# from a checkpoint is over after one step, as is one with compute_interval >= alpha * max_steps.
#
# GradES freezes a matrix of a transformer when its change between two looks is below tau, and ends the training when
# all are frozen. At the first look there is nothing to compare with, and the code returns a change of 0.0, which is
# below any tau. Only alpha, the share of the steps before which nothing is frozen, hides that: normally the first look
# falls into it. After a restart from a checkpoint behind that share it doesn't, as the Trainer goes on with the number
# of steps, while the callback knows no weights of before; its method state(), "for checkpointing and resumption", is
# never read. So the run stops at once, with weights that have made one step more than the checkpoint, and the
# Trainer saves them as the result. The same happens with a compute_interval, "steps between weight change
# computations", of alpha * max_steps or more, as 50 of 100 with the default alpha of 0.3: the run ends at step 50. In
# the example tau is 1e-12, so that nothing can converge. A log message at the level INFO tells of frozen components.
#
# Give a fresh callback an alpha behind the step of the restart, and a small compute_interval. Seen in November 2026
# with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps grades==1.0.6
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check transformers==5.24.0 accelerate==1.15.0 \
    torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/python" -W ignore - "$folder" 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
import sys
from importlib.metadata import version

import torch
from grades import GradEarlyStoppingCallback, GradEarlyStoppingConfig
from transformers import LlamaConfig, LlamaForSequenceClassification, Trainer, TrainingArguments

print("grades", version("grades"), "transformers", version("transformers"), "torch", torch.__version__)
torch.set_num_threads(1)
config = LlamaConfig(vocab_size=50, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
                     num_key_value_heads=2, pad_token_id=0)
torch.manual_seed(0)
texts = [{"input_ids": torch.randint(1, 50, (6,)), "labels": number % 2} for number in range(64)]
STEPS = 40


def train(interval=1, alpha=0.3, folder="run", save=None, checkpoint=None):
    """The step at which the training ends, and the number of frozen matrices."""
    torch.manual_seed(0)
    callback = GradEarlyStoppingCallback(GradEarlyStoppingConfig(tau=1e-12, alpha=alpha, compute_interval=interval))
    arguments = TrainingArguments(
        output_dir=f"{sys.argv[1]}/{folder}", max_steps=STEPS, per_device_train_batch_size=8, use_cpu=True,
        report_to=[], save_strategy="steps" if save else "no", save_steps=save or STEPS, logging_strategy="no",
        disable_tqdm=True, learning_rate=1e-3)
    trainer = Trainer(LlamaForSequenceClassification(config), arguments, train_dataset=texts, callbacks=[callback])
    trainer.train(resume_from_checkpoint=checkpoint)
    changes = [change for stats in callback.component_stats.values() for step, change in stats.change_history]
    return trainer.state.global_step, len(callback.frozen_components), changes


for interval in (1, 5, 11):
    step, frozen, changes = train(interval)
    print(f"a look at each {interval}. step: {step} of {STEPS} steps, {frozen} frozen matrices, least change after the",
          f"first look {min(change for change in changes if change):.4f}")
    assert (step, frozen) == (STEPS, 0) and min(change for change in changes if change) > 1e-3
for interval in (12, 20):
    step, frozen, changes = train(interval)
    print(f"a look at each {interval}. step: {step} of {STEPS} steps, {frozen} frozen matrices, changes {set(changes)}")
    assert step == interval and frozen == 14 and set(changes) == {0.0}, "the first look freezes nothing now"

step, frozen, _ = train(folder="stopped", save=20)
assert (step, frozen) == (STEPS, 0)
step, frozen, changes = train(folder="again", checkpoint=f"{sys.argv[1]}/stopped/checkpoint-20")
print(f"goes on from the checkpoint of step 20: ends at step {step}, {frozen} frozen matrices, changes {set(changes)}")
assert step == 21 and frozen == 14 and set(changes) == {0.0}, "a restart goes on now"
step, frozen, _ = train(alpha=0.6, folder="late", checkpoint=f"{sys.argv[1]}/stopped/checkpoint-20")
print(f"the same with alpha behind it: ends at step {step}, {frozen} frozen matrices")
assert (step, frozen) == (STEPS, 0)
PYTHON
echo "as seen"
