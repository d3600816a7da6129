#!/usr/bin/env bash
# catalyst 22.4: SupervisedContrastiveLoss is NaN or wrong at the temperatures of 0.07 and 0.05, which are in common
# use, as long as texts of one class are not alike yet.
#
# Supervised contrastive learning wants texts of one class nearer to each other than to all others: the loss is the log
# of a sum of exp(cosine / temperature) over all other texts, without the text itself. catalyst computes the cosines
# from distances, takes the sum with the text itself, and subtracts exp(1 / temperature). At 0.07, the temperature of
# the paper's own code, this number is 1.6 million, at 0.05, which SimCSE uses for BERT, 485 million. The cosine of a
# text with itself comes out as 1 up to the last digits of float32, so the difference is wrong by 1 on average at 0.07,
# by 400 at 0.05 and by a billion at 0.03. The right sum is 128 where 128 texts have nothing in common, and that over
# the three others of a text's class is 3. So the log is of a number below 0, and NaN, or of one that has nothing to do
# with the texts. The mean over a batch is NaN as soon as one text is. At 0.03 this holds for texts of any kind, at 0.5
# for none. No warning comes.
#
# Mask the diagonal and take logsumexp, as below. Seen in December 2026 with Python 3.11. The script fails if this
# changes.
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

path = Path(find_spec("catalyst").origin).parent / "contrib/losses/supervised_contrastive.py"
spec = spec_from_file_location("supervised_contrastive", path)
module = module_from_spec(spec)
spec.loader.exec_module(module)
print("catalyst", version("catalyst"), "torch", torch.__version__)
torch.manual_seed(0)


def right(features, classes, temperature, aggregation):
    """The loss of each text by its definition, with 64 bits and without the text itself."""
    features = torch.nn.functional.normalize(features.double())
    itself = torch.eye(len(features), dtype=torch.bool)
    scores = (features @ features.T / temperature).masked_fill(itself, -torch.inf)
    shares = scores - scores.logsumexp(1, keepdim=True)
    positive = (classes[:, None] == classes[None]) & ~itself
    if aggregation == "out":
        return -shares.masked_fill(~positive, 0).sum(1) / positive.sum(1)
    return positive.sum(1).log() - shares.masked_fill(~positive, -torch.inf).logsumexp(1)


nan, wrong = {}, {}
classes = torch.arange(32).repeat_interleave(4)
for likeness in (0.08, 0.5):     # the cosine of texts of one class
    centres = torch.randn(32, 768)[classes]
    features = likeness ** 0.5 * centres + (1 - likeness) ** 0.5 * torch.randn(128, 768)
    for temperature in (0.5, 0.1, 0.07, 0.05, 0.03, 0.01):
        for aggregation in ("in", "out"):
            loss = module.SupervisedContrastiveLoss(temperature, reduction="none", pos_aggregation=aggregation)
            seen = loss(features, classes)
            truth = right(features, classes, temperature, aggregation)
            finite = seen.isfinite()
            key = likeness, temperature, aggregation
            nan[key] = 1 - finite.float().mean().item()
            wrong[key] = (seen - truth)[finite].abs().max().item() if finite.any() else float("nan")
            print(f"cosine {likeness}, temperature {temperature}, {aggregation}: right {truth.mean():.3f}, NaN or"
                  f" infinite for {nan[key]:.0%}, the others wrong by up to {wrong[key]:.3f}")
for likeness in (0.08, 0.5):
    for aggregation in ("in", "out"):
        assert nan[likeness, 0.5, aggregation] == 0 and wrong[likeness, 0.5, aggregation] < 1e-3
        assert nan[likeness, 0.03, aggregation] > 0.1, "the loss is a number now"
        assert nan[likeness, 0.01, aggregation] == 1
assert nan[0.08, 0.07, "in"] > 0 or wrong[0.08, 0.07, "in"] > 0.1, "the loss at 0.07 is right now"
assert nan[0.08, 0.05, "in"] > 0.1 and nan[0.08, 0.05, "out"] > 0.1
PYTHON
echo "as seen"
