#!/usr/bin/env bash
# catalyst 22.4: RocStarLoss of a classifier that separates two classes is 7 in place of 0, more than that of one that
# guesses, and draws the scores of the two classes together.
#
# Roc-star is a loss for the area under the ROC curve: a text of the rare class should score above each of the other
# class by a margin gamma. It squares by how much a pair falls short of that, and a pair that keeps the margin costs
# nothing. The original takes relu(negative + gamma - positive) ** 2. catalyst squares first: relu(diff ** 2), and a
# square is never below 0, so relu does nothing. So a pair costs the more the further it is apart beyond the margin.
# gamma grows with the scores, since it is a quantile of the differences of the right pairs, and with delta 1 and few
# errors it is among the smallest of them, so nearly all right pairs are too far apart. In a model without an error, or
# with an area of 0.99, the gradient lowers the scores of the rare class and raises the others. No warning comes.
#
# Write relu(diff) ** 2, as below. Seen in December 2026 with Python 3.11. The script fails if this changes.
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

import torch

spec = spec_from_file_location("recsys", Path(find_spec("catalyst").origin).parent / "contrib/losses/recsys.py")
recsys = module_from_spec(spec)
spec.loader.exec_module(recsys)
print("catalyst", version("catalyst"), "torch", torch.__version__)


def pairs(criterion, scores, targets, hinge):
    """Roc-star of a batch against the scores that criterion remembers."""
    old, old_targets = criterion.outputs_history[-100:], criterion.targets_history[-100:]
    parts = [(old[old_targets < 1], scores[targets > 0]), (scores[targets < 1], old[old_targets > 0])]
    return sum(hinge(negative.view(1, -1) + criterion.gamma - positive.view(-1, 1)).mean()
               for negative, positive in parts)


found = {}
for distance in (0.0, 1.0, 2.0, 5.0, 10.0):
    torch.manual_seed(0)
    criterion = recsys.RocStarLoss()
    for step in range(60):
        targets = torch.randint(0, 2, (64, 1))
        scores = (distance * (targets - 0.5) + 0.3 * torch.randn(64, 1)).requires_grad_()
        if step % 50:     # otherwise gamma changes inside of the call
            square = pairs(criterion, scores, targets, lambda diff: diff ** 2)
            right = pairs(criterion, scores, targets, lambda diff: torch.relu(diff) ** 2)
            seen = criterion(scores, targets)
            assert abs(seen.item() - square.item()) < 1e-4 * max(1, square.item()), "the loss is another one now"
        else:
            criterion(scores, targets)
    area = (scores[targets > 0].view(-1, 1) > scores[targets < 1].view(1, -1)).float().mean().item()
    pull, right_pull = (torch.autograd.grad(loss, scores)[0][targets > 0].sum().item() for loss in (seen, right))
    found[distance] = area, seen.item(), right.item(), pull, right_pull
    print(f"classes {distance} apart: area {area:.3f}, loss {seen.item():.4f}, right {right.item():.4f}; gradient of"
          f" the rare class {pull:.3f}, right {right_pull:.3f}")
guess, best = found[0.0], found[10.0]
assert guess[0] < 0.7 and best[0] == found[5.0][0] == found[2.0][0] == 1
assert best[1] > max(guess[1], 5), "a perfect ranking costs less than guessing now"
assert best[2] < 0.05 < 1 < guess[2], "the right loss is lower for a perfect ranking"
assert guess[3] < -1 and guess[4] < -1 and min(found[d][3] for d in (1.0, 2.0, 5.0, 10.0)) > 1
assert max(found[d][4] for d in (1.0, 2.0, 5.0, 10.0)) <= 0, "the right loss never lowers the rare class"
PYTHON
echo "as seen"
