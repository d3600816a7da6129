# Sourced by the other scripts: makes .venv in the checkout with the versions of constraints.txt, or
# reuses it; a script may set $venv and $constraints to others. Afterwards $python is its interpreter.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
venv=${venv:-.venv}
constraints=${constraints:-run_scripts/constraints.txt}
python=$venv/bin/python
extras=${1:-}
# cpu, gpu or tpu; BERT_TF_DEVICE decides where it is set.
device=cpu
if compgen -G '/dev/nvidia[0-9]*' >/dev/null; then
    device=gpu
elif [ -n "${TPU_NAME:-}${TPU_WORKER_ID:-}" ] || compgen -G '/dev/accel[0-9]*' >/dev/null; then
    device=tpu
fi
device=${BERT_TF_DEVICE:-$device}
case $device in
cpu) ;;
gpu | tpu)
    extras=${extras#[}
    extras="[$device${extras:+,${extras%]}}]" ;;
*) echo "error: BERT_TF_DEVICE is $device; set it to cpu, gpu or tpu." >&2; exit 1 ;;
esac
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
    echo "== installing bert_tf and what it needs for a $device (2.5 GB on disk, with CUDA more; a few minutes)"
    "$python" -m pip install --quiet --disable-pip-version-check \
        --constraint "$constraints" --editable ".$extras"
    if [ "$device" = tpu ]; then    # the plain TensorFlow has files of the same names
        "$python" -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall \
            --constraint "$constraints" tensorflow-tpu
    fi
    touch "$stamp"
    echo "== installed; to use the commands: source $venv/bin/activate"
else
    echo "== using the virtual environment in $PWD/$venv"
fi
