"""Imports run one way; every file keeps the rules of the project."""

import ast
import functools
import graphlib
import importlib
import pathlib
import re
import subprocess
import sys

import pytest

import bert_tf
from run_scripts import commands

ROOT = pathlib.Path(__file__).parent.parent
PACKAGES = ("bert_tf", "data_prep", "run_scripts", "benchmarks", "papers")
# Each part may import itself and these. An import inside a function counts too.
COMMON = {"errors", "files", "config", "kept"}
ALLOWED = {
    "errors": set(), "files": {"errors", "signals"}, "signals": set(),
    "flags": {"errors", "files", "signals"},
    "protobuf": set(), "registration": set(),
    "spelling": set(), "config": {"errors", "files", "spelling"},
    "heads": set(), "kept": {"errors", "files"},
    "recipes": {"errors", "config", "files", "flags"},
    # One line: networks and what they are trained on.
    "layers": COMMON | {"spelling"},
    "networks": COMMON | {"layers", "spelling"},
    "objectives": COMMON | {"heads", "layers", "metrics"},
    # The other: text and records.
    "tokenization": COMMON | {"protobuf", "spelling"},
    "data": COMMON | {"flags", "metrics", "protobuf", "tokenization", "recipes", "signals",
                      "spelling"},
    "metrics": COMMON,
    "tasks": COMMON | {"heads", "metrics", "tokenization", "data", "flags"},
    # Both lines meet here. Only the settings, a dataclass of flags, know flags (see below).
    "training": COMMON | {"layers", "metrics", "networks", "objectives", "data", "tasks",
                          "checkpoints", "tokenization", "flags", "signals"},
    # These take a network that is built.
    "checkpoints": COMMON | {"heads", "networks", "protobuf", "tokenization"},
    "export": COMMON | {"heads", "layers", "tokenization"},
    "analysis": COMMON | {"data", "layers", "metrics", "networks", "tokenization"},
    "compression": COMMON | {"checkpoints", "data", "heads", "layers", "metrics", "opening",
                             "networks", "objectives", "recipes", "tasks", "tokenization",
                             "training"},
    # A model of any format, with its tokenizer and its task.
    "opening": COMMON | {"checkpoints", "heads", "networks", "objectives", "recipes", "tasks",
                        "tokenization", "training"},
    # These are above all the others, which do not import them.
    "pretrained": COMMON | {"checkpoints", "networks", "training"},
    "fill_mask": COMMON | {"checkpoints", "data", "opening", "networks", "objectives",
                           "recipes", "tokenization", "training"},
    "predictor": COMMON | {"checkpoints", "export", "fill_mask", "opening", "tasks",
                           "tokenization", "training"},
    "finetuning": COMMON | {"analysis", "checkpoints", "compression", "data",
                            "flags", "heads", "metrics", "model_card", "opening",
                            "objectives", "predictor", "recipes", "tasks", "tokenization",
                            "training"},
    "model_card": COMMON | {"checkpoints", "heads", "tasks"},
    "text_model": COMMON | {"checkpoints", "finetuning", "model_card", "opening", "predictor",
                            "tasks", "tokenization"},
    "": {"errors", "heads", "networks", "registration"},
    "data_prep": COMMON | {"flags", "signals", "tokenization", "data", "tasks", "recipes"},
}
# The part, and the room of `data`, that a file of bert_tf/models/NAME/ belongs to, by its name.
RELATIVES = {
    "config": "config", "tokenizer": "tokenization", "corruption": "recipes",
    "layers": "layers", "affine": "layers", "network": "networks", "generation": "networks",
    "objective": "objectives", "masks": "data/masking", "records": "data/segments",
    "segments": "data/segments", "samples": "data/instances", "instances": "data/instances",
    "batches": "data/batches", "order": "data/batches", "mixture": "data/batches",
    "weights": "checkpoints", "huggingface": "checkpoints", "tasks": "tasks",
    "task_files": "tasks", "scores": "tasks", "learner": "training", "settings": "training",
    "finetuning": "finetuning",
}
# Dataclasses of flags, and the runs that they make.
SETTINGS = ("bert_tf/training/settings.py", "bert_tf/models/electra/settings.py",
            "bert_tf/models/mobilebert/settings.py", "bert_tf/models/distilbert/settings.py",
            "bert_tf/training/learners/teacher_settings.py", "bert_tf/training/growth.py",
            "bert_tf/tasks/task_flags.py", "bert_tf/models/t5/task_files.py",
            "bert_tf/finetuning/model.py", "bert_tf/finetuning/mixture.py",
            "bert_tf/models/t5/finetuning.py",
            "bert_tf/finetuning/jobs.py", "bert_tf/finetuning/python_values.py",
            "bert_tf/recipes/table.py",
            "bert_tf/models/ernie/settings.py", "bert_tf/models/recurrent/settings.py",
            "bert_tf/models/xlnet/settings.py", "bert_tf/models/electra/learner.py",
            "bert_tf/models/albert/masks.py", "bert_tf/models/deberta/masks.py",
            "bert_tf/models/modernbert/masks.py", "bert_tf/models/spanbert/masks.py",
            "bert_tf/models/structbert/masks.py", "bert_tf/finetuning/suite_flags.py",
            "bert_tf/finetuning/suite_run.py")


