#!/usr/bin/env bash
# irrCAC 0.4.4: the p-value of Brennan and Prediger's coefficient is half of what it should be, so that annotators who
# guess agree "significantly" at 5% in 10% of the cases, and no p-value is above 0.5.
#
# The package computes five coefficients of agreement between annotators from one table, with standard error, interval
# and p-value. For four of them the p-value is that of a two-sided test of t = coefficient / standard error with one
# degree of freedom less than there are texts. CAC.bp of irrCAC.raw takes the absolute value of t as they do, and
# forgets to double the tail. So it says 0.25 where CAC.bp of irrCAC.table says 0.50 for the same two annotators. Of
# 1,000 sets of 50 texts, each labelled by three annotators who throw dice for one of three classes, it finds 10%
# significant at 5%, and the doubled p-value 5%. A negative coefficient, less agreement than by chance, is called
# significant too, so it is not a one-sided test either. The interval in the same result is two-sided, and holds 0 in
# 42 of 97 cases where the p-value says otherwise. The documentation speaks of no side. No warning comes.
#
# Double it. Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check irrCAC==0.4.4 scipy==1.12.0 pandas==2.3.3 \
    numpy==1.26.4
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
from importlib.metadata import version

import numpy as np
import pandas as pd
from irrCAC import raw, table
from scipy import stats

print("irrCAC", version("irrCAC"), "pandas", pd.__version__)
TEXTS = 50
rng = np.random.default_rng(0)
others = ("gwet", "fleiss", "krippendorff", "conger")
seen, right, contradicted = [], [], []
for repetition in range(1000):
    agreement = raw.CAC(pd.DataFrame(rng.integers(1, 4, (TEXTS, 3)), columns=list("abc")))
    for name in ("bp", *others) if repetition < 50 else ("bp",):
        result = getattr(agreement, name)()["est"]
        two_sided = 2 * stats.t.sf(abs(result["z"]), TEXTS - 1)
        if name != "bp":
            assert abs(result["p_value"] - two_sided) < 1e-3
            continue
        assert abs(result["p_value"] - two_sided / 2) < 1e-3
        seen.append(result["p_value"])
        right.append(two_sided)
        if result["p_value"] < 0.05:
            low, high = result["confidence_interval"]
            contradicted.append((low < 0 < high, result["coefficient_value"] < 0))
rates = [np.mean(np.array(values) < 0.05) for values in (seen, right)]
print(f"{rates[0]:.1%} of the guessers agree significantly at 5%, by the doubled p-value {rates[1]:.1%}; the largest"
      f" p-value is {max(seen):.3f}")
assert rates[0] > 0.085 and 0.035 < rates[1] < 0.07 and max(seen) < 0.501
inside, negative = np.sum(contradicted, axis=0)
print(f"of {len(contradicted)} that are significant {inside} have an interval with 0, and {negative} are negative")
assert inside > len(contradicted) / 3 and negative > 3

pair = pd.DataFrame(np.random.default_rng(0).integers(1, 4, (TEXTS, 2)), columns=list("ab"))
results = [kind.bp()["est"] for kind in (raw.CAC(pair), table.CAC(pd.crosstab(pair.a, pair.b)))]
print("the same two annotators:", [(round(r["coefficient_value"], 4), round(float(r["p_value"]), 4)) for r in results])
assert results[0]["coefficient_value"] == results[1]["coefficient_value"] > 0
assert abs(results[0]["p_value"] / results[1]["p_value"] - 0.5) < 0.02
PYTHON
echo "as seen"
