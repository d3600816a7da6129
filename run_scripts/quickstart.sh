#!/usr/bin/env bash
# Sets everything up and pre-trains a BERT-Tiny on the text of this machine, or on yours:
#     bash run_scripts/quickstart.sh [--input_file=my_text.txt] [--output_dir=folder] ...
here=$(pwd)
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh" ""      # not this script's arguments
exec "$python" -m run_scripts.quickstart --working_dir="$here" "$@"
