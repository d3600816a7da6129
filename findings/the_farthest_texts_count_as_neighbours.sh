#!/usr/bin/env bash
# torchcp 1.2.1: KNN(p="cosine") takes the similarity for a distance, so that the farthest texts count as the nearest
# and the sets hold nearly all classes.
#
# The score of a class says how strange it is for a text: the distances to the k nearest training texts of the class,
# by those to the k nearest of other classes. A prediction set has the classes with low scores. With p="cosine", the
# usual measure for embeddings, torchcp computes the cosine of each pair, which is 1 for equal texts, and takes the k
# smallest numbers for the nearest texts. These are the farthest. Embeddings of encoders have much in common, so nearly
# all cosines are above 0. Then the right class, whose texts are more alike, has the largest score, and others get
# smaller ones: the lowest score is at the right class for 1 of 1000 texts here, and for 980 by the distance of the same
# vectors, which orders unit vectors as the cosine does. The sets still hold the right class for 90% of the texts, as
# promised, since any score gives that. But they have 4.9 of 5 classes in place of 0.9. So it looks as if the
# embeddings were bad. No warning comes.
#
# Normalise the vectors and take p=2. Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.4.6 scikit-learn==1.9.1 \
    tqdm==4.70.1
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps torchcp==1.2.1    # without graphs
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import importlib.util
import sys
import types
from importlib.metadata import version

import torch

# The part for classifiers alone: that for graphs needs torch_geometric, and one loss torchsort, which is compiled.
package = types.ModuleType("torchcp")
package.__path__ = list(importlib.util.find_spec("torchcp").submodule_search_locations)
sys.modules["torchcp"] = package
sys.modules["torchsort"] = types.SimpleNamespace(soft_rank=None, soft_sort=None)
from torchcp.classification.predictor import SplitPredictor
from torchcp.classification.score import KNN

print("torchcp", version("torchcp"))
CLASSES, SIZE = 5, 16
torch.manual_seed(0)
centres, common = torch.randn(CLASSES, SIZE), 2 * torch.randn(SIZE)


def draw(count):
    labels = torch.randint(0, CLASSES, (count,))
    vectors = common + centres[labels] + torch.randn(count, SIZE)
    return torch.nn.functional.normalize(vectors, dim=1), labels


def by_hand(texts, count):
    """The score with 1 - cosine as the distance."""
    distances = 1 - texts @ training[0].T
    scores = torch.zeros(len(texts), CLASSES)
    for label in range(CLASSES):
        same = training[1] == label
        scores[:, label] = (distances[:, same].topk(count, largest=False)[0].sum(1)
                            / distances[:, ~same].topk(count, largest=False)[0].sum(1))
    return scores


training, calibration, texts = draw(1000), draw(500), draw(1000)
cosines = texts[0] @ training[0].T
print("smallest cosine", cosines.min().item())
seen = {}
for count in (1, 5, 10):
    for name, measure in (("distance", 2), ("cosine", "cosine"), ("by hand", None)):
        score = KNN(*training, num_classes=CLASSES, k=count, p=measure or 2)
        if measure is None:
            score = lambda vectors, labels=None: (by_hand(vectors, count) if labels is None else
                                                  by_hand(vectors, count)[torch.arange(len(labels)), labels])
        predictor = SplitPredictor(score, alpha=0.1)
        predictor.calculate_threshold(*calibration)
        sets = predictor.predict_with_logits(texts[0])
        held = sets[torch.arange(1000), texts[1]].float().mean().item()
        first = (score(texts[0]).argmin(1) == texts[1]).float().mean().item()
        seen[count, name] = held, sets.sum(1).float().mean().item(), first
        print(f"k={count:<3}{name:<9} holds the right class {held:.3f} size {seen[count, name][1]:.2f} "
              f"lowest score at the right class {first:.3f}")
    assert 0.88 < min(seen[count, name][0] for name in ("distance", "cosine", "by hand")), "the promise is not kept"
    assert seen[count, "cosine"][1] > 4.7 and seen[count, "cosine"][2] < 0.05, "the cosine is a distance now"
    for name in ("distance", "by hand"):
        assert seen[count, name][1] < 1 and seen[count, name][2] > 0.95, "another measure is wrong too"

pair = KNN(torch.tensor([[1.0, 0], [0.6, 0.8], [0, 1]]), torch.tensor([0, 0, 1]), num_classes=2, k=1, p="cosine")
score = pair(torch.tensor([[1.0, 0.1]]), torch.tensor([0])).item()
vector = torch.tensor([1.0, 0.1]) / torch.tensor([1.0, 0.1]).norm()
assert abs(score - (vector @ torch.tensor([0.6, 0.8]) / vector[1]).item()) < 1e-4, "the nearest text is another one"
PYTHON
echo "as seen"
