#!/usr/bin/env bash
# opendataval 1.3.0: DataShapley and BetaShapley give other data the values of data that they saw before, if they are
# used again, and now and then also if they are made anew.
#
# They estimate what each training text is worth by training on many subsets, to find wrong labels for instance. The
# samplers keep their results in a dictionary of the class, so that several evaluators may share them, under a name
# that is "set to a unique value for a object" by default: id(self). It is looked up before anything is computed, and
# never emptied. So an evaluator that gets a second data set returns the values of the first, to the last bit, in no
# time; and after an evaluator is gone Python gives its id to another, so in a loop over data sets some get the values
# of an older one: 5 to 14 of 100 here, by when the garbage is collected. These values have nothing to do with the
# texts: wrong labels, a quarter of the texts, are among the lowest quarter as often as by lot. If the number of texts
# differs, those of DataShapley have the old length. Neither documentation nor tracker speaks of it. No warning comes.
#
# Give cache_name=None. Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check scikit-learn==1.9.1 pandas==3.1.1 scipy==1.17.1 \
    matplotlib==3.11.2 tqdm==4.70.1 requests torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps opendataval==1.3.0  # without data sets
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
import sys
import types
import warnings
from importlib.metadata import version
from unittest.mock import MagicMock

sys.modules.update({name: MagicMock() for name in ("geomloss", "transformers")})             # used by other parts
sys.modules["opendataval.dataloader.datasets"] = types.ModuleType("datasets")
import numpy as np
import torch
from opendataval.dataval import BetaShapley, DataShapley
from opendataval.dataval.margcontrib import TMCSampler
from opendataval.metrics import accuracy
from opendataval.model.api import Model

print("opendataval", version("opendataval"), "torch", torch.__version__)
warnings.simplefilter("ignore")
torch.set_num_threads(1)


class NearestMean(Model):
    """The class whose texts are nearer on average; one class alone is always given."""

    def fit(self, x, y):
        x, y = (torch.stack([data[i] for i in range(len(data))]) for data in (x, y))
        self.means = [x[y[:, c] == 1].mean(0) if y[:, c].any() else torch.full(x.shape[1:], 1e9) for c in (0, 1)]
        return self

    def predict(self, x):
        nearer = (x - self.means[1]).norm(dim=1) < (x - self.means[0]).norm(dim=1)
        return torch.stack([~nearer, nearer], 1).float()


def draw(seed, texts=20):
    """Training texts of two classes, a quarter with the wrong label, and texts to judge by."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 2, (texts + 200,), generator=generator)
    x = torch.randn(texts + 200, 4, generator=generator) + 1.5 * labels[:, None]
    wrong = torch.randperm(texts, generator=generator)[: texts // 4]
    labels[wrong] = 1 - labels[wrong]
    y = torch.nn.functional.one_hot(labels, 2).float()
    return (x[:texts], y[:texts], x[texts:], y[texts:]), wrong.numpy()


def value(evaluator, seed, **options):
    evaluator = evaluator.input_model_metric(NearestMean(), accuracy).input_data(*draw(seed, **options)[0])
    return evaluator.train_data_values().evaluate_data_values()


def make(cls=DataShapley, epochs=5, **options):
    return cls(sampler=TMCSampler(mc_epochs=epochs, random_state=1, **options))


def found(values, seed):
    """The share of the wrong labels among the quarter of texts with the lowest values."""
    return len(set(np.argsort(values)[:5]) & set(draw(seed)[1])) / 5


for cls in (DataShapley, BetaShapley):                                 # one evaluator for two data sets
    used, again = make(cls), make(cls, cache_name=None)
    first, second, right = value(used, 0), value(used, 1), value(again, 1)
    assert np.array_equal(first, second) and not np.array_equal(second, right)
used, again = make(), make(cache_name=None)
assert [len(value(evaluator, seed, texts=texts)) for evaluator in (used, again) for seed, texts in ((0, 20), (1, 30))
        ] == [20, 20, 20, 30]
print("a used evaluator gives the second data set the values of the first, and 30 texts 20 values")

used, again = make(epochs=25), make(epochs=25, cache_name=None)
rates = np.mean([[found(value(used, seed), seed), found(value(again, seed), seed)] for seed in range(12)][1:], axis=0)
print(f"wrong labels among the lowest quarter: {rates[0]:.0%}, and {rates[1]:.0%} with cache_name=None")
assert rates[0] < 0.45 and rates[1] > 0.75

old, right = ([value(make(**options), seed) for seed in range(100)] for options in ({}, {"cache_name": None}))
wrong = [seed for seed in range(100) if not np.array_equal(old[seed], right[seed])]
source = [next(older for older in range(seed) if np.array_equal(old[seed], right[older])) for seed in wrong]
print(f"of 100 new evaluators {len(wrong)} give the values of older data, as {dict(zip(wrong, source))}")
assert 1 <= len(wrong) <= 40
PYTHON
echo "as seen"
