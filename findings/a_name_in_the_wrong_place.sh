#!/usr/bin/env bash
# labml-nn 0.5.1: AdaBelief is AMSGrad's variant of itself by default, since its arguments slip by one, so that large
# gradients at the beginning make all further steps small, and amsgrad=True or False changes nothing.
#
# AdaBelief hands its arguments on to RAdam by their order, and leaves out optimized_update, which comes before amsgrad
# there. So amsgrad is taken for optimized_update, degenerate_to_sgd, True by default, for amsgrad, and defaults for
# degenerated_to_sgd. amsgrad is False by default, "a flag indicating whether to use AMSGrad or fallback to plain
# Adam": yet the divisor is the largest variance that ever was, and only degenerate_to_sgd=False makes it the
# present one. If the gradients of the first 200 steps are 20 times as large as the others, as in many trainings, a step
# is 12% of what the formula has 5,800 steps later, and without this argument it is the formula's. Besides, the first
# five steps are to be those of SGD, as degenerate_to_sgd says, and nothing moves in them. No warning comes.
#
# Pass degenerate_to_sgd=False. Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps labml-nn==0.5.1    # without its logger
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
import sys
import types
from importlib.metadata import version
from math import sqrt

import torch

sys.modules["labml"] = types.SimpleNamespace(tracker=None)             # the logger, which is not asked here
from labml_nn.optimizers.ada_belief import AdaBelief

print("labml-nn", version("labml-nn"), "torch", torch.__version__)
torch.set_num_threads(1)
LR, BETA1, BETA2 = 0.001, 0.9, 0.999
generator = torch.Generator().manual_seed(0)
GRADIENTS = 1 + 0.5 * torch.randn(6000, 64, generator=generator)
GRADIENTS[:200] *= 20


def by_formula(largest=False, sgd=False):
    """AdaBelief with RAdam's rectification, as the package's text has it; the way of each step."""
    m, s, top, ways = torch.zeros(64), torch.zeros(64), torch.zeros(64), []
    rho_inf = 2 / (1 - BETA2) - 1
    for t, gradient in enumerate(GRADIENTS, 1):
        m = BETA1 * m + (1 - BETA1) * gradient
        s = BETA2 * s + (1 - BETA2) * (gradient - m) ** 2
        top = torch.maximum(top, s)
        rho = rho_inf - 2 * t * BETA2 ** t / (1 - BETA2 ** t)
        way = torch.zeros(64)
        if rho >= 5:
            r = sqrt((rho - 4) * (rho - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * rho))
            variance = top if largest else s
            way = LR * r * (m / (1 - BETA1 ** t)) / (variance / (1 - BETA2 ** t)).sqrt()
        elif sgd:
            way = LR * m / (1 - BETA1 ** t)
        ways.append(way)
    return torch.stack(ways)


def walk(**options):
    weight = torch.nn.Parameter(torch.zeros(64, dtype=torch.float64))
    optimizer = AdaBelief([weight], lr=LR, betas=(BETA1, BETA2), **options)
    ways = []
    for gradient in GRADIENTS:
        before = weight.detach().clone()
        weight.grad = gradient.double()
        optimizer.step()
        ways.append((before - weight.detach()).float())
    return torch.stack(ways)


def equal(a, b):
    return torch.allclose(a, b, rtol=1e-3, atol=1e-9)


plain, largest = by_formula(), by_formula(largest=True)
for options, of_largest in (({}, True), ({"amsgrad": True}, True), ({"amsgrad": False}, True),
                            ({"degenerate_to_sgd": False}, False),
                            ({"degenerate_to_sgd": False, "amsgrad": True}, False)):
    ways = walk(**options)
    share = (ways[-100:].mean() / plain[-100:].mean()).item()
    print(f"AdaBelief({options}): the last steps are {share:.3f} of the formula's")
    assert equal(ways, largest if of_largest else plain) and (share < 0.2 if of_largest else abs(share - 1) < 1e-3)
first = by_formula(sgd=True)[:5].mean(dim=1)
print("the first steps by SGD", [f"{way:.4f}" for way in first], "here", walk()[:5].mean(dim=1).tolist())
assert (walk()[:5] == 0).all() and (first > 0.0005).all()
PYTHON
echo "as seen"
