#!/usr/bin/env bash
# allRank 1.4.3: mrr gives a query without a relevant passage the score 1, so that a search which finds less looks
# better.
#
# Mean reciprocal rank takes 1 / the place of the first relevant passage, and 0 where there is none, as after a word
# search that has not found it. allrank.models.metrics.mrr looks for the place of the largest label. If all labels are 0
# that is the first place. A line is there to set such queries to 0, but it adds up the labels of the whole batch: it
# works for batches of one query, or if no query of the batch has an answer. So the score depends on the batch size,
# too. Here passages are ranked by lot. After a search that finds the answers of 90% of the queries mrr says 0.40, after
# one that finds 30% of them 0.80; trec_eval says 0.31 and 0.10. With grades a second thing is wrong: the first place of
# the best grade is taken, and a relevant passage with a lower grade above it is not seen.
#
# Take pytrec_eval, or set the result to 0 where the largest label is 0. The package pins versions of torch of 2021 and
# is installed without them here; the code is its own. Seen in November 2026 with Python 3.11. The script fails if this
# changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.4.6 \
    pytrec-eval-terrier==0.5.11
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps allRank==1.4.3
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import sys
import types
from importlib.metadata import version

import pytrec_eval
import torch

# The reader of files needs Google's cloud; of it only the label of the padding is used.
sys.modules["allrank.data.dataset_loading"] = types.SimpleNamespace(PADDED_Y_VALUE=-1)
from allrank.models.metrics import mrr

print("allRank", version("allRank"), "torch", torch.__version__)


def trec_eval(scores, labels):
    """The mean reciprocal rank by trec_eval."""
    qrels = {f"q{query}": {f"d{place}": int(label) for place, label in enumerate(row)}
             for query, row in enumerate(labels)}
    run = {f"q{query}": {f"d{place}": float(score) for place, score in enumerate(row)}
           for query, row in enumerate(scores)}
    found = pytrec_eval.RelevanceEvaluator(qrels, {"recip_rank"}).evaluate(run)
    return sum(row["recip_rank"] for row in found.values()) / len(qrels)


scores = torch.tensor([[0.2, 0.9, 0.1], [0.3, 0.2, 0.1]])
labels = torch.tensor([[1.0, 0, 0], [0, 0, 0]])
print("two queries, the second without an answer:", mrr(scores, labels).flatten().tolist(),
      "the second alone:", mrr(scores[1:], labels[1:]).flatten().tolist())
assert mrr(scores, labels).flatten().tolist() == [0.5, 1.0], "no answer is no hit now"
assert mrr(scores[1:], labels[1:]).flatten().tolist() == [0.0], "alone it is a hit, too"

grades = torch.tensor([[1.0, 2, 0], [1, 0, 0]])
order = torch.tensor([[3.0, 2, 1], [3, 2, 1]])
print("a relevant passage comes first in both:", mrr(order, grades).flatten().tolist(), "trec_eval",
      trec_eval(order, grades))
assert mrr(order, grades).flatten().tolist() == [0.5, 1.0] and trec_eval(order, grades) == 1, "grades are right now"

seen = {}
for share in (1.0, 0.9, 0.6, 0.3):
    torch.manual_seed(0)
    scores, labels = torch.randn(2000, 8), torch.zeros(2000, 8)
    labels[torch.arange(2000), torch.randint(0, 8, (2000,))] = 1
    labels[torch.rand(2000) >= share] = 0                                          # not found by the search
    batches = [mrr(scores[start:start + 50], labels[start:start + 50]) for start in range(0, 2000, 50)]
    single = torch.cat([mrr(scores[row:row + 1], labels[row:row + 1]) for row in range(2000)]).mean().item()
    seen[share] = torch.cat(batches).mean().item(), trec_eval(scores, labels)
    print(f"the search finds {share:.0%}: mrr {seen[share][0]:.3f}, trec_eval {seen[share][1]:.3f}, "
          f"mrr of one query at a time {single:.3f}")
    assert abs(single - seen[share][1]) < 1e-3, "one query at a time is not right"
    assert abs(seen[share][0] - seen[share][1] - (labels.sum(1) == 0).float().mean()) < 1e-3, "the score is another"
assert abs(seen[1.0][0] - seen[1.0][1]) < 1e-4, "wrong with all answers, too"
assert seen[0.3][0] > 0.78 > seen[0.9][0] + 0.3 and seen[0.3][1] < 0.13, "less is not better now"
PYTHON
echo "as seen"
