#!/usr/bin/env bash
# torchmetrics 1.9.0: a relevant passage with a score of 0 or less is no hit for RetrievalMRR, RetrievalMAP,
# RetrievalRecall and RetrievalPrecision, however high it ranks.
#
# These metrics sort the passages of each query by the scores of a model. Rankers give logits, and in most answers
# all of them are negative; cosines and dot products may be too. Before sorting, four of the metrics make all targets
# with a score that is not above 0 irrelevant. Here the relevant passage is the first one for each of 50 queries.
# The four give 0.0, and 1.0 after a sigmoid, which changes no order. RetrievalHitRate, RetrievalNormalizedDCG and
# RetrievalRPrecision are 1.0 with both, so a report contradicts itself. With scores around 0 the numbers look
# credible: a better model, whose logits are lower, has the lower MRR, 0.30 in place of 0.90. The classes' pages
# speak of "float predictions from a model output", those of the functions of "estimated probabilities", and none of
# a threshold. It came in with pull request 3104 of Lightning-AI/torchmetrics. No warning comes.
#
# Pass scores.sigmoid(). Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torchmetrics==1.9.0 torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import torch
import torchmetrics
from torchmetrics import retrieval

print("torchmetrics", torchmetrics.__version__, "torch", torch.__version__)
QUERIES, PASSAGES = 50, 20
indexes = torch.arange(QUERIES).repeat_interleave(PASSAGES)
target = torch.zeros(QUERIES, PASSAGES, dtype=torch.long)
target[:, 3] = 1


def scores(seed, relevant, spread):
    """Logits of a ranker: those of the relevant passages have the mean relevant, the others 3 less."""
    generator = torch.Generator().manual_seed(seed)
    return relevant - 3 + 3 * target + spread * torch.randn(target.shape, generator=generator)


def measure(name, logits):
    metric = getattr(retrieval, name)
    return round(metric()(logits.reshape(-1), target.reshape(-1), indexes=indexes).item(), 3)


perfect = scores(0, relevant=-2.0, spread=0.3)
assert (perfect.argmax(1) == 3).all() and perfect.max() < 0
blind = ("RetrievalMRR", "RetrievalMAP", "RetrievalRecall")
seeing = ("RetrievalHitRate", "RetrievalNormalizedDCG", "RetrievalRPrecision")
for name in blind + seeing:
    print(f"relevant passages first: {name} {measure(name, perfect)}, sigmoids {measure(name, perfect.sigmoid())}")
assert all(measure(name, perfect) == 0 for name in blind), "negative scores count now"
assert all(measure(name, perfect.sigmoid()) == 1 for name in blind + seeing)
assert all(measure(name, perfect) == 1 for name in seeing)
precision = [retrieval.RetrievalPrecision(top_k=1)(x.reshape(-1), target.reshape(-1), indexes=indexes).item()
             for x in (perfect, perfect.sigmoid())]
print("precision of the first passage", precision)
assert precision == [0.0, 1.0]

worse, better = scores(1, relevant=1.0, spread=2.0), scores(2, relevant=-0.5, spread=1.0)
for name, logits in (("worse", worse), ("better", better)):
    ranks = (logits > logits[:, 3:4]).sum(1) + 1
    right = (1 / ranks).mean().item()
    print(f"the {name} model: MRR {measure('RetrievalMRR', logits)}, by the ranks {right:.3f}")
    assert abs(measure("RetrievalMRR", logits.sigmoid()) - right) < 1e-3
assert measure("RetrievalMRR", worse) > measure("RetrievalMRR", better) + 0.1, "the better model has the higher MRR"
assert measure("RetrievalMRR", worse.sigmoid()) < measure("RetrievalMRR", better.sigmoid()) - 0.1
PYTHON
echo "as seen"
