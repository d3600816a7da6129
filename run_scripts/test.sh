#!/usr/bin/env bash
# Sets everything up and runs the tests: bash run_scripts/test.sh [pytest's arguments]
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh" "[test]"
echo "== running the tests"
"$python" -m pytest "$@"
echo "== the tests passed; next, pre-train a small BERT: bash run_scripts/quickstart.sh"
