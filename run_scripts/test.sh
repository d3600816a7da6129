#!/usr/bin/env bash
# Sets everything up, checks style and types, and runs the tests:
#     bash run_scripts/test.sh [pytest's arguments]
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh" "[test]"
echo "== checking style (ruff) and types (mypy)"
"$python" -m ruff check .
"$python" -m mypy
echo "== running the tests, files side by side (one process a core, at most 4)"
"$python" -m pytest --numprocesses=auto --maxprocesses=4 --dist=loadfile --no-loadscope-reorder \
    --durations=25 "$@"
echo "== the tests passed; next, pre-train a small BERT: bash run_scripts/quickstart.sh"
