#!/usr/bin/env bash
# evalci 0.1.0: power(method="simulation", rho=...) makes the difference between two models smaller in place of the
# doubt, so that it asks for 16 times too many texts where the models mostly agree.
#
# power says how many texts a test set needs for a difference of delta in accuracy to be found. With "simulation" two
# models answer the same texts, and rho is the share of the texts on which the answers hang together, as for two
# fine-tuned models of one kind. The more the answers agree, the fewer texts are needed: that is why one compares on
# the same texts. evalci lets both models be right on the shared texts with the same probability, the mean of their two
# accuracies. So these texts have no difference at all, and the models differ by (1 - rho) * delta in place of delta.
# With rho=0.8, accuracies of 0.70 and 0.75 and 1,000 texts it gives a power of 0.2, while a simulation with these two
# accuracies gives 0.99; it wants 6,000 texts in place of 370. The documentation calls rho a simplified "correlation
# knob" and does not say that delta is no longer the difference. No warning comes.
#
# Draw one number per shared text and compare it with both accuracies, as below. Seen in December 2026 with Python
# 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check evalci==0.1.0 numpy==2.4.6 scipy==1.17.1 \
    pandas==3.1.1
"$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version
from math import sqrt

import evalci
import numpy as np
from scipy import stats

print("evalci", version("evalci"), "scipy", version("scipy"))
BASE, DELTA, TEXTS = 0.70, 0.05, 1000
rng = np.random.default_rng(0)


def outcomes(rho, shared_gain):
    """The shares of texts on which the second model alone is right, and the first alone."""
    second = (1 - rho) * (BASE + DELTA) * (1 - BASE) + rho * shared_gain
    return second, (1 - rho) * BASE * (1 - BASE - DELTA)


def simulated(shares, texts):
    """The power of the paired z-test at 5%, by drawing how many texts go to each model."""
    wins = rng.multinomial(texts, [*shares, 1 - sum(shares)], 20000)
    mean = (wins[:, 0] - wins[:, 1]) / texts
    deviation = np.sqrt(((wins[:, 0] + wins[:, 1]) / texts - mean ** 2) * texts / (texts - 1))
    return np.mean(2 * stats.norm.sf(np.abs(mean) / np.maximum(deviation, 1e-12) * sqrt(texts)) < 0.05)


def needed(shares):
    """The number of texts for a power of 80%, by the normal approximation."""
    difference = shares[0] - shares[1]
    return (stats.norm.ppf(0.975) + stats.norm.ppf(0.8)) ** 2 * (sum(shares) - difference ** 2) / difference ** 2


seen, right = {}, {}
for rho in (0.0, 0.3, 0.5, 0.8):
    true, none = outcomes(rho, DELTA), outcomes(rho, 0.0)
    assert abs(true[0] - true[1] - DELTA) < 1e-12 and abs(none[0] - none[1] - (1 - rho) * DELTA) < 1e-12
    seen[rho] = evalci.power(DELTA, n=TEXTS, baseline=BASE, method="simulation", rho=rho, sims=2000,
                             random_state=0).power
    right[rho] = simulated(true, TEXTS)
    print(f"rho {rho}: power {seen[rho]:.3f} with {TEXTS} texts, right {right[rho]:.3f}, for a difference of"
          f" {(1 - rho) * DELTA:.3f} {simulated(none, TEXTS):.3f}; needed are {needed(true):.0f} texts")
    assert abs(seen[rho] - simulated(none, TEXTS)) < 0.04, "the simulation is another one now"
assert abs(seen[0.0] - right[0.0]) < 0.04, "without shared texts it is right"
assert seen[0.0] > seen[0.3] > seen[0.5] > seen[0.8], "the power rises with rho now"
assert right[0.0] < right[0.3] < right[0.5] < right[0.8] and right[0.8] > 0.97 > 0.3 > seen[0.8]

asked = evalci.power(DELTA, power=0.8, baseline=BASE, method="simulation", rho=0.8, sims=300, random_state=0).n
ratio = asked / needed(outcomes(0.8, DELTA))
print(f"for a power of 80% at rho 0.8 it asks for {asked} texts, {ratio:.0f} times too many")
assert 10 < ratio < 40
PYTHON
echo "as seen"
