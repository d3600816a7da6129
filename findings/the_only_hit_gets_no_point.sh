#!/usr/bin/env bash
# ranx 0.3.21: fuse with its min-max normalisation gives the only hit of a search 0 points.
#
# To join a word search and a search by vectors, min-max brings the scores of each answer to the range from 0 to
# 1. An answer with one passage, or with passages of one score, has no range, and ranx gives each of them 0, the
# mark of the worst. Nothing says so. A rare name or a part number is found by a word search in exactly one
# passage, mostly the right one, and this certain hit counts as much as no hit. Here the words alone have the
# reciprocal rank 1, the vectors 0.25, and both together 0.25 in place of 1. If the words find a second, wrong
# passage, the fusion is right. norm="sum" does the same; "rank" and method="rrf" do not.
#
# Take method="rrf" or norm="rank". Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check ranx==0.3.21 numba==0.68.1 numpy==2.4.6
NUMBA_DISABLE_JIT=1 IR_DATASETS_HOME="$folder/home" "$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

from ranx import Qrels, Run, evaluate, fuse

print("ranx", version("ranx"))
gold = Qrels({"part X-17": {"manual": 1}})
vectors = Run({"part X-17": {"blog": 0.9, "forum": 0.8, "news": 0.7, "manual": 0.69}})
WORDS = {"one hit": {"manual": 12.0}, "two hits": {"manual": 12.0, "list": 3.0},
         "equal hits": {"list": 5.0, "manual": 5.0}}
reciprocal_ranks = {}
for name, hits in WORDS.items():
    words = Run({"part X-17": hits})
    print(f"{name}: words {evaluate(gold, words, 'mrr')}, vectors {evaluate(gold, vectors, 'mrr')}")
    for way, options in (("min-max", {"norm": "min-max", "method": "sum"}), ("sum", {"norm": "sum", "method": "sum"}),
                         ("rank", {"norm": "rank", "method": "sum"}), ("rrf", {"method": "rrf"})):
        fused = fuse([words, vectors], **options)
        reciprocal_ranks[name, way] = float(evaluate(gold, fused, "mrr"))
        print(f"  {way:<8}", {passage: round(float(score), 3) for passage, score in fused.run["part X-17"].items()},
              "reciprocal rank", reciprocal_ranks[name, way])
assert reciprocal_ranks["one hit", "min-max"] == reciprocal_ranks["one hit", "sum"] == 0.25, "the only hit counts now"
assert reciprocal_ranks["equal hits", "min-max"] == 0.25, "equal hits count now"
assert reciprocal_ranks["two hits", "min-max"] == 1, "two hits are wrong too"
assert reciprocal_ranks["one hit", "rank"] == reciprocal_ranks["one hit", "rrf"] == 1, "the others are wrong too"
PYTHON
echo "as seen"