def sources(*folders):
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


@functools.cache
def imports(path):
    """What a file imports anywhere in it, now or when first used, under dotted names.

    A class that `bert_tf` itself exports counts as its module's.
    """
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "bert_tf":
            found.add(f"bert_tf.{node.attr}")
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "lazy_loader.load":
            found.add(node.args[0].value)
    return {bert_tf._HOMES.get(name.removeprefix("bert_tf."), name) for name in found}


def roots(path):
    return {name.split(".")[0] for name in imports(path)}


def part(path):
    """"layers" for bert_tf/layers/x.py, bert_tf/bert/layers.py and bert_tf/models/NAME/layers.py,
    "config" for bert_tf/config.py, "" for an __init__ above the parts."""
    return _part(path.relative_to(ROOT / "bert_tf").with_suffix("").parts)


def _part(names):
    for system, place in (("bert", 1), ("models", 2)):
        if names[0] == system:
            file = names[place] if len(names) > place else ""
            return RELATIVES.get(file, "").split("/")[0]
    return "" if names[0] == "__init__" else names[0]


def parts_used(path):
    return {_part(name.split(".")[1:]) for name in imports(path) if name.startswith("bert_tf.")}


def name_of(path):
    return str(path.relative_to(ROOT))


def test_the_library_imports_one_way():
    """A part that `ALLOWED` does not have yet is named with all that it imports."""
    above = {"data_prep", "run_scripts", "benchmarks", "papers", "tests"}
    wrong = {name_of(path): (parts_used(path) - ALLOWED.get(own, set()) - {own}) | (
        roots(path) & above) for path in sources("bert_tf") for own in [part(path)]}
    assert {name: used for name, used in wrong.items() if used} == {}
    assert {part(path) for path in sources("bert_tf")} <= ALLOWED.keys()


def test_no_file_needs_itself_through_others():
    """Imports for types count too."""
    modules = {".".join(path.relative_to(ROOT).with_suffix("").parts): path
               for path in sources(*PACKAGES)}
    graphlib.TopologicalSorter({
        module: {name if name in modules else name.rpartition(".")[0] for name in imports(path)
                 } & modules.keys() - {module}
        for module, path in modules.items()}).prepare()


# The rooms of `bert_tf/data`, and those that each may import.
DATA_ROOMS = {
    "records": set(), "text": {"records"}, "segments": {"records", "text"},
    "masking": {"records", "text", "segments"},
    "instances": {"records", "text", "segments", "masking"},
    "batches": {"records", "text", "segments", "masking"},
}


def room(names):
    """The room of `data` of a module or of what it holds; None if it is in no room."""
    if names[0] == "models" and len(names) > 2:
        return RELATIVES.get(names[2], "").partition("data/")[2] or None
    return names[1] if names[0] == "data" and len(names) > 1 else None


def test_the_rooms_of_data_import_one_way():
    for path in sources("bert_tf/data", "bert_tf/models"):
        own = room(path.relative_to(ROOT / "bert_tf").with_suffix("").parts)
        if own not in (None, "__init__"):
            used = {room(name.split(".")[1:]) for name in imports(path)
                    if name.startswith("bert_tf.")}
            assert used - {None} <= DATA_ROOMS[own] | {own}, name_of(path)


def test_only_flags_and_dataclasses_of_flags_know_flags():
    """The settings are dataclasses that library users fill themselves; `option` is their help."""
    library = sources("bert_tf")
    assert {str(p.relative_to(ROOT)) for p in library if "absl" in roots(p)} == {
        f"bert_tf/flags/{name}.py" for name in ("help", "parsing", "program")}
    users = {path for path in library if "flags" in parts_used(path) - {part(path)}}
    assert users == {ROOT / name for name in SETTINGS}
    for path in users:
        assert {name for name in imports(path) if name.startswith("bert_tf.flags")} <= {
            f"bert_tf.flags.{name}" for name in (
                "REQUIRED", "applicable", "changed", "check", "check_used", "only", "option",
                "shown", "without")}


def test_data_jobs_see_no_training():
    for path in sources("data_prep"):
        assert parts_used(path) <= ALLOWED["data_prep"], name_of(path)
        assert not roots(path) & {"run_scripts", "benchmarks", "papers"}, name_of(path)


