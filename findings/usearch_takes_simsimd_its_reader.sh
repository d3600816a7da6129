#!/usr/bin/env bash
# simsimd 6.5.16 after usearch 2.26.6: once usearch was imported first, every simsimd call refuses its arrays.
#
# Both are by the same authors and compute similarities of vectors. usearch loads the compiled part of NumKong for
# all other modules of the process to see. NumKong and simsimd each have a function parse_tensor, which reads a
# NumPy array in another way. If simsimd is loaded second, its calls reach NumKong's function: cosine, dot and
# cdist end in "Input tensors must have matching datatypes" for two arrays of the same type, also for one array
# with itself. With simsimd imported first all is well, and NumKong alone does no harm. Whoever searches in an
# index of usearch and scores the answers again by simsimd loses the second half, or loses it when a library or a
# line further up begins to import usearch. The error sends the user to look at the types of the data.
#
# Import simsimd first. Seen in November 2026 with Python 3.11 on Linux. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    simsimd==6.5.16 usearch==2.26.6 numkong==7.8.6 numpy==2.4.6
"$folder/venv/bin/pip" check
cat > "$folder/similar.py" <<'PYTHON'
import importlib
import sys

modules = [importlib.import_module(name) for name in sys.argv[1].split()]
import numpy as np
import simsimd

first, second = np.random.default_rng(0).normal(size=(2, 3, 64)).astype("float32")
CALLS = {"cosine": (first, second), "dot": (first, first), "cdist": (first, second),
         "cosine of int8": ((first * 30).astype("int8"), (second * 30).astype("int8"))}
answers = []
for name, pair in CALLS.items():
    try:
        answers.append(float(np.array(getattr(simsimd, name.split()[0])(*pair)).ravel()[0].round(3)))
    except TypeError as error:
        assert "must have matching datatypes" in str(error), error
        answers.append(str(error).partition(",")[0])
right = 1 - (first * second).sum(1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)
print(f"import {sys.argv[1]:<16} cosine from NumPy {right[0]:.3f}", dict(zip(CALLS, answers)))
refused = [isinstance(answer, str) for answer in answers]
assert all(refused) or not any(refused) and abs(answers[0] - right[0]) < 0.002, "another number"
assert all(refused) == (sys.argv[2] == "refused"), f"not {sys.argv[2]}"
PYTHON
for case in "usearch:refused" "usearch simsimd:refused" "simsimd usearch:right" "numkong:right" "simsimd:right"; do
    "$folder/venv/bin/python" "$folder/similar.py" "${case%%:*}" "${case##*:}"
done
echo "as seen"
