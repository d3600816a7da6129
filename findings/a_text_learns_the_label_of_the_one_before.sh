#!/usr/bin/env bash
# catalyst 22.4: WARPLoss takes the i-th label of the whole batch for the label of the i-th text, so that after a text
# with two labels all others are taught the labels of their neighbours.
#
# WARP is the loss for tagging texts with many labels, of which a text may have several (WSABIE, 2011): it draws labels
# that the text lacks until one scores too high, and raises one that it has above it. catalyst lists all places of the
# batch where targets is 1 and takes the i-th place of this list for text i. That is right while each text has one
# label. The first text with two shifts all that follow by one, and the next one by two. So the score of a label is
# raised that is another text's, and one of the text's own labels may be drawn as the wrong one and lowered. With one
# to three labels per text and batches of 32, a linear model of features that name the labels ranks a right one first
# for a third of the texts or less. Fed text by text, by the same loss, it does so for nearly all. The documentation
# gives no limit for the number of labels. No warning comes.
#
# Give the loss one text at a time, or one row for each label of a text. Seen in December 2026 with Python 3.11. The
# script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps catalyst==22.4     # without its trackers
"$folder/venv/bin/python" -W ignore - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
from importlib.metadata import version
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import torch

spec = spec_from_file_location("recsys", Path(find_spec("catalyst").origin).parent / "contrib/losses/recsys.py")
recsys = module_from_spec(spec)
spec.loader.exec_module(recsys)
print("catalyst", version("catalyst"), "torch", torch.__version__)
LABELS = 12
torch.manual_seed(0)
rng = np.random.default_rng(0)


def texts(count, most):
    """Each text has one to most labels, and features that name them amid noise."""
    targets = torch.zeros(count, LABELS)
    for row in targets:
        row[rng.permutation(LABELS)[:rng.integers(1, most + 1)]] = 1
    return targets + 0.1 * torch.randn(count, LABELS), targets


def raised(targets):
    """The label of each text whose score the loss raises."""
    scores = torch.zeros(targets.shape, requires_grad=True)
    recsys.WARPLoss()(scores, targets).backward()
    return scores.grad.argmin(1), scores.grad.argmax(1)


def precision(most, batch):
    """The share of texts with a right label in the first place, after training a linear model."""
    features, targets = texts(320, most)
    weights = torch.zeros(LABELS, LABELS, requires_grad=True)
    for epoch in range(2):
        for start in range(0, 320, batch):
            part = slice(start, start + batch)
            loss = recsys.WARPLoss()(features[part] @ weights, targets[part]).sum()
            gradient, = torch.autograd.grad(loss, weights)
            weights = (weights - 0.04 * gradient).detach().requires_grad_()
    features, targets = texts(1000, most)
    return targets[torch.arange(1000), (features @ weights).argmax(1)].mean().item()


targets = torch.tensor([[1, 1, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0], [0, 0, 0, 1, 0, 0]]).float()
up, down = raised(targets)
print("the labels are 0 and 1, 2, 3; raised are", up.tolist())
assert up.tolist() == [0, 1, 2], "each text is taught its own label now"
for most in (1, 2, 3):
    _, targets = texts(32, most)
    up, down = raised(targets)
    wrong = 1 - targets[torch.arange(32), up].mean().item()
    lowered = np.mean([targets[torch.arange(32), raised(targets)[1]].mean().item() for _ in range(20)])
    print(f"one to {most} labels: another text's label is raised for {wrong:.0%}, an own one lowered for {lowered:.0%}")
    assert (up == targets.nonzero()[:32, 1]).all()
    assert wrong == lowered == 0 if most == 1 else wrong > 0.5 and lowered > 0.03
results = {(most, batch): precision(most, batch) for most in (1, 3) for batch in (1, 32)}
for (most, batch), share in results.items():
    print(f"one to {most} labels, batches of {batch}: a right label comes first for {share:.0%}")
assert min(results[1, 1], results[1, 32], results[3, 1]) > 0.95, "the model learns nothing"
assert results[3, 32] < 0.6, "the model learns its labels now"
PYTHON
echo "as seen"
