#!/usr/bin/env bash
# uncertainty-calibration 0.1.4: get_calibration_error_uncertainties gives intervals of nearly 100% whatever alpha is:
# those of 50%, 90% and 99% are equally wide.
#
# The package measures how honest a classifier's probabilities are ("Verified uncertainty calibration", 2019), and draws
# texts again to say how sure it is of the error: [lower, mid, upper] is a "1-alpha" confidence interval, with alpha=0.1
# by default. The function behind it, bootstrap_uncertainty, takes alpha in percent, 10.0 by default, and cuts off
# alpha / 2 percent on each side. So the default cuts off 0.05% on each side in place of 5%. Of the 100 samples that are
# drawn this is none: the interval goes from the smallest to the largest, and so do those with alpha=0.5 and
# alpha=0.01. It is 1.5 times as wide as one of 90%, over three times as one of 50%. Two classifiers whose errors do
# differ look alike. With alpha=10, which the page does not name, the interval is as wide as it should be. Issue 13 of
# p-lambda/verified_calibration asks about other parts of the same lines.
#
# Pass alpha in percent. Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check uncertainty-calibration==0.1.4 numpy==2.4.6 \
    scipy==1.17.1 scikit-learn==1.9.1
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import calibration
import numpy as np

print("uncertainty-calibration", version("uncertainty-calibration"), "numpy", np.__version__)
rng = np.random.default_rng(0)
np.random.seed(0)
confidences = rng.uniform(0.5, 1, 1000)
right = (rng.random(1000) < confidences ** 2).astype(int)              # too sure of itself


def width(alpha, repeats=12):
    """The mean width of the interval."""
    return np.mean([np.ptp(calibration.get_calibration_error_uncertainties(confidences, right, alpha=alpha))
                    for _ in range(repeats)])


def by_hand(share, samples=600):
    """The width of the interval that holds a share of the errors of texts drawn again."""
    errors = []
    for _ in range(samples):
        drawn = rng.integers(0, 1000, 1000)
        errors.append(calibration.get_calibration_error(confidences[drawn], right[drawn], debias=False))
    return np.ptp(np.quantile(errors, [(1 - share) / 2, (1 + share) / 2])), np.ptp(errors[:100])


seen, exact = {}, {}
for alpha in (0.5, 0.1, 0.01):
    seen[alpha], (exact[alpha], whole) = width(alpha), by_hand(1 - alpha)
    print(f"alpha={alpha:<5} width {seen[alpha]:.4f}, by hand {exact[alpha]:.4f}; from the smallest to the largest of "
          f"100 samples {whole:.4f}; alpha={100 * alpha:.0f} in percent {width(100 * alpha):.4f}")
print(f"the default is {seen[0.1] / exact[0.1]:.2f} times too wide, alpha=0.5 {seen[0.5] / exact[0.5]:.2f} times")
assert max(seen.values()) < 1.25 * min(seen.values()), "the width depends on alpha now"
assert 1.25 < seen[0.1] / exact[0.1] < 1.9 and 2.8 < seen[0.5] / exact[0.5] < 4.5, "the width is another one"
assert exact[0.5] < 0.5 * exact[0.1] < 0.5 * exact[0.01], "the intervals by hand are others"
for alpha in (0.5, 0.1):
    assert abs(width(100 * alpha) / exact[alpha] - 1) < 0.2, "percent are not right"
PYTHON
echo "as seen"
