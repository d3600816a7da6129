"""The names of commands: those of setup.cfg are known, and old ones start the same programs."""

import configparser
import pathlib
import shutil
import subprocess
import sys

import pytest

from bert_tf import flags
from run_scripts import commands

ROOT = pathlib.Path(__file__).parents[2]
MODULES = {
    "bert-benchmark-data": "benchmarks.data", "bert-benchmark-padding": "benchmarks.padding",
    "bert-benchmark-sizes": "benchmarks.sizes",
    "bert-benchmark-tokenization": "benchmarks.tokenization",
    "bert-check-pretraining-helps": "benchmarks.pretraining_helps",
    "bert-compare-adaptation": "benchmarks.adaptation",
    "bert-compare-compression": "benchmarks.compression",
    "bert-compare-directions": "benchmarks.directions",
    "bert-compare-finetuning": "benchmarks.finetuning",
    "bert-compare-history": "benchmarks.history", "bert-compare-learning": "benchmarks.learning",
    "bert-compare-multitask": "benchmarks.multitask",
    "bert-compare-runtimes": "benchmarks.runtimes",
    "bert-analyze-attention": "run_scripts.analysis.attention",
    "bert-analyze-heads": "run_scripts.analysis.heads",
    "bert-analyze-identifiability": "run_scripts.analysis.identifiability",
    "bert-analyze-layers": "run_scripts.analysis.layers",
    "bert-compare-fixed-patterns": "run_scripts.analysis.fixed_patterns",
    "bert-build-vocab": "data_prep.build_vocab",
    "bert-create-finetuning-data": "data_prep.create_finetuning_data",
    "bert-create-pretraining-data": "data_prep.create_pretraining_data",
    "bert-extend-vocab": "data_prep.extend_vocab",
    "bert-extract-text": "data_prep.extract_text",
    "bert-import-ernie-data": "data_prep.import_ernie_data",
    "bert-verify-records": "data_prep.verify_records",
    **{f"bert-{name.replace('_', '-')}": f"run_scripts.{name}" for name in (
        "convert_checkpoint", "distill", "export_model", "extract_features", "measure_sensitivity",
        "prune", "quantise_model", "quickstart", "run_classifier", "run_multiple_choice",
        "run_multitask", "run_pretraining", "run_squad", "run_tagger", "run_text_to_text",
        "run_theseus", "show_pretraining")}}


def test_setup_lists_all_names():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    lines = config["options.entry_points"]["console_scripts"].strip().splitlines()
    listed = dict(map(str.strip, line.split("=")) for line in lines)
    assert listed == dict.fromkeys([*commands.COMMANDS, *commands.OLD_NAMES],
                                   "run_scripts.commands:run")


@pytest.mark.parametrize("folder, ending", [("/usr/bin/", ""), ("", ".exe"), ("", "-script.py")])
@pytest.mark.parametrize("name", MODULES)
def test_the_42_names_of_version_0_1_start_their_programs(name, folder, ending, monkeypatch):
    found = []
    monkeypatch.setattr(flags, "run", lambda main, *_, **__: found.append(main.__module__))
    monkeypatch.setattr(sys, "argv", [f"{folder}{name}{ending}", "--help"])
    monkeypatch.setattr(sys, "path", [*sys.path])
    commands.run()
    assert found == [MODULES[name]] and sys.argv[-1] == "--help"


def run(*arguments, cwd=ROOT):
    done = subprocess.run([sys.executable, "-m", "run_scripts.commands", *arguments], cwd=cwd,
                          capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("package", commands.PACKAGES)
def test_programs_of_a_package_have_a_line_each(package):
    found = commands.programs(package)
    assert len(found) >= 5
    for name, line in found.items():
        assert line.endswith(".") and len(line) <= 80, name


def test_benchmarks_are_listed_and_found(tmp_path):
    status, out, err = run("bert-benchmark", "--help")
    assert (status, err) == (0, "") and "  learning           Compares pre-training" in out
    status, out, err = run("bert-benchmark", "learnin")
    assert (status, out) == (1, "") and "did you mean learning?" in err and err.count("\n") == 1
    status, out, err = run("bert-benchmark")
    assert (status, out) == (1, "") and "sizes, tokenization" in err and err.count("\n") == 1
    status, out, err = run("bert-benchmrk")
    assert (status, out) == (1, "") and "there is no command 'bert-benchmrk'" in err


def test_what_is_installed_says_where_benchmarks_are(tmp_path):
    for package in ("bert_tf", "data_prep", "run_scripts"):
        shutil.copytree(ROOT / package, tmp_path / package,
                        ignore=shutil.ignore_patterns("__pycache__"))
    status, out, err = run("bert-benchmark", "data", cwd=tmp_path)
    assert (status, out) == (1, "") and "in the repository" in err and err.count("\n") == 1
