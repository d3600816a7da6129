"""`python -m benchmarks NAME --flag=value ...` is bert-benchmark NAME."""

import sys

from run_scripts import commands

sys.argv[0] = "bert-benchmark"
commands.run()
