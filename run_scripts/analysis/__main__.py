"""`python -m run_scripts.analysis NAME --flag=value ...` is bert-analyze NAME."""

import sys

from run_scripts import commands

sys.argv[0] = "bert-analyze"
commands.run()
