"""The commands, by the names that users type.

All console scripts call `run`, which looks at the name that the program was started with. Where
they are not installed, `python -m run_scripts.commands NAME --flag=value ...` is the command NAME.
"""

import ast
import importlib
import os
import pathlib
import re
import sys

from bert_tf import signals
from bert_tf.errors import choose_from

_ROOT = pathlib.Path(__file__).parents[1]
_HELP = {"--help", "-h", "-help", "--helpfull"}
# The module of each command, whose `run` is the program; or a package, and the first argument names
# one of its modules.
COMMANDS = {
    # Text and records.
    "bert-extract-text": "data_prep.extract_text",
    "bert-build-vocab": "data_prep.build_vocab",
    "bert-create-pretraining-data": "data_prep.create_pretraining_data",
    "bert-create-finetuning-data": "data_prep.create_finetuning_data",
    "bert-verify-records": "data_prep.verify_records",
    # Training.
    "bert-quickstart": "run_scripts.quickstart",
    "bert-run-pretraining": "run_scripts.run_pretraining",
    "bert-show-pretraining": "run_scripts.show_pretraining",
    # Smaller models.
    "bert-distill": "run_scripts.distill",
    "bert-prune": "run_scripts.prune",
    "bert-quantise-model": "run_scripts.quantise_model",
    # A model in use.
    "bert-convert-checkpoint": "run_scripts.convert_checkpoint",
    "bert-export-model": "run_scripts.export_model",
    "bert-extract-features": "run_scripts.extract_features",
    # What models have learned, and what programs cost.
    "bert-analyze": "run_scripts.analysis",
    "bert-benchmark": "benchmarks",
    # Not joined to others yet.
    "bert-extend-vocab": "data_prep.extend_vocab",
    "bert-import-ernie-data": "data_prep.import_ernie_data",
    "bert-run-classifier": "run_scripts.run_classifier",
    "bert-run-squad": "run_scripts.run_squad",
    "bert-run-multiple-choice": "run_scripts.run_multiple_choice",
    "bert-run-tagger": "run_scripts.run_tagger",
    "bert-run-multitask": "run_scripts.run_multitask",
    "bert-run-text-to-text": "run_scripts.run_text_to_text",
    "bert-run-theseus": "run_scripts.run_theseus",
    "bert-measure-sensitivity": "run_scripts.measure_sensitivity",
}
PACKAGES = ("run_scripts.analysis", "benchmarks")
# Names of earlier versions: the command that each is now, with its first arguments.
OLD_NAMES = {
    "bert-analyze-attention": "bert-analyze attention",
    "bert-analyze-heads": "bert-analyze heads",
    "bert-analyze-identifiability": "bert-analyze identifiability",
    "bert-analyze-layers": "bert-analyze layers",
    "bert-compare-fixed-patterns": "bert-analyze fixed-patterns",
    "bert-benchmark-data": "bert-benchmark data",
    "bert-benchmark-padding": "bert-benchmark padding",
    "bert-benchmark-sizes": "bert-benchmark sizes",
    "bert-benchmark-tokenization": "bert-benchmark tokenization",
    "bert-check-pretraining-helps": "bert-benchmark pretraining-helps",
    "bert-compare-adaptation": "bert-benchmark adaptation",
    "bert-compare-compression": "bert-benchmark compression",
    "bert-compare-directions": "bert-benchmark directions",
    "bert-compare-finetuning": "bert-benchmark finetuning",
    "bert-compare-history": "bert-benchmark history",
    "bert-compare-learning": "bert-benchmark learning",
    "bert-compare-multitask": "bert-benchmark multitask",
    "bert-compare-runtimes": "bert-benchmark runtimes",
}


def programs(package: str) -> dict[str, str]:
    """{name of a program of a package: first line of its docstring}, {} if the package is not
    there. A program is a file with a function `run`."""
    found = {}
    for path in sorted((_ROOT / package.replace(".", "/")).glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if any(isinstance(node, ast.FunctionDef) and node.name == "run" for node in tree.body):
            found[path.stem.replace("_", "-")] = (ast.get_docstring(tree) or "").split("\n")[0]
    return found


def _find_program(command, package):
    """The module that the first argument names, which is taken away; prints help, and ends the
    program, if it names none."""
    found = programs(package)
    if not found:
        sys.exit(f"error: {command} is in the repository and not in the installed package: clone "
                 "the repository and start the command there.")
    name = sys.argv.pop(1) if len(sys.argv) > 1 else ""
    if name in _HELP:
        with signals.reaching_output():
            _print_help(command, package, found)
        sys.exit()
    if name not in found:
        sys.exit(f"error: {command} needs a name as its first argument, and not {name!r}: "
                 + choose_from(name, found))
    return f"{package}.{name.replace('-', '_')}"


def _print_help(command, package, found):
    print(f"{importlib.import_module(package).__doc__}\n\n"
          f"    {command} NAME --flag=value ...\n    {command} NAME --help\n")
    for name, line in found.items():
        print(f"  {name:<{max(map(len, found))}}  {line}")


def run() -> None:
    """The console entry point of every command."""
    name = re.sub(r"(-script)?\.(exe|pyw?)$", "", os.path.basename(sys.argv[0]))
    if name not in COMMANDS and name not in OLD_NAMES and len(sys.argv) > 1:
        name = sys.argv.pop(1)
    command, *first = OLD_NAMES.get(name, name).split() or [""]
    if command not in COMMANDS:
        sys.exit(f"error: there is no command {name!r}; {choose_from(name, COMMANDS)}")
    sys.argv[1:1] = first
    module = COMMANDS[command]
    if module in PACKAGES:
        sys.path.insert(0, str(_ROOT))      # for benchmarks, which is not installed
        module = _find_program(command, module)
    importlib.import_module(module).run()


if __name__ == "__main__":
    run()
