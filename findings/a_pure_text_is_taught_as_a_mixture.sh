#!/usr/bin/env bash
# pytorch-lightning-spells 0.3.0: MixupSoftmaxLoss multiplies the mean loss of a batch with the mean share of its
# mixtures, so that each text is taught the average mixture and not its own.
#
# Mixup trains on lambda * text + (1 - lambda) * another text, with the losses of both labels in the same shares.
# MixUpCallback, with which the loss "works best", draws a lambda for each text of a batch. The loss takes
# cross_entropy with its default, the mean over the batch, and then (loss1 * lambda + loss2 * (1 - lambda)).mean(): by
# then loss1 and loss2 are numbers, so all texts get the mean of the lambdas. A text with lambda = 1, which is not
# mixed at all, is taught another class with 16%, and one that is half another text is taught its first label with 84%.
# That is label smoothing with labels of other texts, while the point of mixup, that the answer follows the mixture, is
# lost: in the example the model gives about 0.84 for all mixtures. With poly1_eps the losses of single texts are kept,
# and the loss is right. reduction="sum" gives the mean.
#
# Pass poly1_eps=1e-9, or compute both losses with reduction="none". Seen in November 2026 with Python 3.11. The script
# fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps pytorch-lightning-spells==0.3.0
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from torch import nn

# The module of the losses alone: the rest of the package needs Lightning.
root = Path(find_spec("pytorch_lightning_spells").origin).parent
sys.path.insert(0, str(root))
from losses import MixupSoftmaxLoss  # noqa: E402

print("pytorch-lightning-spells", version("pytorch-lightning-spells"), "torch", torch.__version__)
assert "np.random.beta(self.alpha, self.alpha, batch.size(0))" in (root / "callbacks.py").read_text()
torch.set_num_threads(1)
torch.manual_seed(0)
rng = np.random.default_rng(0)


def shares(number, alpha=0.4):
    """As MixUpCallback draws them: the larger part of each pair."""
    drawn = rng.beta(alpha, alpha, number)
    return torch.tensor(np.maximum(drawn, 1 - drawn))


logits = torch.randn(8, 3, dtype=torch.float64, requires_grad=True)
one, other, mixed = torch.randint(0, 3, (8,)), torch.randint(0, 3, (8,)), shares(8)
target = torch.stack([one.double(), other.double(), mixed], dim=1)
labels = [nn.functional.one_hot(part, 3).double() for part in (one, other)]
own = labels[0] * mixed[:, None] + labels[1] * (1 - mixed[:, None])
average = labels[0] * mixed.mean() + labels[1] * (1 - mixed.mean())


def is_taught(loss):
    """Whether each text is taught its own mixture, and whether it is taught the average one."""
    gradient, = torch.autograd.grad(loss(logits, target), logits)
    by_hand = [(logits.softmax(1) - labels) / 8 for labels in (own, average)]
    return [torch.allclose(gradient, right, atol=1e-7) for right in by_hand]


found = {"default": is_taught(MixupSoftmaxLoss()), "poly1_eps=1e-9": is_taught(MixupSoftmaxLoss(poly1_eps=1e-9))}
print("the gradient is that of [its own mixture, the average mixture]:", found)
assert found["default"] == [False, True], "each text is taught its own mixture now"
assert found["poly1_eps=1e-9"] == [True, False]
total = MixupSoftmaxLoss(reduction="sum")(logits, target)
assert torch.isclose(total, MixupSoftmaxLoss()(logits, target)), "the sum is a sum now"


def train(loss):
    """The probabilities of the first label for mixtures with several shares of its text."""
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 4)).double()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    eye = torch.eye(4, dtype=torch.float64)
    for _ in range(1500):
        first = torch.randint(0, 4, (128,))
        second = (first + torch.randint(1, 4, (128,))) % 4
        part = shares(128)
        inputs = part[:, None] * eye[first] + (1 - part[:, None]) * eye[second]
        optimizer.zero_grad()
        loss(model(inputs), torch.stack([first.double(), second.double(), part], dim=1)).backward()
        optimizer.step()
    with torch.no_grad():
        return [model(part * eye[[0]] + (1 - part) * eye[[1]]).softmax(1)[0, 0].item() for part in (0.6, 0.8, 1.0)]


wrong, right = train(MixupSoftmaxLoss()), train(MixupSoftmaxLoss(poly1_eps=1e-9))
mean = shares(100_000).mean().item()
print(f"probability of the first label for 60%, 80% and 100% of its text: {[f'{value:.2f}' for value in wrong]},",
      f"with the losses of single texts {[f'{value:.2f}' for value in right]}; the mean share is {mean:.2f}")
assert all(abs(value - mean) < 0.07 for value in wrong)
assert all(abs(value - part) < 0.06 for value, part in zip(right, (0.6, 0.8, 1.0)))
PYTHON
echo "as seen"
