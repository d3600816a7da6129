#!/usr/bin/env bash
# sentence-transformers 6.2.0: ReciprocalRankFusionEvaluator counts relevant passages that were not found as if they
# followed at once after the end of the list, so that a fusion which finds more has the lower MAP and NDCG.
#
# The evaluator compares a dense and a sparse search with their fusion. Its samples are the predictions that
# InformationRetrievalEvaluator writes, that is the first hits of each query, and the relevant passages. For those that
# aren't in the list, the code appends hits to it (is_relevant += [1] * missing), in all queries with at least one hit,
# so as to have them in the ideal; but they count as found too, and the sooner the shorter the list is. The list of the
# fusion is up to twice as long as the other two. With the first five hits and ten relevant passages NDCG@10 is 0.67
# and 0.64 for the two searches and 0.51 for their fusion; pytrec_eval says 0.33, 0.31 and 0.47. MAP is 0.70, 0.66 and
# 0.63 in place of 0.19, 0.17 and 0.30. With ten hits and five relevant passages the fusion gains 0.12 in MAP in place
# of 0.21. No warning comes.
#
# Give pytrec_eval the fused lists that write_predictions writes. Seen in November 2026 with Python 3.11. The script
# fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check sentence-transformers==6.2.0 \
    transformers==5.23.0 torch==2.13.0 numpy==2.4.6 scikit-learn==1.9.1 pytrec-eval-terrier==0.5.11
(cd "$folder" && HF_HUB_OFFLINE=1 "$folder/venv/bin/python" -) <<'PYTHON'
import json
from importlib.metadata import version

import numpy as np
import pytrec_eval
from sentence_transformers.sparse_encoder.evaluation import ReciprocalRankFusionEvaluator

print("sentence-transformers", version("sentence-transformers"), "pytrec_eval", version("pytrec-eval-terrier"))
generator = np.random.default_rng(0)


def reference(samples, gold):
    run = {sample["query_id"]: {id: -float(rank) for rank, id in enumerate(sample["documents"])} for sample in samples}
    result = pytrec_eval.RelevanceEvaluator(gold, {"map", "ndcg_cut_10"}).evaluate(run).values()
    return [float(np.mean([query[name] for query in result])) for name in ("map", "ndcg_cut_10")]


def compare(relevant, hits, signal):
    positive = [f"passage {number}" for number in range(relevant)]
    samples = {"dense": [], "sparse": []}
    for query in range(200):
        for kind in samples:
            scores = signal * (np.arange(1000) < relevant) + generator.normal(size=1000)
            documents = [f"passage {number}" for number in np.argsort(-scores)[:hits]]
            samples[kind].append({"query_id": str(query), "query": "?", "positive": positive, "documents": documents})
    evaluator = ReciprocalRankFusionEvaluator(samples["dense"], samples["sparse"], at_k=10, name=f"{hits}",
                                              write_csv=False, write_predictions=True)
    metrics = evaluator(output_path=".")
    with open(evaluator.predictions_file) as file:
        samples["fusion"] = [json.loads(line) for line in file]
    gold = {sample["query_id"]: {id: 1 for id in positive} for sample in samples["dense"]}
    here, there = {}, {}
    for kind, prefix in (("dense", "dense_"), ("sparse", "sparse_"), ("fusion", "")):
        here[kind] = [float(metrics[f"{hits}_{prefix}{name}"]) for name in ("map", "ndcg@10")]
        there[kind] = reference(samples[kind], gold)
        print(f"{relevant} relevant, first {hits} hits, {kind}: MAP {here[kind][0]:.3f}, NDCG@10 {here[kind][1]:.3f};"
              f" pytrec_eval {there[kind][0]:.3f}, {there[kind][1]:.3f}")
    return here, there


here, there = compare(relevant=10, hits=5, signal=2)
for metric in range(2):
    best = max(here["dense"][metric], here["sparse"][metric])
    truth = max(there["dense"][metric], there["sparse"][metric])
    assert here["fusion"][metric] < best - 0.03, "missed passages are no hits now"
    assert there["fusion"][metric] > truth + 0.1
here, there = compare(relevant=5, hits=10, signal=3)
gain, true_gain = (scores["fusion"][0] - scores["dense"][0] for scores in (here, there))
print(f"gain of the fusion in MAP: {gain:.2f}, pytrec_eval: {true_gain:.2f}")
assert gain < 0.7 * true_gain and abs(here["dense"][1] - there["dense"][1]) < 1e-6
PYTHON
echo "as seen"
