#!/usr/bin/env bash
# crepes 0.9.1: where a category did not occur among the calibration texts, the interval of each of its texts is from
# 0 to 0, without a warning, for all confidences.
#
# crepes puts intervals around the predictions of a regressor, as of the stars, the length or the quality of a text,
# that hold the true value in 95% of the cases. With bins (Mondrian categories, as the language or the source of a
# text) the promise holds for each category by itself. The intervals are first set to zeros, and then filled category
# by category, over those of the calibration texts. A text of another category keeps [0, 0], which never holds its
# value. ConformalRegressor and ConformalPredictiveSystem do so, as do percentiles of the latter, and evaluate counts
# these intervals in: the error rises, and the mean width falls. For a category with too few calibration texts the same
# functions warn and return the whole line, which is what no text at all would ask for. predict_p with the same bins
# knows that nothing is known: its p-values are drawn evenly from 0 to 1. predict_int_online returns the whole line.
#
# Look for np.isin(bins, bins of the calibration) first. Seen in November 2026 with Python 3.11. The script fails if
# this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check crepes==0.9.1 numpy==2.4.6 \
    scipy==1.17.1 pandas==3.1.1 scikit-learn==1.9.1
"$folder/venv/bin/python" - <<'PYTHON'
import warnings
from importlib.metadata import version

import numpy as np
from crepes import ConformalPredictiveSystem, ConformalRegressor

print("crepes", version("crepes"), "numpy", np.__version__)
rng = np.random.default_rng(0)
languages = rng.choice(["de", "en"], 400)
residuals = rng.normal(size=400)
asked = np.array(["de", "en", "fr"])
predicted = np.array([10.0, 10.0, 10.0])
regressor = ConformalRegressor().fit(residuals, bins=languages)
system = ConformalPredictiveSystem().fit(residuals, bins=languages)
with warnings.catch_warnings():
    warnings.simplefilter("error")
    for confidence in (0.5, 0.9, 0.95):
        intervals = [model.predict_int(predicted, bins=asked, confidence=confidence) for model in (regressor, system)]
        print(f"confidence {confidence}: de {intervals[0][0].round(1)} en {intervals[0][1].round(1)} fr",
              [own[2].tolist() for own in intervals])
        assert all((own[2] == 0).all() and (own[:2, 0] > 5).all() for own in intervals)
    percentiles = system.predict_percentiles(predicted, bins=asked, lower_percentiles=[5], higher_percentiles=[95])
    assert (percentiles[2] == 0).all() and (percentiles[:2] > 5).all()

few = ConformalRegressor().fit(residuals[:41], bins=np.repeat(["de", "fr"], [40, 1]))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    one = few.predict_int(predicted[:1], bins=np.array(["fr"]))
print("with one calibration text of the category:", one[0].tolist(), "and a warning")
assert np.isinf(one).all() and len(caught) == 1 and "too small" in str(caught[0].message)

tested = rng.choice(["de", "en", "fr"], 3000)
centre = 10 + rng.normal(size=3000)
truth = centre + rng.normal(size=3000)
known = np.isin(tested, languages)
metrics = ["error", "eff_mean"]
all_texts = regressor.evaluate(centre, truth, bins=tested, metrics=metrics)
seen = regressor.evaluate(centre[known], truth[known], bins=tested[known], metrics=metrics)
print("evaluate with a third of new category:", {key: round(float(value), 2) for key, value in all_texts.items()},
      "without", {key: round(float(value), 2) for key, value in seen.items()})
assert all_texts["error"] > 0.3 and seen["error"] < 0.08 and all_texts["eff_mean"] < 0.8 * seen["eff_mean"]
p_values = regressor.predict_p(centre[~known], truth[~known], bins=tested[~known], seed=0)
assert abs(p_values.mean() - 0.5) < 0.05 and (p_values < 0.05).mean() < 0.08
online = regressor.predict_int_online(predicted, predicted, bins=asked)
print("p-values of the new category have the mean", p_values.mean().round(2), "and online its interval is", online[2])
assert np.isinf(online[2]).all() and np.isfinite(online[:2]).all()
PYTHON
echo "as seen"
