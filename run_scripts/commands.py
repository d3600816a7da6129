"""The commands, by the names that users type.

All console scripts call `run`, which looks at the name that the program was started with. Where
they are not installed, `python -m run_scripts.commands NAME --flag=value ...` is the command NAME;
`python -m run_scripts.analysis` is bert-analyze, and `python -m benchmarks` is bert-benchmark.
"""

import ast
import contextlib
import dataclasses
import gc
import importlib
import importlib.abc
import importlib.machinery
import inspect
import itertools
import os
import pathlib
import re
import shlex
import sys
from collections.abc import Sequence
from typing import Any

from absl import flags as absl_flags

from bert_tf import flags, signals
from bert_tf.errors import InputError, choose_from
from bert_tf.flags import parsing

_ROOT = pathlib.Path(__file__).parents[1]
_HELP = {"--help", "-h", "-help", "--helpfull"}
# The module of each command (see `start`), or a package of several programs, where the first
# argument names the program.
COMMANDS = {
    # Text and records.
    "bert-extract-text": "data_prep.extract_text",
    "bert-build-vocab": "data_prep.build_vocab",
    "bert-create-pretraining-data": "data_prep.create_pretraining_data",
    "bert-verify-records": "data_prep.verify_records",
    # Training.
    "bert-run-pretraining": "run_scripts.run_pretraining",
    "bert-finetune": "run_scripts.finetune",
    # Smaller models.
    "bert-distill": "run_scripts.distill",
    "bert-prune": "run_scripts.prune",
    "bert-quantise-model": "run_scripts.quantise_model",
    # A model in use.
    "bert-convert-checkpoint": "run_scripts.convert_checkpoint",
    "bert-export-model": "run_scripts.export_model",
    "bert-extract-features": "run_scripts.extract_features",
    "bert-fill-mask": "run_scripts.fill_mask",
    "bert-predict": "run_scripts.predict",
    # Analysis of models, and cost of programs.
    "bert-analyze": "run_scripts.analysis",
    "bert-benchmark": "benchmarks",
}
SEVERAL = ("bert-analyze", "bert-benchmark")
# Flags that make a command another program, or give it other flags.
VARIANTS = {
    "bert-build-vocab": {"--init_vocab_file": "data_prep.extend_vocab"},
    "bert-create-pretraining-data": {"--train_filelist": "data_prep.import_ernie_data"},
    "bert-finetune": {**dict.fromkeys((
        "--task_kind=tagging", "--task_kind=multiple_choice", "--task_kind=span",
        "--task_kind=text_to_text", "--tasks", "--suite"), "run_scripts.finetune"),
        "--records_only": "data_prep.create_finetuning_data"},
    "bert-distill": {"--recipe=theseus": "run_scripts.run_theseus"},
    "bert-quantise-model": {"--measure_sensitivity": "run_scripts.measure_sensitivity"},
}
_SWITCHES = ("records_only", "measure_sensitivity")     # of these, "false" leaves the program


def programs(command: str) -> dict[str, str]:
    """{name: module} of the programs of a command that is several, the files with a function `main`
    of its packages; {} if they are not there."""
    packages = [COMMANDS[command], *["papers"] * (command == "bert-benchmark")]
    return {path.stem.replace("_", "-"): f"{package}.{path.stem}" for package in packages
            for path in sorted((_ROOT / package.replace(".", "/")).glob("*.py"))
            if re.search(r"^def main\(", path.read_text(encoding="utf-8"), re.MULTILINE)}


def program_names() -> list[str]:
    """All programs: commands, and the words that follow where a command is several programs."""
    names = []
    for command in COMMANDS:
        if command in SEVERAL:
            names += [f"{command} {name}" for name in programs(command)]
        else:
            names += [command, *(f"{command} {flag}" for flag in VARIANTS.get(command, ()))]
    return names


@dataclasses.dataclass
class Program:
    """The docstring of a program, and its arguments of `flags.run`."""

    doc: str
    main: Any
    classes: tuple
    defaults: Any
    adds: Any

    def every_class(self) -> list[type]:
        """The dataclasses, and all that a choice adds, such as a recipe."""
        return list(dict.fromkeys([*self.classes, *(
            kind for *_, kind in parsing.additions(self.classes, self.adds, {}))]))


def describe(command: str) -> Program:
    """Returns the `Program` of a command line, which is not run."""
    from unittest import mock  # slow to import

    calls: list[Program] = []

    def note(main, *classes, defaults=None, adds=None):
        doc = sys.modules[main.__module__].__doc__ or ""
        calls.append(Program(doc.strip(), main, classes, defaults, adds))

    with (mock.patch.object(flags, "run", note),
          mock.patch.object(sys, "argv", shlex.split(command)),
          mock.patch.object(sys, "path", [*sys.path])):
        run()
    return calls[0]


