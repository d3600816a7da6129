#!/usr/bin/env bash
# Sets everything up, checks style and types, and runs the tests:
#     bash run_scripts/test.sh [pytest's arguments]
# Python compiles a module at its first import, once for all processes; pip would compile all modules.
export PIP_COMPILE=0 PYTHONDONTWRITEBYTECODE=
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh" "[test]"
echo "== checking style (ruff) and types (mypy)"
"$python" -c "import tensorflow, keras" 2>/dev/null &     # compiles them, before several processes do
"$python" -m ruff check .
"$python" -m mypy
wait
# A file that gets its final name waits for the disk: the tests write thousands in memory instead.
free=$(df --output=avail -k /dev/shm 2>/dev/null | tail -1) || true
if [ "${free:-0}" -gt 4000000 ] && ! grep -q ' /dev/shm .*noexec' /proc/mounts; then
    TMPDIR=$(mktemp -d /dev/shm/bert_tf_tests.XXXXXX)
    export TMPDIR
    trap 'rm -rf "$TMPDIR"' EXIT
fi
# One more than the cores, since processes also wait for those that their tests start.
processes=$("$python" -c 'import os; print(min(os.cpu_count() + 1, 4))')
echo "== running the tests, files side by side ($processes processes)"
"$python" -m pytest --numprocesses="$processes" --dist=loadfile --no-loadscope-reorder \
    --durations=25 "$@"
echo "== the tests passed; next, pre-train a small BERT: bash run_scripts/quickstart.sh"
