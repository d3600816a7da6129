#!/usr/bin/env bash
# scikit-multilearn-ng 0.0.8: predict_proba of ProbabilisticClassifierChain gives a label that is surely absent a
# probability near 1, so that the areas under the ROC curves are 0.2 in place of 0.9.
#
# The class is for texts with several labels: a chain of classifiers, each of which sees the labels before, is asked for
# all 2^n answers, and the most probable one is predicted. predict_proba, by its page a "matrix with label assignment
# probabilities", remembers for the best answer how probable each of its zeros and ones is: 0.97 for a label that is
# present with 97%, and 0.97 as well for one that is absent with 97%. Nearly all numbers are above one half, so with a
# threshold of 0.5 all texts get all labels, and most labels are absent from most texts, so the surest absences come
# first in a ranking. With four labels, of which a fifth is present, the areas under the ROC curves are 0.18, 0.25, 0.24
# and 0.26. scikit-learn's ClassifierChain of the same classifiers has 0.90, 0.88, 0.88 and 0.94. predict is right, and
# ClassifierChain of the package itself, whose page and arguments are the same, gives the probability of the label.
#
# Take 1 - p where predict gives 0, as below, or scikit-learn's ClassifierChain. Seen in November 2026 with Python 3.11.
# The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check scikit-multilearn-ng==0.0.8 numpy==2.4.6 \
    scipy==1.17.1 scikit-learn==1.9.1
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.multioutput import ClassifierChain
from skmultilearn.problem_transform import ClassifierChain as OwnChain
from skmultilearn.problem_transform import ProbabilisticClassifierChain

print("scikit-multilearn-ng", version("scikit-multilearn-ng"), "numpy", np.__version__)
rng = np.random.default_rng(0)
features = rng.normal(size=(500, 16))
scores = features @ rng.normal(size=(16, 4)) / 4 + 0.6 * rng.normal(size=(500, 4))
labels = (scores > 0.9).astype(int)
train, test = slice(0, 300), slice(300, 500)

areas = {}


def show(name, chances, answers):
    areas[name] = roc_auc_score(labels[test], chances, average=None)
    print(f"{name}: areas {areas[name].round(2)}, above 0.5: {(chances > 0.5).mean():.0%}, answered: "
          f"{answers.mean():.0%}, mean of the present {chances[answers == 1].mean():.2f}, of the "
          f"absent {chances[answers == 0].mean():.2f}")
    return chances


model = ProbabilisticClassifierChain(LogisticRegression(), require_dense=[True, True])
model.fit(features[train], labels[train])
answers = model.predict(features[test]).toarray()
chances = show("ProbabilisticClassifierChain", model.predict_proba(features[test]).toarray(), answers)
turned = show("turned round where it says no", np.where(answers == 1, chances, 1 - chances), answers)
own = OwnChain(LogisticRegression(), require_dense=[True, True]).fit(features[train], labels[train])
show("the package's ClassifierChain", own.predict_proba(features[test]).toarray(),
     own.predict(features[test]).toarray())
chain = ClassifierChain(LogisticRegression()).fit(features[train], labels[train])
show("scikit-learn's ClassifierChain", chain.predict_proba(features[test]), chain.predict(features[test]))

assert (answers == labels[test]).mean() > 0.83, "predict is right"
assert areas["ProbabilisticClassifierChain"].max() < 0.35 and (chances > 0.5).mean() > 0.98, "absent is unlikely now"
first = model.classifiers_[0].predict_proba(features[test])
assert np.allclose(chances[:, 0], first[np.arange(200), answers[:, 0]])
assert np.allclose(turned[:, 0], first[:, 1]), "turned round, it is the probability of the label"
for name in areas:
    assert name == "ProbabilisticClassifierChain" or areas[name].min() > 0.87, name
PYTHON
echo "as seen"
