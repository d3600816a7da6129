#!/usr/bin/env bash
# pytorch-metric-learning 2.9.0: SmoothAPLoss takes the number of texts of a class for the number of classes, so texts
# of several classes are trained to be alike.
#
# Smooth-AP is a loss for retrieval: for each text the others of its class are to rank before all others. The batch
# holds the classes one after another with the same number of texts each, as MPerClassSampler gives it. The loss
# computes batch size / number of classes, which is the number of texts of a class, calls it num_classes_batch and
# cuts the batch into so many groups. 32 texts of 8 classes, 4 of each, become 4 groups of 8 texts, two classes in
# each. Only with as many classes as texts of a class it is right. A perfect encoder then has a loss of 0.32 in place
# of 0, and one that gives both classes of a group one vector has 0. Vectors that are trained with all 8 classes in a
# batch have 48 of 100 nearest neighbours of their own class, as two mixed classes do, and 100 of 100 with batches of
# 4 classes. With 4 classes of 8 texts each class is cut into two groups. Labels are used for their number alone: in
# another order of the batch the result is the same. The loss falls as it should. No warning comes.
#
# Sort each batch by class and take as many classes as texts of each, as 4 of 4. Seen in November 2026 with Python 3.11.
# The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pytorch-metric-learning==2.9.0 torch==2.13.0 \
    numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import pytorch_metric_learning
import torch
from pytorch_metric_learning.losses import SmoothAPLoss

print("pytorch-metric-learning", pytorch_metric_learning.__version__, "torch", torch.__version__)
loss = SmoothAPLoss()


def vectors(classes, texts, same=1):
    """Vectors of classes that follow each other; each time `same` classes share one direction."""
    centres = torch.eye(64)[torch.arange(classes) // same]
    torch.manual_seed(0)
    return centres.repeat_interleave(texts, 0) + 0.01 * torch.randn(classes * texts, 64)


def labels(classes, texts):
    return torch.arange(classes).repeat_interleave(texts)


values = {}
for classes, texts in ((4, 4), (6, 6), (8, 4), (4, 8), (16, 2)):
    values[classes, texts] = loss(vectors(classes, texts), labels(classes, texts)).item()
    print(f"perfect vectors of {classes} classes with {texts} texts each: loss {values[classes, texts]:.3f}")
pairs = loss(vectors(8, 4, same=2), labels(8, 4)).item()
print(f"two classes in one place, 8 classes with 4 texts each: loss {pairs:.3f}")
assert max(values[4, 4], values[6, 6]) < 1e-3, "not right for as many classes as texts"
assert min(values[8, 4], values[4, 8], values[16, 2]) > 0.1 and pairs < values[8, 4] / 2, "perfect vectors cost nothing"


def train(batch_classes, texts=4, classes=8, steps=200):
    """Precision of the three nearest texts after training free vectors with batches of so many classes."""
    torch.manual_seed(1)
    table = torch.nn.Parameter(torch.randn(classes * texts, 64))
    optimizer = torch.optim.Adam([table], 0.05)
    for step in range(steps):
        chosen = torch.arange(classes) if batch_classes == classes else torch.randperm(classes)[:batch_classes]
        rows = (chosen[:, None] * texts + torch.arange(texts)).reshape(-1)
        value = loss(table[rows], chosen.repeat_interleave(texts))
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
    near = torch.nn.functional.normalize(table.detach(), dim=1)
    near = (near @ near.T).fill_diagonal_(-2).topk(texts - 1).indices // texts
    return (near == labels(classes, texts)[:, None]).float().mean().item(), value.item()


mixed, right = train(8), train(4)
print(f"trained with batches of 8 classes: precision {mixed[0]:.2f}, loss {mixed[1]:.3f};",
      f"of 4 classes: {right[0]:.2f}, loss {right[1]:.3f}")
assert mixed[0] < 0.7 and right[0] > 0.95, "batches of 8 classes are right now"
PYTHON
echo "as seen"
