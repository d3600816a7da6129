#!/usr/bin/env bash
# lightning 2.6.6: if a run ends before EMAWeightAveraging begins to average, fit leaves the initial weights in the
# model, and update_starting_at_epoch alone is ignored.
#
# The callback averages the weights from update_starting_at_step on, so that the first, bad weights don't count. Its
# average is made before training as a copy of the model, and stays so until the first update. At the end of fit it
# is copied over the trained weights in any case. A run of 900 steps with update_starting_at_step=1000, or one that
# EarlyStopping or max_time ends early, gives back the model as it was before training, and the files of ModelCheckpoint
# hold these weights under state_dict. Validation uses the average too: until the start its loss does not move
# (Lightning-AI/pytorch-lightning issue 21724), so EarlyStopping does end such a run, and the best checkpoint is that
# of the untrained model. With update_starting_at_epoch the other condition, on steps, holds from step 0
# unless it is switched off by update_every_n_steps=0. So averaging begins with the first step, and at the end of each
# epoch from the given one on the weights count once more. No warning comes.
#
# Give update_starting_at_step only, below the number of steps, or average with torch.optim.swa_utils. A checkpoint's
# current_model_state holds the trained weights. Seen in November 2026 with Python 3.11. The script fails if this
# changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check lightning==2.6.6 torch==2.13.0 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" -W ignore - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
import lightning
import torch
from lightning.pytorch.callbacks import EarlyStopping, EMAWeightAveraging, ModelCheckpoint

print("lightning", lightning.__version__, "torch", torch.__version__)


class Model(lightning.LightningModule):
    """One weight, which begins at 0 and gains 1 at each step; its validation loss is what it lacks to 100."""

    def __init__(self):
        super().__init__()
        self.weight, self.losses = torch.nn.Parameter(torch.zeros(1)), []

    def training_step(self, batch, index):
        return -self.weight.sum()

    def validation_step(self, batch, index):
        self.losses.append(100 - self.weight.item())
        self.log("loss", self.losses[-1])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1.0)


def fit(*callbacks, epochs=4, **settings):
    """Trains for 10 steps in each epoch; returns the model, the averages made and the last checkpoint."""
    model, data = Model(), torch.utils.data.DataLoader(torch.zeros(10, 1))
    averaging = EMAWeightAveraging(decay=0.5, **settings)
    saving = ModelCheckpoint(dirpath=".", filename="{step}", monitor="loss", enable_version_counter=False)
    trainer = lightning.Trainer(
        max_epochs=epochs, callbacks=[averaging, saving, *callbacks], logger=False, enable_progress_bar=False,
        enable_model_summary=False, num_sanity_val_steps=0, accelerator="cpu")
    trainer.fit(model, data, torch.utils.data.DataLoader(torch.zeros(1, 1)))
    print(f"{settings} {epochs} epochs {[type(c).__name__ for c in callbacks]}: {trainer.global_step} steps, weight "
          f"{model.weight.item():.2f}, validation {[round(x, 2) for x in model.losses]}, "
          f"averages made {averaging._average_model.n_averaged}, best file {saving.best_model_path.split('/')[-1]}")
    return model, int(averaging._average_model.n_averaged), torch.load(saving.best_model_path, weights_only=False)


model, averages, _ = fit()
assert averages == 40 and 38 < model.weight < 40
model, averages, _ = fit(update_starting_at_step=20)
assert averages == 20 and 38 < model.weight < 40 and model.losses[:2] == [100, 100] and model.losses[2] < 72

model, averages, checkpoint = fit(update_starting_at_step=50)
print("    its file has", {key: checkpoint[key]["weight"].item() for key in ("state_dict", "current_model_state")})
assert averages == 0 and model.weight == 0 and model.losses == [100] * 4, "the trained weights are kept"
assert checkpoint["global_step"] == 10 and checkpoint["state_dict"]["weight"] == 0
assert checkpoint["current_model_state"]["weight"] == 10

model, averages, _ = fit(EarlyStopping("loss", patience=3), epochs=20, update_starting_at_step=100)
assert averages == 0 and model.weight == 0 and len(model.losses) == 4, "early stopping waits for the average"

for start, expected in ((30, 40), (2, 42)):
    model, averages, _ = fit(update_starting_at_epoch=start)
    assert averages == expected and model.losses[0] < 92, "averaging waits for the epoch"
model, averages, _ = fit(update_starting_at_epoch=2, update_every_n_steps=0)
assert averages == 2
PYTHON
echo "as seen"
