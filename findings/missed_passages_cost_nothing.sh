#!/usr/bin/env bash
# unitxt 1.26.10: MAP divides by the number of relevant passages that were found and not by that of all, so that a
# search which finds one of ten relevant passages has 1.0; recall_at_k goes to 5.0 where a document comes in parts.
#
# The metric refers to Wikipedia's definition, whose divisor is the number of relevant documents. unitxt's
# (RetrievalMetric, MAP) is the sum of relevance_at_k over what was retrieved. So missed passages cost nothing, and
# a search that returns less looks better: for queries with ten relevant passages each, MAP of the first hit alone is
# 0.84, and of the first hundred, which hold 89% of what is relevant, 0.54. pytrec_eval says 0.08 and 0.49.
# metrics.rag.external_rag.context_correctness.map is this metric. Its neighbours count a document again each time
# that its id comes: the ids of the relevant documents are made unique, those of the retrieved ones aren't. When five
# parts of one document are returned, as happens when documents are searched in parts, recall_at_5 is 5.0, and for a
# query with two relevant documents of which one is found it is 2.5 in place of 0.5. No warning comes.
#
# Give pytrec_eval the ids with a score each, and each id once. Seen in November 2026 with Python 3.11. The script fails
# if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check unitxt==1.26.10 datasets==5.2.0 scipy==1.17.1 \
    pandas==3.1.1 numpy==2.4.6 pytrec-eval-terrier==0.5.11
HF_HUB_OFFLINE=1 HF_HOME="$folder/home" "$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np
import pytrec_eval
from unitxt.metrics import MAP, RetrievalAtK
from unitxt.stream import MultiStream

print("unitxt", version("unitxt"), "pytrec_eval", version("pytrec-eval-terrier"))


def score(metric, found, relevant):
    rows = [{"prediction": ids, "references": [gold], "task_data": {}} for ids, gold in zip(found, relevant)]
    return list(metric(MultiStream.from_iterables({"test": rows}))["test"])[0]["score"]["global"]


def reference(found, relevant):
    gold = {str(query): {id: 1 for id in ids} for query, ids in enumerate(relevant)}
    run = {str(query): {id: float(-rank) for rank, id in enumerate(ids)} for query, ids in enumerate(found)}
    result = pytrec_eval.RelevanceEvaluator(gold, {"map"}).evaluate(run)
    return np.mean([result[query]["map"] for query in gold])


generator = np.random.default_rng(0)
relevant = [[f"passage {number}" for number in range(10)] for _ in range(50)]
rankings = []
for _ in relevant:
    order = np.argsort(-(2.5 * (np.arange(1000) < 10) + generator.normal(size=1000)))
    rankings.append([f"passage {number}" for number in order])
here, there = {}, {}
for depth in (1, 10, 100):
    found = [ids[:depth] for ids in rankings]
    here[depth] = score(MAP(n_resamples=None), found, relevant)["map"]
    there[depth] = reference(found, relevant)
    share = np.mean([len(set(ids) & set(gold)) / 10 for ids, gold in zip(found, relevant)])
    print(f"first {depth}: {share:.0%} of the relevant passages, MAP {here[depth]:.2f}, pytrec_eval {there[depth]:.2f}")
one = score(MAP(n_resamples=None), [["passage 3", "passage 50"]], relevant[:1])["map"]
print(f"one of ten relevant passages found: MAP {one:.2f}")
assert one == 1.0 and here[1] > here[10] > here[100], "it divides by all relevant passages now"
assert there[1] < there[10] < there[100]

recall = {}
for gold in (["report"], ["report", "letter"]):
    result = score(RetrievalAtK(k_list=[5], n_resamples=None), [["report"] * 5], [gold])
    recall[len(gold)] = result["recall_at_5"]
    print(f"five parts of the report found, relevant: {' and '.join(gold)}: recall_at_5 {recall[len(gold)]}")
assert recall == {1: 5.0, 2: 2.5}, "each document counts once now"
PYTHON
echo "as seen"
