#!/usr/bin/env bash
# pytorch-toolbelt 0.8.0: CrossEntropyFocalLoss with reduced_threshold is turned round, so that easy texts count in full
# and hard ones up to four times, and with normalized=True the loss depends on how much padding there is.
#
# Focal loss is for rare classes: each text is weighted by its error to the power of gamma, so that the many easy ones
# don't drown the few hard ones. The reduced form (Sergievskiy and Ponamarev, 2019) gives hard texts, of a probability
# below the threshold, the weight 1, and the easy ones above it (error / threshold) ** gamma, below 1. BinaryFocalLoss
# of the package does this. In CrossEntropyFocalLoss the variable pt holds the error and not the probability, and the
# line that sets the weight to 1 where pt is below the threshold is the same. So the easy texts get 1, and the hard ones
# (error / threshold) ** gamma, above 1. A text that is right with 99% counts 2,500 times as much as it should. Of a
# batch with 95 easy texts and 5 hard ones the easy ones make 70% of the gradient in place of 13%. It is no focal loss
# but a cross entropy with a stress on what is wrong, and looks like one that works. With normalized=True the loss is
# divided by the sum of the weights, and those of ignored places are in it, as if their class were 0: 20 words beside
# 108 places of padding have a sixth of the loss that they have alone. Without the two arguments it is focal loss, on
# the sum over all classes. No warning comes.
#
# Compute the weights as below. Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps pytorch-toolbelt==0.8.0    # without images
"$folder/venv/bin/python" -W ignore - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
import importlib.util
import sys
import types
from importlib.metadata import version

import torch
import torch.nn.functional as F

# The module of the losses alone: the rest of the package needs OpenCV and torchvision.
root = importlib.util.find_spec("pytorch_toolbelt").submodule_search_locations[0]
for name, path in (("pytorch_toolbelt", root), ("pytorch_toolbelt.losses", f"{root}/losses")):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [path]
sys.modules["pytorch_toolbelt.utils"] = types.SimpleNamespace(pytorch_toolbelt_deprecated=lambda text: lambda f: f)
from pytorch_toolbelt.losses.focal import BinaryFocalLoss, CrossEntropyFocalLoss

print("pytorch-toolbelt", version("pytorch-toolbelt"), "torch", torch.__version__)
torch.set_num_threads(1)
GAMMA, THRESHOLD = 2.0, 0.5


def by_formula(logits, targets):
    """Sergievskiy and Ponamarev's weights, on the sum over the classes that the package has."""
    truth = F.one_hot(targets, logits.shape[1]).float()
    probability = torch.where(truth == 1, logits.softmax(1), 1 - logits.softmax(1))
    weight = torch.where(probability < THRESHOLD, 1.0, ((1 - probability) / THRESHOLD) ** GAMMA)
    return (weight * F.binary_cross_entropy_with_logits(logits, truth, reduction="none")).sum(1)


def text(probability, classes=2):
    """The logits of a text whose class, 0, has this probability."""
    rest = (1 - probability) / (classes - 1)
    return torch.tensor([[probability] + [rest] * (classes - 1)]).log()


loss = CrossEntropyFocalLoss(gamma=GAMMA, reduced_threshold=THRESHOLD, reduction="none")
plain = CrossEntropyFocalLoss(gamma=0, reduction="none")
zero = torch.zeros(1, dtype=torch.long)
for probability, here, right in ((0.99, 1, 0.0004), (0.9, 1, 0.04), (0.6, 1, 0.64), (0.4, 1.44, 1), (0.1, 3.24, 1),
                                 (0.01, 3.92, 1)):
    logits = text(probability)
    whole = plain(logits, zero)
    seen, formula = (loss(logits, zero) / whole).item(), (by_formula(logits, zero) / whole).item()
    print(f"right with {probability:.0%}: weight {seen:.4f}, by the formula {formula:.4f}")
    assert abs(seen - here) < 1e-3 and abs(formula - right) < 1e-3
binary = BinaryFocalLoss(gamma=GAMMA, reduced_threshold=THRESHOLD, reduction="none")
one = torch.ones(1, 1)
shares = [(binary(x, one) / F.binary_cross_entropy_with_logits(x, one)).item() for x in (torch.logit(one * 0.99),
                                                                                          torch.logit(one * 0.1))]
print(f"BinaryFocalLoss: weight {shares[0]:.4f} for 99% and {shares[1]:.4f} for 10%")
assert abs(shares[0] - 0.0004) < 1e-4 and abs(shares[1] - 1) < 1e-4

# 95 easy texts and 5 hard ones.
batch = torch.cat([text(0.97, 4)] * 95 + [text(0.2, 4)] * 5)
targets = torch.zeros(100, dtype=torch.long)
easy = {}
for name, function in (("the package", loss), ("by the formula", by_formula), ("gamma=0", plain)):
    logits = batch.clone().requires_grad_()
    function(logits, targets).sum().backward()
    strength = logits.grad.norm(dim=1)
    easy[name] = (strength[:95].sum() / strength.sum()).item()
    print(f"{name}: the easy texts make {easy[name]:.0%} of the gradient")
assert abs(easy["the package"] - 0.70) < 0.02 and abs(easy["by the formula"] - 0.13) < 0.01

normalized = CrossEntropyFocalLoss(gamma=GAMMA, normalized=True, reduction="sum")
torch.manual_seed(0)
words = torch.randn(1, 4, 20)
labels = torch.randint(0, 4, (1, 20))
losses = []
for padding in (0, 20, 60, 108):
    logits = torch.cat((words, torch.randn(1, 4, padding)), 2)
    losses.append(normalized(logits, F.pad(labels, (0, padding), value=-100)).item())
    print(f"20 words with {padding} places of padding: loss {losses[-1]:.3f}")
assert losses == sorted(losses, reverse=True) and abs(losses[-1] / losses[0] - 1 / 6) < 0.02
without = CrossEntropyFocalLoss(gamma=GAMMA, reduction="sum")
padded = [without(torch.cat((words, torch.randn(1, 4, n)), 2), F.pad(labels, (0, n), value=-100)) for n in (0, 108)]
assert torch.allclose(*padded)
PYTHON
echo "as seen"
