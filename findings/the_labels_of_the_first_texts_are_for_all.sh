#!/usr/bin/env bash
# catalyst 22.4: WARPLoss gives the labels of the first texts of a batch to the others, as soon as one text has several
# labels or none.
#
# WARP of the WSABIE paper trains a ranking of labels: for each text it takes one of its labels, looks for a label that
# the text has not and that ranks too high, and moves both. Its targets are "true labels for all items", a row of
# zeros and ones for each text. The code lists the ones of the whole batch, row by row, and takes the i-th entry of the
# list for text i. That is a label of text i only if each text has exactly one. If the first has three, the first three
# texts are all trained on its labels, and text i on a label of a text before it. If a text has none, it and all texts
# behind it get that of the next one. Besides, the labels that are to rank lower are drawn from all but the chosen one,
# so that labels of the text itself are pushed down. In the example, with one to four of 20 labels for a text, 15% of
# the texts are trained on a label of their own, about as many as by lot, and the label that ranks highest is right for
# 20% of new texts in place of 96%. With one label for each text the loss is right.
#
# Choose one label of each text yourself and pass a matrix with a single one in each row. Seen in November 2026 with
# Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps catalyst==22.4
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import torch

# The module of the losses alone: the rest of the package needs accelerate, hydra and others.
sys.path.insert(0, str(Path(find_spec("catalyst").origin).parent / "contrib" / "losses"))
from recsys import WARPLoss  # noqa: E402

print("catalyst", version("catalyst"), "torch", torch.__version__)
torch.set_num_threads(1)
torch.manual_seed(0)
TEXTS, LABELS = 64, 20
right = torch.randn(16, LABELS)


def batch(several, size=TEXTS):
    """Texts and their labels: the one to four highest of a linear map, or the highest."""
    texts = torch.randn(size, 16)
    scores = texts @ right
    ranks = scores.argsort(1, descending=True).argsort(1)
    number = torch.randint(1, 5, (size, 1)) if several else 1
    return texts, (ranks < number).float()


def trained_on(targets):
    """The label that the gradient moves up for each text, -1 where none was found."""
    outputs = torch.zeros(targets.shape, requires_grad=True)
    WARPLoss()(outputs, targets).sum().backward()
    return torch.where((outputs.grad < 0).any(1), outputs.grad.argmin(1), -1), outputs.grad


first = torch.tensor([[1.0, 1, 1, 0, 0, 0], [0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 1, 0], [0, 0, 0, 0, 0, 1]])
print("labels 0, 1, 2 | 3 | 4 | 5 are trained as", trained_on(first)[0].tolist())
assert trained_on(first)[0].tolist() == [0, 1, 2, 3], "each text gets its own label now"
rows = [[], [1], [2], [3], [4], [5], [0, 1]]
empty = torch.tensor([[float(label in row) for label in range(6)] for row in rows])
print("none | 1 | 2 | 3 | 4 | 5 | 0, 1 are trained as", trained_on(empty)[0].tolist())
assert trained_on(empty)[0].tolist() == [1, 2, 3, 4, 5, 0, 1]

shares = {}
for several in (False, True):
    own, pushed, lot = [], [], []
    for _ in range(20):
        targets = batch(several)[1]
        chosen, gradient = trained_on(targets)
        found = chosen >= 0
        own.append(targets[found, chosen[found]])
        pushed.append(((gradient > 0) & (targets > 0)).any(1).float()[found])
        lot.append(targets.mean())
    shares[several] = torch.cat(own).mean().item()
    print("several labels:" if several else "one label:", f"{shares[several]:.0%} of the texts are trained on a label",
          f"of their own, by lot {torch.stack(lot).mean():.0%}; a label of {torch.cat(pushed).mean():.0%} is pushed",
          "down")
assert shares[False] == 1 and shares[True] < 0.25


def by_hand(outputs, targets):
    """WARP with a label of each text, against labels that it has not: the first that ranks too high, or nothing."""
    chosen = torch.multinomial(targets, 1)
    tries = torch.rand(targets.shape).masked_fill(targets > 0, -1).argsort(1, descending=True)
    high = (1 + outputs - outputs.gather(1, chosen) > 0) & (targets == 0)
    in_order = high.gather(1, tries).float()
    place = in_order.argmax(1, keepdim=True)
    weight = torch.log(torch.floor((LABELS - 1) / (place + 1.0))) * in_order.max(1, keepdim=True).values
    return (weight * (1 - outputs.gather(1, chosen) + outputs.gather(1, tries.gather(1, place)))).sum()


def train(loss, several):
    """The share of new texts whose highest label is one of theirs."""
    torch.manual_seed(1)
    model = torch.nn.Linear(16, LABELS)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(150):
        texts, targets = batch(several)
        optimizer.zero_grad()
        loss(model(texts), targets).sum().backward()
        optimizer.step()
    texts, targets = batch(several, 4000)
    with torch.no_grad():
        return targets.gather(1, model(texts).argmax(1, keepdim=True)).mean().item()


for several in (False, True):
    given, good = train(WARPLoss(), several), train(by_hand, several)
    print(f"{'several labels' if several else 'one label'}: the highest label is right for {given:.0%} of the texts,",
          f"with WARP by hand for {good:.0%}")
    assert good > 0.6 and (given < 0.4 if several else abs(given - good) < 0.1)
PYTHON
echo "as seen"