def parse(arguments: Sequence[str]) -> tuple[Any, list[Any]]:
    """Returns the `main` of a command line, and the dataclasses that it is called with; InputError
    if a flag or a file can't be used."""
    words = list(itertools.takewhile(lambda argument: not argument.startswith("-"), arguments))
    program, values = describe(shlex.join(arguments)), absl_flags.FlagValues()
    try:
        line = parsing.CommandLine.open([words[0], *arguments[len(words):]], program.classes,
                                        program.defaults, program.adds)
        line.parse(values)
    except (InputError, absl_flags.Error) as error:
        raise InputError(f"{' '.join(words)}: {error}") from error
    return program.main, [parsing.read(kind, values) for kind in line.classes]


def first_line(module: str) -> str:
    """The first line of a module's docstring, without an import."""
    text = (_ROOT / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")
    return (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]


def _find_program(command):
    """The module that the first argument names, which is removed; without one, help and the end."""
    modules = programs(command)
    if not modules:
        sys.exit(f"error: {command} is in the repository and not in the installed package: clone "
                 "the repository and start the command there.")
    name = sys.argv.pop(1) if sys.argv[1:] and sys.argv[1][0] != "-" else None
    if name is None and _HELP & {*sys.argv}:
        with signals.reaching_output():
            print(f"{importlib.import_module(COMMANDS[command]).__doc__.strip()}\n\n"
                  f"    {command} NAME --flag=value ...\n    {command} NAME --help\n\n"
                  f"Where {command} is not installed: python -m {COMMANDS[command]} NAME ...\n")
            for program, module in modules.items():
                print(f"  {program:<{max(map(len, modules))}}  {first_line(module)}")
        sys.exit()
    if name not in modules:
        start = f"{command} needs a name as its first argument"
        if name:
            start = f"there is no {command} {name}"
        sys.exit(f"error: {start}: {choose_from(name or '', modules)}")
    sys.argv[0] += f" {name}"
    return modules[name]


def run(name: str = "") -> None:
    """The console entry point of every command, of the one with this `name` if it is given."""
    name = name or re.sub(r"(-script)?\.(exe|pyw?)$", "", os.path.basename(sys.argv[0]))
    if name not in COMMANDS and len(sys.argv) > 1:
        name = sys.argv.pop(1)
    if name not in COMMANDS:
        sys.exit(f"error: there is no command {name!r}; {choose_from(name, COMMANDS)}")
    command = sys.argv[0] = name
    module = COMMANDS[command]
    if command in SEVERAL:
        sys.path.insert(0, str(_ROOT))      # for benchmarks and papers, which are not installed
        module = _find_program(command)
    elif command in VARIANTS:
        arguments, typed = sys.argv[1:], {}
        with contextlib.suppress(InputError):   # the program reports it
            arguments = parsing.expand_flagfiles(arguments)
            typed = parsing.given_flags(arguments)
        for flag, variant in VARIANTS[command].items():
            flag, _, value = flag.removeprefix("--").partition("=")
            if flag in _SWITCHES and typed.get(flag, "").lower() in ("false", "f", "0"):
                sys.argv[1:] = [argument for argument in arguments
                                if argument.lstrip("-") != f"{flag}={typed[flag]}"]
            elif flag in typed and value in ("", typed[flag]):
                module = variant
    start(module)


class _HiddenFromKeras(importlib.abc.MetaPathFinder):
    """Keras 3.15 imports these where they are installed, for parts that no command uses: 1.1 of the
    2.6 CPU seconds that `import tensorflow` takes, and 150 MB. Ours may import them after Keras."""

    def find_spec(self, fullname, path=None, target=None):
        keras = sys.modules.get("keras")
        if fullname in ("matplotlib", "pandas", "sklearn") and keras and not hasattr(
                keras, "version"):          # its last name
            raise ModuleNotFoundError(f"{fullname} is hidden from Keras", name=fullname)


class _ImportTensorFlow(importlib.abc.MetaPathFinder):
    """Imports TensorFlow without looking for garbage: its 400,000 objects live on, and to look
    through them takes a fifth of the CPU seconds until `bert-predict` reads its first text."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname != "tensorflow":
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec and spec.loader:
            execute = spec.loader.exec_module

            def execute_without_collection(module):
                gc.disable()
                try:
                    execute(module)
                finally:
                    gc.freeze()
                    gc.enable()

            spec.loader.exec_module = execute_without_collection
        return spec


_FINDERS = _HiddenFromKeras(), _ImportTensorFlow()


def start(module: str) -> None:
    """Runs a program: `run` of its module, or else `main` with the dataclasses of flags that its
    parameters are annotated with."""
    sys.meta_path[:0] = [finder for finder in _FINDERS if finder not in sys.meta_path]
    program = importlib.import_module(module)
    if hasattr(program, "run"):
        program.run()
    else:
        flags.run(program.main, *(
            part.annotation for part in inspect.signature(program.main).parameters.values()))


if __name__ == "__main__":
    run()
