#!/usr/bin/env bash
# torchsampler 0.1.2: ImbalancedDatasetSampler with indices that are not sorted gives each text the weight of another,
# so that a class of a tenth stays a tenth or less in place of a half.
#
# The sampler draws texts of rare classes more often. With indices= it draws from a part of the data, as from the
# training part of a random split, whose indices are shuffled. The code puts the labels into a table with these indices
# as its index, sorts the table by it and computes the weights in that order, but draws places in the order in which
# the indices were given. So the weights belong to other texts: a text of the rare class has the large weight with the
# probability of the rare class. With sorted indices each class has its share. train_test_split of scikit-learn and
# random_split of torch give shuffled indices. No warning comes. In the example a classifier sees 11% texts of the rare
# class in place of 50%, and finds 36% of them in place of 81%.
#
# Sort the indices, and give the labels in that order. Or use WeightedRandomSampler of torch. Seen in November 2026 with
# Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps torchsampler==0.1.2
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.4.6 pandas==3.0.3 \
    scikit-learn==1.9.1
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import sys
from importlib.metadata import version
from types import ModuleType, SimpleNamespace

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import recall_score
from sklearn.model_selection import train_test_split

# The sampler only asks whether a data set is one of three classes of torchvision, so empty ones do in their place.
sys.modules["torchvision"] = ModuleType("torchvision")
sys.modules["torchvision"].datasets = SimpleNamespace(
    **{name: type(name, (), {}) for name in ("MNIST", "ImageFolder", "DatasetFolder")})
from torchsampler import ImbalancedDatasetSampler  # noqa: E402

print("torchsampler", version("torchsampler"), "torch", torch.__version__)
torch.manual_seed(0)
rng = np.random.default_rng(0)
labels = (rng.uniform(size=4000) < 0.1).astype(int)
vectors = rng.normal(size=(4000, 16)) + 0.4 * labels[:, None]
train, test = train_test_split(np.arange(4000), test_size=0.25, random_state=0)


def drawn(order):
    sampler = ImbalancedDatasetSampler(range(4000), labels=labels[order].tolist(), indices=order.tolist(),
                                       num_samples=20000)
    return np.array(list(sampler)), sampler.weights.numpy()


recalls = {}
for name, order in (("sorted", np.sort(train)), ("as the split gives them", train)):
    places, weights = drawn(order)
    share = labels[places].mean()
    right = 1 / np.bincount(labels[order])[labels[order]]
    model = LogisticRegression().fit(vectors[places], labels[places])
    recalls[name] = recall_score(labels[test], model.predict(vectors[test]))
    print(f"{name}: {share:.1%} of the texts that are drawn are of the rare class, by the weights of the labels "
          f"{right[labels[order] == 1].sum() / right.sum():.1%}; recall of the rare class {recalls[name]:.2f}")
    assert set(places) <= set(order)
    if name == "sorted":
        assert abs(share - 0.5) < 0.02 and np.allclose(weights, right)
    else:
        assert 0.06 < share < 0.14 and not np.allclose(weights, right), "the weights are in order now"
        assert np.allclose(weights, right[np.argsort(order)]), "they are those of the sorted indices"
assert recalls["sorted"] > 0.7 > 0.5 > recalls["as the split gives them"]
share = labels[drawn(np.array(torch.utils.data.random_split(range(4000), [3000, 1000])[0].indices))[0]].mean()
print(f"random_split of torch: {share:.1%}")
assert 0.06 < share < 0.14
PYTHON
echo "as seen"
