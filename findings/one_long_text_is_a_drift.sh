#!/usr/bin/env bash
# frouros 0.9.0: PSI of two samples of lengths from one and the same distribution is a "major shift" in nine of ten
# cases, as it depends on a single outlying text more than on anything else.
#
# The population stability index compares two samples, as the lengths of the texts of training and of last week, by the
# shares of ten bins: sum of (a - b) log(a / b). Above 0.1 it is read as a shift, above 0.25 as a major one. An empty
# bin needs some small share, so that the logarithm exists; one usually takes 0.0001, or half a text. frouros takes the
# smallest positive float, 2e-308, whose logarithm is -708. A single text among 1,000 in a bin that is empty in the
# other sample then adds 0.001 * 701 = 0.7. And there often is such a bin: the bins are equally wide between the
# smallest and the largest number of both samples together, in place of tenths of the reference, so the last one holds
# the longest text of all, which is in one sample only. With log-normal numbers, as lengths and losses are, more than
# 90% of the comparisons of two equal samples of 1,000 exceed 0.25, with normal ones still a quarter. One text that is
# very long gives 0.70.
#
# Take tenths of the reference as bins and half a text for an empty one: equal samples are never above 0.25 then, and
# a shift by half a deviation gives about 0.3. Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check frouros==0.9.0 numpy==2.1.3 scipy==1.14.1
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from frouros.detectors.data_drift import PSI

print("frouros", version("frouros"), "numpy", np.__version__)
rng = np.random.default_rng(0)


def own(reference, sample):
    detector = PSI()
    detector.fit(X=reference)
    return detector.compare(X=sample)[0].distance


def usual(reference, sample):
    inner = np.quantile(reference, np.arange(1, 10) / 10)
    shares = []
    for numbers in (reference, sample):
        counts = np.bincount(np.searchsorted(inner, numbers), minlength=10)
        shares.append(np.maximum(counts, 0.5) / len(numbers))
    return float(np.sum((shares[0] - shares[1]) * np.log(shares[0] / shares[1])))


def false_alarms(draw, number=1000, times=200):
    pairs = [(draw(number), draw(number)) for _ in range(times)]
    return [float(np.mean([index(*pair) > 0.25 for pair in pairs])) for index in (own, usual)]


draws = {"log-normal": lambda number: rng.lognormal(size=number), "normal": lambda number: rng.normal(size=number),
         "Student's t": lambda number: rng.standard_t(5, size=number)}
for name, draw in draws.items():
    found = false_alarms(draw)
    print(f"equal samples of 1,000, {name}: index above 0.25 in {found[0]:.0%}, with tenths {found[1]:.0%}")
    assert name != "log-normal" or found[0] > 0.9
    assert found[0] > (0.15 if name == "normal" else 0.75) and found[1] == 0

normal = rng.normal(size=(2, 1000))
while own(*normal) > 0.1:
    normal = rng.normal(size=(2, 1000))
outlier = normal.copy()
outlier[1, 0] = 30
half = normal.copy()
half[1] += 0.5
for name, (reference, sample) in {"equal": normal, "with one outlier": outlier, "moved by half": half}.items():
    print(f"{name}: {own(reference, sample):.3f}, with tenths {usual(reference, sample):.3f}")
assert own(*outlier) > 0.65 and usual(*outlier) < 0.05
assert 0.15 < usual(*half) < 0.45
by_hand = (0.999 - 1) * np.log(0.999) + 0.001 * (np.log(0.001) - np.log(2.2250738585072014e-308))
assert abs(own(np.zeros(1000) + [0.0], np.append(np.zeros(999), 1.0)) - by_hand) < 1e-9
PYTHON
echo "as seen"