def test_benchmarks_are_imported_by_none():
    assert not [path for path in sources("run_scripts") if {"benchmarks", "papers"} & roots(path)]


def test_networks_run_on_any_backend():
    # Two files take the place of operations, each on one backend.
    allowed = {"fused_attention.py": {"jax"}, "functions.py": {"tensorflow"}}
    for path in sources("bert_tf/bert", "bert_tf/layers", "bert_tf/networks", "bert_tf/objectives"):
        assert not roots(path) & {"tensorflow", "tensorflow_text", "jax", "torch"} - allowed.get(
            path.name, set()), name_of(path)


def programs():
    found = {module for variants in commands.VARIANTS.values() for module in variants.values()}
    for command, module in commands.COMMANDS.items():
        found |= ({*commands.programs(command).values()} if command in commands.SEVERAL else
                  {module})
    return sorted(found)


def loaded_by(code):
    """The modules that are loaded after some code ran in a fresh process.

    A module from `lazy_loader.load` is listed in `sys.modules` before it is loaded.
    """
    show = ("import importlib.util, sys\n"
            "print(*(name for name, module in sys.modules.items()"
            " if type(module) is not importlib.util._LazyModule))")
    done = subprocess.run([sys.executable, "-c", f"{code}\n{show}"],
                          cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_costs_nothing():
    heavy = {"tensorflow", "keras", "tensorflow_text", "tensorflow_datasets", "matplotlib", "torch"}
    # Flags are read, help is shown and files are looked for before TensorFlow is loaded.
    assert not loaded_by(f"import {', '.join(programs())}") & heavy


def exports(package):
    for node in ast.walk(ast.parse((package / "__init__.py").read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "lazy_loader.attach":
            homes = next(option.value for option in node.keywords if option.arg == "submod_attrs")
            return {name: ast.literal_eval(module)      # relatives have a table of their own
                    for module, names in zip(homes.keys, homes.values) if module
                    for name in ast.literal_eval(names)}
    return {}


def reached(start):
    """The files of bert_tf that a file imports, and those that these import."""
    found, todo = set(), [ROOT / start]
    while todo:
        path = todo.pop()
        if path in found:
            continue
        found.add(path)
        for name in filter(re.compile(r"bert_tf\.").match, imports(path)):
            package, _, last = name.rpartition(".")
            module, package = ROOT / name.replace(".", "/"), ROOT / package.replace(".", "/")
            if package.is_dir() and not module.exists() and not module.with_suffix(".py").exists():
                module = package / exports(package).get(last, "__init__")
            elif not package.is_dir():
                module = package
            todo += [module.with_suffix(".py")] if module.with_suffix(".py").exists() else []
    return {str(path.relative_to(ROOT)) for path in found}


def test_the_encoder_needs_few_files():
    """BERT's network does not reach the sizes and layers of other networks."""
    found = {re.sub("/files/.*", "/files", name) for name in reached("bert_tf/bert/network.py")}
    assert "bert_tf/bert/layers.py" in found and len(found) <= 15, sorted(found)


# Systems that BERT's own files do not mention, and what changes its network.
RELATIVE_NAMES = re.compile(
    r"(?i)albert|electra|ernie|roberta|distil|mobilebert|mpnet|deberta|camembert|spanbert|structbert|tinybert|xlnet|"
    r"transformer.xl|\bt5|\bgpt|\belmo|mt.?dnn|theseus|universal|fixed.?pattern")
CHANGES = re.compile(r"(?i)quanti|prun|noise|head_mask|unit_mask|fused|packed|task_|word_order")
# The files on the way from text to BERT's loss that name a relative: tables, the encoder of BERT's
# near relatives, tokenizers of several systems, and where something comes from.
NAMING = {
    "config/__init__", "config/encoder", "config/quantisation",
    "data/batches/record_views", "data/masking/__init__", "data/masking/coin",
    "data/segments/pairing", "layers/base", "layers/encoder", "networks/encoder",
    "tokenization/__init__", "tokenization/byte_bpe",
    "tokenization/library_classes", "tokenization/sentencepiece", "tokenization/unigram",
}


def test_bert_knows_no_relative_and_is_small():
    files = sources("bert_tf/bert")
    texts = {path.name: path.read_text(encoding="utf-8") for path in files}
    for name, text in texts.items():
        assert not RELATIVE_NAMES.findall(text) + CHANGES.findall(text), name
    assert len(files) <= 8 and sum(len(text.splitlines()) for text in texts.values()) <= 1500


def test_relatives_are_named_in_their_folders_and_in_tables():
    folders = [f"bert_tf/{name}" for name in (
        "config", "data", "files", "flags", "layers", "networks", "tokenization")]
    assert {str(path.relative_to(ROOT / "bert_tf").with_suffix("")) for path in sources(*folders)
            if RELATIVE_NAMES.search(path.read_text(encoding="utf-8"))} == NAMING


def packages():
    return [".".join(path.parent.relative_to(ROOT).parts)
            for path in sources("bert_tf") if path.name == "__init__.py"]


def test_what_a_package_exports_exists():
    for package in map(importlib.import_module, packages()):
        for exported in getattr(package, "__all__", ()):
            assert getattr(package, exported) is not None, exported


def test_a_package_is_imported_without_its_modules():
    code = "\n".join(f"import {name}" for name in packages())
    assert {name for name in loaded_by(code) if name.startswith("bert_tf")} == {
        *packages(), "bert_tf.errors", "bert_tf.heads", "bert_tf.registration"}


def test_keras_is_never_loaded_lazily():
    """TensorFlow, imported after that, executes a lazy Keras in the middle of its own import, which
    leaves a Keras without `saving` behind."""
    lazy = "lazy_loader.load(" + '"keras"'
    assert not [path for path in sources(*PACKAGES) if lazy in path.read_text(encoding="utf-8")]


# What reaches files past `bert_tf/files`, and why these may: they are of this machine by nature.
DIRECT = re.compile(
    r"(?:^|[^\w.])open\(|\bos\.(?:path\.(?:isfile|isdir|exists|lexists|getsize|getmtime|abspath|"
    r"realpath|relpath|normpath|samefile|islink)|remove|unlink|rename|replace|makedirs|mkdir|"
    r"listdir|walk|scandir|stat|rmdir|symlink|link)\b|\bshutil\.(?!copyfileobj|which)|\bglob\.|"
    r"\bpathlib\.")
LOCAL = {
    "bert_tf/networks/__init__.py": "/proc",
    "bert_tf/__init__.py": "/dev",
    "bert_tf/training/distribution.py": "/dev",
    "bert_tf/checkpoints/checksummed.py": "a file that is being written aside",
    "bert_tf/checkpoints/keras_hub.py": "a folder that is being written aside",
    "bert_tf/checkpoints/hdf5.py": "a folder that is being written aside",
    "bert_tf/models/gpt/weights.py": "a folder that is being written aside",
    "bert_tf/models/ernie/weights.py": "a folder that is being written aside",
    "bert_tf/training/reporting.py": "a file that grows, on this disk",
    "bert_tf/text_model.py": "a temporary folder",
    "data_prep/extract_text.py": "installed packages",
    "run_scripts/commands.py": "the programs' own files",
}


def test_files_are_reached_through_one_door():
    """A direct call would take gs://bucket/run for a folder "gs:"."""
    lines = {name_of(path): line for path in sources("bert_tf", "data_prep", "run_scripts")
             if "bert_tf/files/" not in str(path)
             for line in path.read_text(encoding="utf-8").splitlines()
             if DIRECT.search(line.partition("#")[0])
             and not re.match(r"\s*(?:def |import |from )", line)}
    assert lines.keys() == LOCAL.keys(), {name: line for name, line in lines.items()
                                          if name not in LOCAL}


def test_one_function_writes_safetensors():
    """The library writes arrays that do not lie in order as other numbers."""
    assert [str(path.relative_to(ROOT)) for path in sources(*PACKAGES) if re.search(
        r"safetensors\.\w+ import .*\bsave|safetensors\.numpy\.save", path.read_text("utf-8"))
            ] == ["bert_tf/checkpoints/checksummed.py"]


def code_lines(node, text):
    """The lines of a node but for docstrings, comments and blank lines."""
    held = set(range(node.lineno, node.end_lineno + 1))
    for inner in ast.walk(node):
        body = getattr(inner, "body", None)
        if isinstance(inner, (ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(inner):
            held -= set(range(body[0].lineno, body[0].end_lineno + 1))
    return [line for number, line in enumerate(text.splitlines(), 1)
            if number in held and line.strip() and not line.strip().startswith("#")]


def too_long(tree, text):
    """The functions of more than 60 lines and the classes of more than 150 lines of code."""
    return [node.name for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef) and node.end_lineno - node.lineno >= 60
            or isinstance(node, ast.ClassDef) and len(code_lines(node, text)) > 150]


@pytest.mark.parametrize("folder", [*PACKAGES, "tests"])
def test_every_file_has_a_docstring_short_parts_and_names_no_machine(folder):
    for path in sources(folder):
        text = path.read_text(encoding="utf-8")
        if text.strip():
            tree = ast.parse(text)
            assert ast.get_docstring(tree), f"{name_of(path)}: no docstring"
            assert folder == "tests" or not too_long(tree, text), (
                name_of(path), too_long(tree, text))
        # In two parts, so that this file passes too.
        for word in ("/wo" + "rk/", "/ho" + "me/", "/ro" + "ot/"):
            assert word not in text, name_of(path)
