# Sourced by the other scripts: makes .venv in the checkout with the versions of constraints.txt, or
# reuses it; a script may set $venv and $constraints to others. Afterwards $python is its interpreter.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
venv=${venv:-.venv}
constraints=${constraints:-run_scripts/constraints.txt}
python=$venv/bin/python
extras=${1:-}
stamp=$venv/installed${extras//[^a-z]/}

if [ ! -x "$python" ]; then
    for base in python3.11 python3.12 python3.13 python3; do
        command -v "$base" >/dev/null && "$base" -c \
            'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' && break
        base=
    done
    [ -n "$base" ] || { echo "error: Python 3.11, 3.12 or 3.13 is needed; install one." >&2; exit 1; }
    echo "== making a virtual environment in $PWD/$venv with $("$base" --version)"
    "$base" -m venv "$venv" || { rm -rf "$venv"; exit 1; }
fi
if [ ! -e "$stamp" ] || [ setup.cfg -nt "$stamp" ] || [ run_scripts/constraints.txt -nt "$stamp" ]; then
    echo "== installing bert_tf and what it needs (2.5 GB on disk, a few minutes)"
    "$python" -m pip install --quiet --disable-pip-version-check \
        --constraint "$constraints" --editable ".$extras"
    touch "$stamp"
else
    echo "== using the virtual environment in $PWD/$venv"
fi
