#!/usr/bin/env bash
# quantus 0.6.0: Monotonicity gives every explanation the full score, noise too, and SensitivityN gives the exact
# explanation of a linear model 0.5 in place of 1 and looks at the first batch only.
#
# Quantus measures how faithful an explanation is, as the importance of each token for a class. Monotonicity is
# "incrementally adding each attribute in order of increasing importance and evaluating the effect on model
# performance". It begins with an input full of the baseline value, and in each step should put values of the text in.
# It puts the baseline there once more. So the input never changes, the model gives one number as often as there are
# features, and this row never falls. Each explanation of any model scores True: the exact one, noise, and the exact one
# turned round.
#
# SensitivityN is, by its documentation, the correlation between "the sum of the attributions for any subset of n
# features" and "the variation of the output caused removing the features in the subset". The features removed add up
# from step to step, while the sum is that of the last step alone. So for n = 1 the exact contributions of a linear
# model have the correlation 1, and for n = 9 of 20 they have 0.53. By the paper the exact one has 1 for each n.
# Of the batches, of 64 examples by default, only the first is looked at: with noise for all others the numbers stay the
# same to the last digit, and 300 examples in one batch give others than in five. No error, no warning.
#
# Take FaithfulnessCorrelation, which is 1 for the exact explanation and -1 for the one turned round. Seen in November
# 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check quantus==0.6.0 torch==2.13.0 numpy==2.4.6 \
    scipy==1.17.1
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import numpy as np
import quantus
import torch

print("quantus", version("quantus"))
torch.manual_seed(0)
rng = np.random.default_rng(0)
model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(20, 2)).eval()
texts = rng.normal(size=(300, 1, 20)).astype(np.float32)
labels = rng.integers(0, 2, 300)
exact = texts * model[1].weight.detach().numpy()[labels][:, None]            # the contributions to the output
noise = rng.normal(size=exact.shape).astype(np.float32)
settings = {"abs": False, "normalise": False, "perturb_baseline": 0.0, "disable_warnings": True}


def score(metric, explanation, number=300, **options):
    return np.asarray(metric(model=model, x_batch=texts[:number], y_batch=labels[:number], softmax=False,
                             a_batch=explanation[:number].copy(), **options), dtype=float)


def monotone(explanation):
    """The definition: from all zeros, values of the text come in from the least important to the most important."""
    found = []
    for text, label, values in zip(texts, labels, explanation):
        inputs = np.zeros((21, 20), dtype=np.float32)
        for step, place in enumerate(np.argsort(values[0])):
            inputs[step + 1] = inputs[step]
            inputs[step + 1, place] = text[0, place]
        found.append(np.diff(model(torch.tensor(inputs)).detach().numpy()[1:, label]).min() >= 0)
    return float(np.mean(found))


def sensitivity(explanation, number):
    """The definition, with the n most important features as subset."""
    values = -np.sort(-explanation[:number, 0], axis=1)
    order = np.argsort(-explanation[:number, 0], axis=1)
    removed = np.take_along_axis(exact[:number, 0], order, axis=1).cumsum(1)
    return np.array([np.corrcoef(values[:, :n].sum(1), removed[:, n - 1])[0, 1] for n in range(1, 17)])


for name, explanation in (("exact", exact), ("noise", noise), ("the exact one turned round", -exact)):
    seen = score(quantus.Monotonicity(**settings), explanation)
    faithful = score(quantus.FaithfulnessCorrelation(subset_size=5, nr_runs=50, **settings), explanation).mean()
    print(f"{name}: monotone {seen.mean():.2f}, by the definition {monotone(explanation):.2f},",
          f"faithfulness correlation {faithful:.2f}")
    assert len(seen) == 300 and seen.min() == 1, "not every explanation is monotone now"
    assert monotone(explanation) < 0.1

metric = quantus.SensitivityN(return_aggregate=False, **settings)
one = score(metric, exact, number=64)
print("sensitivity for n = 1, 3, 9, 16:", np.round(one[[0, 2, 8, 15]], 2), "by the definition",
      np.round(sensitivity(exact, 64)[[0, 2, 8, 15]], 2))
assert np.allclose(sensitivity(exact, 64), 1) and one[0] > 0.99 and one[8] < 0.7 and one[1:].max() < 0.9
mixed = np.concatenate([exact[:64], noise[64:]])
for name, explanation in (("exact", exact), ("noise after the first 64", mixed)):
    several, whole = score(metric, explanation), score(metric, explanation, batch_size=300)
    print(f"300 texts, {name}: mean {several.mean():.4f} in batches of 64, {whole.mean():.4f} in one batch")
    assert np.array_equal(several, one), "the other batches count now"
    assert np.abs(whole - one).max() > 0.02
PYTHON
echo "as seen"
