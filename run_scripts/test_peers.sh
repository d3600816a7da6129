#!/usr/bin/env bash
# Sets up the systems that tests compare with and runs just these tests, which are skipped where the
# systems aren't installed: bash run_scripts/test_peers.sh [pytest's arguments]
#
# .venv-peers has transformers, keras-hub and ONNX; .venv-official has tf-models-official, which
# needs another version of absl-py. They take 3.7 and 3.4 GB on disk with PyTorch for CPUs, which
# PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu before the command chooses.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

venv=.venv-peers
source "$here/setup.sh" "[test,peers,onnx]"
echo "== running the tests beside transformers, keras-hub and ONNX"
"$python" -m pytest -m peer "$@"

venv=.venv-official
constraints=$venv/constraints.txt
mkdir -p "$venv"
grep -v "^absl-py==" run_scripts/constraints.txt > "$constraints.new"
cmp -s "$constraints.new" "$constraints" || mv "$constraints.new" "$constraints"
source "$here/setup.sh" "[test,tfds,official]"
echo "== running the tests beside the TensorFlow Model Garden"
"$python" -m pytest -m peer "$@"
echo "== the tests beside other systems passed"
