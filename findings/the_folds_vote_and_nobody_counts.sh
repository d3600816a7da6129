#!/usr/bin/env bash
# imodels 3.0.4: RuleFit cross-validates up to 100 strengths of its penalty and then takes the last one, whatever the
# folds say, so that its rules overfit and cv=True costs time alone.
#
# RuleFit explains labels, as those of a fine-tuned model, by rules over features of the texts. Its penalty decides how
# many rules are left. By default "cross-validation on the training set" is "to pick the best alpha that satisfies
# max_rules" (github.com/csinva/imodels/pull/73). The function walks from the strongest penalty down, scores each with
# five folds and stops at the first that leaves too many rules. Then it asks whether the scores differ, by
# np.all(alpha_scores != alpha_scores[0]). The first score is equal to itself, so the answer is always no, and the
# weakest penalty before the stop is taken: as many rules as are allowed. With labels that depend on one rule of two
# features, and noise, the squared error is 0.17 with max_rules=30 and 0.48 with 60, with cv=True and False, to the last
# digit; the best of five penalties has 0.06 with 8 rules. The classifier, which walks from 10,000 to 0.0001, does the
# same. If no penalty leaves too many rules, the last but one is taken.
#
# Choose alpha by GridSearchCV over RuleFitRegressor(alpha=...), which takes the number as it is. Seen in November 2026
# with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 \
    pandas==3.1.1 matplotlib==3.11.2 mlxtend==0.25.0 requests==2.34.2 tqdm==4.70.1 six==1.17.0
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps imodels==3.0.4
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from imodels import RuleFitRegressor
from imodels.util.score import get_best_alpha_under_max_rules
from sklearn.linear_model import Lasso, LogisticRegression
from sklearn.model_selection import cross_val_score

print("imodels", version("imodels"), "scikit-learn", version("scikit-learn"))
rng = np.random.default_rng(0)


def draw(number, noise):
    features = rng.normal(size=(number, 10))
    signal = 2.0 * (features[:, 0] > 0) * (features[:, 1] > 0)
    return features, signal + noise * rng.normal(size=number)


train, test = draw(200, 1.0), draw(3000, 0.0)


def error(**options):
    model = RuleFitRegressor(random_state=0, n_estimators=30, **options).fit(*train)
    return float(np.mean((model.predict(test[0]) - test[1]) ** 2)), len(model._get_rules(exclude_zero_coef=True))


errors = {}
for allowed in (30, 60):
    voted, blind = [error(cv=cv, max_rules=allowed) for cv in (True, False)]
    print(f"max_rules={allowed}: squared error {voted[0]:.3f} with cv, {blind[0]:.3f} without, {voted[1]} rules")
    assert voted == blind and allowed - 3 <= voted[1] <= allowed
    errors[allowed] = voted[0]
best = min((error(alpha=alpha) for alpha in (0.2, 0.15, 0.1, 0.07, 0.05)), key=lambda run: run[0])
print(f"the best of five given penalties: squared error {best[0]:.3f} with {best[1]} rules")
assert best[0] < 0.07 and errors[30] > 2 * best[0] and errors[60] > 6 * best[0]

columns = rng.normal(size=(150, 40))
numbers = columns[:, 0] + rng.normal(size=150)
names = [str(place) for place in range(40)]
for task, labels, build, scoring in (
        ("regression", numbers, lambda alpha: Lasso(alpha=alpha), "neg_mean_squared_error"),
        ("classification", (numbers > 0).astype(int),
         lambda alpha: LogisticRegression(penalty="l1", C=1 / alpha, solver="liblinear"), "accuracy")):
    found = [get_best_alpha_under_max_rules(columns, labels, names, prediction_task=task, max_rules=25, cv=cv,
                                            random_state=0) for cv in (True, False)]
    tried = np.geomspace(found[0], 30 * found[0], 12)
    scores = [cross_val_score(build(alpha), columns, labels, cv=5, scoring=scoring).mean() for alpha in tried]
    print(f"{task}: penalty {found[0]:.3f} with cv, {found[1]:.3f} without, score {scores[0]:.3f}; by the folds "
          f"{tried[np.argmax(scores)]:.3f} with {max(scores):.3f}")
    assert found[0] == found[1] and max(scores) > scores[0] + 0.02
PYTHON
echo "as seen"
