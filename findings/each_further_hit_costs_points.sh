#!/usr/bin/env bash
# llama-index-core 0.14.25: the granular MRR gets smaller with each further hit, so that a search which finds one of
# three passages has 1.0 and one which finds all three at once 0.61; a full page of hits has an NDCG of 0.47.
#
# The retrieval evaluator of LlamaIndex takes its measures by name or as objects. MRR is documented with "two
# calculation options": with use_granular_mrr it "sums the reciprocal ranks of all relevant retrieved documents and
# divides by the count of relevant documents". The code divides by the count of those that were found. So what is not
# found costs nothing, and each hit after the first draws the mean down: of three relevant passages, hits at the ranks
# 1, 2 and 3 have 0.61, at 1 and 3 0.67, and at 1 alone 1.0. Whoever chooses the number of passages or the splitting of
# texts by it takes the search that finds least. Divided by the count of relevant documents, these are 0.61, 0.44 and
# 0.33. The default MRR is right.
# NDCG's page says that "the position p is taken as the size of the query results". Its ideal goes over all relevant
# passages all the same: of ten relevant ones, three hits of three have 0.47, and no search with three results can have
# more. trec_eval's ndcg_cut_3 is 1. So the number depends on how many relevant passages a query has more than on the
# search, and a mean over queries weighs them by that. (An issue of 2024, github.com/run-llama/llama_index/issues/17070,
# was about the ideal over all results, which was the opposite error.)
#
# Take pytrec_eval's measures, or AveragePrecision of LlamaIndex, which counts what isn't found. Seen in November 2026
# with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check llama-index-core==0.14.25 pytrec-eval-terrier==0.5.11
NLTK_DATA="$folder" "$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import pytrec_eval
from llama_index.core.evaluation.retrieval.metrics import MRR, NDCG, AveragePrecision

print("llama-index-core", version("llama-index-core"))
granular, plain, precision, gain = MRR(), MRR(), AveragePrecision(), NDCG()
granular.use_granular_mrr = True
relevant = ["a", "b", "c"]
runs = {"hits at 1, 2 and 3": "abcvw", "hits at 1 and 3": "avbwx", "a hit at 1": "avwxy", "a hit at 2": "vawxy"}
seen = {}
for name, found in runs.items():
    scores = [measure.compute(expected_ids=relevant, retrieved_ids=list(found)).score
              for measure in (granular, plain, precision)]
    right = sum(1 / rank for rank, passage in enumerate(found, 1) if passage in relevant) / len(relevant)
    seen[name] = scores[0], right, scores[2]
    print("{}: granular MRR {:.2f}, divided by all relevant ones {:.2f}; MRR {:.2f}; average precision {:.2f}".format(
        name, scores[0], right, *scores[1:]))
order = [seen[name][0] for name in list(runs)[:3]]
assert order == sorted(order) and order[-1] == 1 and abs(order[0] - 11 / 18) < 1e-9, "a further hit is no loss now"
for column in (1, 2):
    assert seen["hits at 1, 2 and 3"][column] > seen["hits at 1 and 3"][column] > seen["a hit at 1"][column]

relevant = [f"p{number}" for number in range(10)]
for results in (1, 3, 10):
    found = relevant[:results]
    own = gain.compute(expected_ids=relevant, retrieved_ids=found).score
    evaluator = pytrec_eval.RelevanceEvaluator({"q": dict.fromkeys(relevant, 1)}, {f"ndcg_cut.{results}"})
    run = {"q": {passage: 1.0 - rank / 100 for rank, passage in enumerate(found)}}
    trec = evaluator.evaluate(run)["q"][f"ndcg_cut_{results}"]
    print(f"{results} hits in {results} results, 10 relevant passages: NDCG {own:.2f}, trec_eval {trec:.2f}")
    assert trec == 1 and (own == 1 if results == 10 else own < 0.5), "the ideal is as long as the results now"
PYTHON
echo "as seen"
