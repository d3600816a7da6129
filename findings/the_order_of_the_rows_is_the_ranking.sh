#!/usr/bin/env bash
# trectools 0.0.50: get_ndcg takes the order of the rows for the ranking, and with pandas 3 get_rprec counts what is
# relevant for other queries.
#
# TrecEval has the measures of trec_eval for a table of results. trec_eval=True, the default, is for the same numbers as
# the program, "e.g., sort documents by score first". get_map, get_rprec and the others sort. get_ndcg has the argument
# and the sentence, and does not sort. A file is sorted when it is read, and a data frame is not
# (load_run_from_dataframe): of a run that comes from a dictionary, a join or several processes, the NDCG is that of an
# accidental order, here 0.41 in place of 0.73, and 0.12 in place of 0.68 for the first ten; MAP beside it is right.
# A better ranking of the same passages changes nothing. get_rprec takes the first R results of each query by groupby
# and apply. Since pandas 3 apply leaves out the column of the group, so the results no longer know their query and are
# joined with the judgements by the passage alone: a passage that any query has found counts for each query that it is
# relevant for. So R-precision is too large and may be above 1, here 1.45 in place of 0.49. The package asks for pandas
# 0.15 or newer. No warning comes.
#
# Sort the frame by query and score first, and install pandas 2. Seen in November 2026 with Python 3.11. The script
# fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check trectools==0.0.50 pandas==3.1.1 numpy==2.4.6 \
    scipy==1.17.1 scikit-learn==1.9.1 pytrec-eval-terrier==0.5.11
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import numpy as np
import pandas as pd
import pytrec_eval
from trectools import TrecEval, TrecQrel, TrecRun

print("trectools", version("trectools"), "pandas", version("pandas"))
rng = np.random.default_rng(0)
QUERIES, PASSAGES, FOUND = 50, 1000, 100
relevant, scores = {}, {}
for query in range(QUERIES):
    grades = {f"p{number}": int(rng.integers(1, 4)) for number in rng.choice(PASSAGES, 20, replace=False)}
    found = {f"p{number}" for number in rng.choice(PASSAGES, FOUND - 15, replace=False)} | set(list(grades)[:15])
    relevant[str(query)] = grades
    scores[str(query)] = {passage: rng.normal() + 0.8 * grades.get(passage, 0) for passage in sorted(found)}
measures = {"map", "ndcg", "ndcg_cut.10", "Rprec"}
program = pytrec_eval.RelevanceEvaluator(relevant, measures).evaluate(scores)
program = {name: np.mean([result[name] for result in program.values()]) for name in program["0"]}

qrels = TrecQrel()
qrels.qrels_data = pd.DataFrame([(query, 0, passage, grade) for query, grades in relevant.items()
                                 for passage, grade in grades.items()], columns=["query", "q0", "docid", "rel"])


def evaluate(frame):
    run = TrecRun()
    run.load_run_from_dataframe(frame)
    evaluation = TrecEval(run, qrels)
    return {"map": evaluation.get_map(trec_eval=True), "ndcg": evaluation.get_ndcg(trec_eval=True),
            "ndcg_cut_10": evaluation.get_ndcg(depth=10, trec_eval=True), "Rprec": evaluation.get_rprec(trec_eval=True)}


rows = [(query, "Q0", passage, 0, score, "model") for query, found in scores.items()
        for passage, score in found.items()]
frame = pd.DataFrame(rows, columns=["query", "q0", "docid", "rank", "score", "system"])
ordered = frame.sort_values(["query", "score"], ascending=[True, False])
results = {"unsorted": evaluate(frame), "sorted": evaluate(ordered)}
for name, result in (("pytrec_eval", program), *results.items()):
    print(f"{name:<12}" + " ".join(f"{measure} {result[measure]:.3f}" for measure in sorted(program)))
for result in results.values():
    assert np.isclose(result["map"], program["map"]), "MAP is wrong too"
for name in ("ndcg", "ndcg_cut_10"):
    assert np.isclose(results["sorted"][name], program[name]), "the NDCG of sorted rows is wrong too"
    assert results["unsorted"][name] < 0.75 * program[name], "the rows are sorted now"
better = frame.assign(score=[float(relevant[query].get(passage, 0))
                             for query, passage in zip(frame["query"], frame["docid"])])
assert evaluate(better)["ndcg"] == results["unsorted"]["ndcg"], "the NDCG looks at the scores now"
assert evaluate(better)["map"] > 0.7

hits = []
first = {query: set(sorted(found, key=found.get, reverse=True)[:20]) for query, found in scores.items()}
for grades in relevant.values():
    hits.append(sum(passage in found for found in first.values() for passage in grades) / len(grades))
print("R-precision with the hits of all queries", np.mean(hits).round(3))
for result in results.values():
    assert np.isclose(result["Rprec"], np.mean(hits)) and result["Rprec"] > 1.2 * program["Rprec"], "it is right now"
PYTHON
echo "as seen"
