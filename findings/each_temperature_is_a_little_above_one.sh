#!/usr/bin/env bash
# pytorch-ood 0.4.0: TemperatureScaling finds a temperature of 1.2 to 1.3 whether 2, 3 or 10 is right, and one below
# zero, which turns all answers round, for a classifier that is half as sure as it should be.
#
# Temperature scaling divides the logits of a classifier by one number, so that its probabilities are honest, and the
# detector takes the largest of them as the sign of a known kind of text. fit_logits looks for the number by L-BFGS
# from 1 on, with lr=0.01 and 50 iterations and no line search. L-BFGS knows how far to go, and lr cuts each of its
# steps to a hundredth. The documentation says that "the optimum is only approximately reached", the log calls the
# result the "optimal temperature". It is nearly the same for all models that are too sure: 1.2 where 2 is right, 1.28
# where 10 is. The loss stays up to four times too high. With labels smoothed in training, classifiers are not sure
# enough and the right temperature is below 1. There the curve of the loss is bent the other way, and nothing bounds a
# step: where 0.5 is right the result is between -117 and -857 for the three seeds here. A temperature below 0 turns
# the order of the classes round: the accuracy of 64% falls to 2%. Where 0.3 is right it is 0.84. No warning comes.
#
# The lr and the iterations are those of the paper's code, where users met both (issues 28 and 31 of
# gpleiss/temperature_scaling). Take any search over one number, as scipy's minimize_scalar, or L-BFGS with
# line_search_fn="strong_wolfe", and write the result into detector.t. Seen in November 2026 with Python 3.11. The
# script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.4.6 scipy==1.17.1
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps pytorch-ood==0.4.0    # without torchvision
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import importlib.util
import sys
import types
from importlib.metadata import version

import torch
from scipy.optimize import minimize_scalar
from torch.nn.functional import cross_entropy

# The detectors alone: the data sets and models of the package need torchvision.
package = types.ModuleType("pytorch_ood")
package.__path__ = list(importlib.util.find_spec("pytorch_ood").submodule_search_locations)
sys.modules["pytorch_ood"] = package
from pytorch_ood.detector import TemperatureScaling

print("pytorch-ood", version("pytorch-ood"), "torch", torch.__version__)


def texts(factor, seed):
    """Logits whose right temperature is factor: labels are drawn from the softmax of logits / factor."""
    torch.manual_seed(seed)
    logits = 2 * torch.randn(2000, 5)
    return logits * factor, torch.distributions.Categorical(logits=logits).sample()


def wolfe(logits, labels):
    """The temperature by the same L-BFGS with a line search."""
    temperature = torch.nn.Parameter(torch.tensor(1.0))
    optimizer = torch.optim.LBFGS([temperature], max_iter=50, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = cross_entropy(logits / temperature, labels)
        loss.backward()
        return loss

    optimizer.step(closure)
    return temperature.item()


found = {}
for factor in (0.3, 0.5, 1.5, 2, 3, 10):
    for seed in range(3):
        logits, labels = texts(factor, seed)
        detector = TemperatureScaling(None).fit_logits(logits, labels)
        temperature = found[factor, seed] = detector.t.item()

        def loss(value):
            return cross_entropy(logits / value, labels).item()

        def accuracy(value):
            return ((logits / value).argmax(1) == labels).float().mean().item()

        best = minimize_scalar(loss, bounds=(0.05, 30), method="bounded").x
        print(f"right {factor:<4} seed {seed}: found {temperature:8.2f}, by scipy {best:5.2f}; loss at 1 "
              f"{loss(1):.2f}, as found {loss(temperature):.2f}, by scipy {loss(best):.2f}; accuracy "
              f"{accuracy(temperature):.3f} in place of {accuracy(1):.3f}")
        assert abs(best / factor - 1) < 0.1, "the right temperature is another one"
        if factor >= 2:
            assert 1.15 < temperature < 1.35 < best and loss(temperature) > loss(best) + 0.09, "found now"
            assert abs(wolfe(logits, labels) - best) < 0.02, "a line search does not help"
        if factor == 10:
            assert loss(temperature) > 3 * loss(best), "the loss is better now"
        if factor == 0.5:
            assert temperature < -100 and accuracy(temperature) < 0.03 < 0.6 < accuracy(1), "above zero now"
            assert loss(temperature) > loss(1) > loss(best), "the loss is better now"
        if factor == 0.3:
            assert 0.8 < temperature < 0.9, "found now"
assert max(found[factor, 0] for factor in (2, 3, 10)) - found[2, 0] < 0.1, "it depends on the model now"
PYTHON
echo "as seen"
