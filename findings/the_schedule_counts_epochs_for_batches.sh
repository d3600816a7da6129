#!/usr/bin/env bash
# skorch 1.4.0: LRScheduler(step_every="batch") takes the number of epochs for that of batches when training goes on, so
# the schedule begins anew.
#
# skorch trains PyTorch models behind the interface of scikit-learn, and its notebook on fine-tuning a BERT gives
# LRScheduler a function of the batch, with warm-up and a linear fall, and step_every="batch". Training goes on by
# partial_fit, after a first fit or after load_params has read the history, the weights and the optimizer of a
# checkpoint. A new scheduler is made for that, and is to stand where the old one stood. It gets the length of the
# history, which has a row for each epoch. With 20 batches in an epoch and two epochs behind, the learning rate is that
# of the third batch in place of the forty-first: a second warm-up begins, and the rate, which was to reach 0 at the
# end, is at 0.54 of its maximum there. The callback does count the batches of the history, in batch_idx_, and does not
# use the number. The event_lr of the history shows it; no warning comes. step_every="epoch" is right.
#
# Give LRScheduler last_epoch, the number of batches so far less 1, when going on. Seen in November 2026 with Python
# 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check skorch==1.4.0 torch==2.13.0 scikit-learn==1.9.1 \
    scipy==1.17.1 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
import skorch
import torch
from skorch import NeuralNetClassifier
from skorch.callbacks import LRScheduler
from torch.optim.lr_scheduler import LambdaLR

print("skorch", skorch.__version__, "torch", torch.__version__)
random = np.random.default_rng(0)
TEXTS = random.normal(size=(640, 8)).astype("float32")
LABELS = (TEXTS[:, 0] > 0).astype("int64")
BATCHES, EPOCHS, WARMUP = 20, 4, 8


def schedule(batch):
    return min(batch / WARMUP, max(0, BATCHES * EPOCHS - batch) / (BATCHES * EPOCHS - WARMUP))


def classifier(epochs, step_every="batch", function=schedule, **kwargs):
    scheduler = LRScheduler(LambdaLR, lr_lambda=function, step_every=step_every, **kwargs)
    return NeuralNetClassifier(
        torch.nn.Sequential(torch.nn.Linear(8, 2), torch.nn.Softmax(-1)), optimizer=torch.optim.AdamW, lr=1.0,
        max_epochs=epochs, batch_size=32, train_split=None, verbose=0, callbacks=[("scheduler", scheduler)])


def rates(classifier):
    return [batch["event_lr"] for epoch in classifier.history for batch in epoch["batches"]]


whole = classifier(EPOCHS).fit(TEXTS, LABELS)
assert np.allclose(rates(whole), [schedule(batch) for batch in range(BATCHES * EPOCHS)]), "one fit is wrong"

halves = classifier(2).fit(TEXTS, LABELS)
halves.save_params(f_params="weights", f_optimizer="optimizer", f_criterion="criterion", f_history="history")
halves.partial_fit(TEXTS, LABELS)
loaded = classifier(2).initialize()
loaded.load_params(f_params="weights", f_optimizer="optimizer", f_criterion="criterion", f_history="history")
loaded.partial_fit(TEXTS, LABELS)
half = 2 * BATCHES
for name, other in (("one fit", whole), ("fit and partial_fit", halves), ("loaded and partial_fit", loaded)):
    print(f"{name}: {len(rates(other))} batches, rates from batch {half} on",
          np.round(rates(other)[half:half + 5], 3), "last", round(rates(other)[-1], 3))
for other in (halves, loaded):
    assert np.allclose(rates(other)[half:], [schedule(batch) for batch in range(2, 2 + half)]), "otherwise than seen"
    assert other.callbacks_[[name for name, _ in other.callbacks_].index("scheduler")][1].batch_idx_ == 2 * half

mended = classifier(2, last_epoch=half - 1).initialize()
mended.load_params(f_params="weights", f_optimizer="optimizer", f_criterion="criterion", f_history="history")
mended.partial_fit(TEXTS, LABELS)
assert np.allclose(rates(mended), rates(whole)), "last_epoch does not help"


def by_epochs(epoch):
    return 1 - epoch / EPOCHS


halves = classifier(2, "epoch", by_epochs).fit(TEXTS, LABELS).partial_fit(TEXTS, LABELS)
assert halves.history[:, "event_lr"] == [1, 0.75, 0.5, 0.25], "by epochs it is wrong too"
PYTHON
echo "as seen"
