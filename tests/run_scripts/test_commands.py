"""Names of commands and what they start; shell scripts; kept results."""

import configparser
import gc
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from bert_tf import files, flags
from bert_tf.config import EncoderConfig, T5Config
from bert_tf.errors import InputError
from bert_tf.finetuning import jobs
from bert_tf.tasks.named import find_task
from bert_tf.tasks.saved_task import SavedTask
from run_scripts import commands

ROOT = pathlib.Path(__file__).parents[2]


def test_setup_lists_all_names():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    lines = config["options.entry_points"]["console_scripts"].strip().splitlines()
    listed = dict(map(str.strip, line.split("=")) for line in lines)
    assert listed == dict.fromkeys(commands.COMMANDS, "run_scripts.commands:run")


def test_an_sdist_has_the_folders_of_the_checkout():
    lines = (ROOT / "MANIFEST.in").read_text(encoding="utf-8").splitlines()
    whole = {line.removeprefix("graft ") for line in lines if line.startswith("graft ")}
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert {"docs", "run_scripts", *packages} <= whole | {"bert_tf", "data_prep"}


@pytest.mark.parametrize("folder, ending", [("/usr/bin/", ""), ("", ".exe"), ("", "-script.py")])
@pytest.mark.parametrize("name", sorted(commands.COMMANDS.keys() - {*commands.SEVERAL}))
def test_installed_names_start_their_programs(name, folder, ending, monkeypatch):
    found = []
    monkeypatch.setattr(flags, "run", lambda main, *_, **__: found.append(main.__module__))
    monkeypatch.setattr(sys, "argv", [f"{folder}{name}{ending}", "--help"])
    monkeypatch.setattr(sys, "path", [*sys.path])
    commands.run()
    assert found == [commands.COMMANDS[name]] and sys.argv[-1] == "--help"


def run(*arguments, package="run_scripts.commands", cwd=ROOT):
    done = subprocess.run([sys.executable, "-m", package, *arguments], cwd=cwd,
                          capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("arguments, module", [
    ("bert-build-vocab --output_file=--init_vocab_file", "data_prep.build_vocab"),
    ("bert-build-vocab -init_vocab_file v.txt", "data_prep.extend_vocab"),
    ("bert-build-vocab --flagfile={folder}/flags.txt", "data_prep.extend_vocab"),
    ("bert-build-vocab --flagfile={folder}/absent.txt", "data_prep.build_vocab"),
    ("bert-finetune --records_only --task=mrpc", "data_prep.create_finetuning_data"),
    ("bert-finetune --records_only=false --task=mrpc", "run_scripts.finetune"),
    ("bert-quantise-model --measure_sensitivity --task=mrpc", "run_scripts.measure_sensitivity"),
    ("bert-quantise-model --measure_sensitivity=False", "run_scripts.quantise_model"),
    ("bert-distill --recipe=theseus --predecessor=a", "run_scripts.run_theseus"),
    ("bert-distill --recipe theseus", "run_scripts.run_theseus"),
    ("bert-distill --recipe=pkd --teacher=a", "run_scripts.distill"),
    ("bert-distill --flagfile=memory://flags/theseus.txt", "run_scripts.run_theseus"),
])
def test_flags_choose_the_program(arguments, module, monkeypatch, tmp_path):
    (tmp_path / "flags.txt").write_text("--output_file=o\n--init_vocab_file=v.txt\n")
    with files.write_aside("memory://flags/theseus.txt") as file:
        file.write("--recipe=theseus\n")
    found = []
    monkeypatch.setattr(flags, "run", lambda main, *_, **__: found.append(main.__module__))
    monkeypatch.setattr(sys, "argv", arguments.format(folder=tmp_path).split())
    commands.run()
    assert found == [module] and not [word for word in sys.argv if word.lower().endswith("=false")]


@pytest.mark.parametrize("arguments, job", [
    ("--flagfile {folder}/mrpc.txt", "classifier"), ("", "classifier"),
    ("--task=mrpc --do_train", "classifier"), ("--task_name STS-B", "classifier"),
    ("--task=swag", "multiple_choice"), ("--task=qnnli", "multiple_choice"),
    ("--task=conll2003", "tagger"), ("--task=SQuAD2.0", "squad"), ("--task=triviaqa", "squad"),
    ("--task=mrpc --bert_config_file={folder}/t5/config.json", "text_to_text"),
    ("--task_kind=regression --train_file=a.txt", "classifier"),
    ("--task_kind=tagging --train_file=a.csv", "tagger"),
    ("--train_file=a.csv --label_column=0 --text_a_column=1", "classifier"),
    ("--train_file=a --text_a_column=1", "classifier"), ("--train_file=a.jsonl", "classifier"),
    ("--do_train --train_file=a.conllu --label_column=upos", "tagger"),
    ("--train_file=a.txt.gz", "tagger"), ("--test_file=a.ann", "tagger"),
    ("--train_file=a.csv --text_a_column=1 --choice_columns=a*", "multiple_choice"),
    ("--train_file=a.json --predict_file=b.json", "squad"),
    ("--tasks=mrpc,cola --init_checkpoint={folder}/bert", "multitask"),
    ("--tasks=mrpc,cola --bert_config_file={folder}/t5/config.json", "text_to_text"),
    ("--train_file=a.tsv --bert_config_file={folder}/t5/config.json", "text_to_text"),
    ("--test_file=a.csv --ensemble={folder}/tags,b", "tagger"),
    ("--do_train=false --test_file=a.csv --output_dir={folder}/tags", "tagger"),
    ("--do_train --text_a_column=1 --init_checkpoint={folder}/tags", "classifier")])
def test_the_task_chooses_the_flags(arguments, job, monkeypatch, tmp_path):
    for name in ("tags", "bert", "t5"):
        (tmp_path / name).mkdir()
    (tmp_path / "mrpc.txt").write_text("# mine\n--task=mrpc\n")
    SavedTask(find_task("conll2003"), 128, False, {}).write(tmp_path / "tags")
    EncoderConfig(vocab_size=9).to_json_file(tmp_path / "bert" / "bert_config.json")
    T5Config(vocab_size=9).to_json_file(tmp_path / "t5" / "config.json")
    found = []
    monkeypatch.setattr(flags, "run", lambda main, *classes, **_: found.append(classes))
    monkeypatch.setattr(sys, "argv", ["bert-finetune", *arguments.format(folder=tmp_path).split()])
    commands.run()
    assert found == [jobs.JOBS[job].classes]


def test_a_tensorflow_that_cannot_be_imported_leaves_the_collection_of_garbage_on(tmp_path):
    (tmp_path / "tensorflow.py").write_text("raise ImportError('no library')")
    spec = commands._ImportTensorFlow().find_spec("tensorflow", [str(tmp_path)])
    with pytest.raises(ImportError, match="no library"):
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    assert gc.isenabled()


def test_t5_reads_no_columns(tmp_path):
    T5Config(vocab_size=9).to_json_file(tmp_path / "config.json")
    given = {"train_file": "a.csv", "bert_config_file": str(tmp_path / "config.json")}
    with pytest.raises(InputError, match="--text_a_column is for tables, and T5 reads no columns"):
        jobs.job_of({**given, "text_a_column": "body"})


def test_one_task_and_several_are_not_mixed_up():
    with pytest.raises(InputError, match="--task names one task, and --tasks several"):
        jobs.job_of({"task": "cola", "tasks": "cola,mrpc"})


@pytest.mark.parametrize("module, flag, absent", [
    ("finetune", "--records_only", "--vocab_file"), ("run_squad", "--records_only", "--vocab_file"),
    ("distill", "--recipe=theseus", "--predecessor"),
    ("quantise_model", "--measure_sensitivity", "--task_kind")])
def test_a_module_is_the_command_with_the_flags_that_choose_a_program(module, flag, absent):
    status, out, err = run(flag, "--help", package=f"run_scripts.{module}")
    assert status == 0 and absent in out, err


def test_what_decides_nothing_is_said(tmp_path):
    path = tmp_path / "mail.csv"
    path.write_text("folder,body\nham,a b\n")
    status, out, err = run("bert-finetune", "--do_train", f"--train_file={path}", "--output_dir=x")
    assert (status, out) == (1, "") and err.startswith(
        f"error: --text_a_column must be given: the column of the text in --train_file={path}")
    assert "(its columns are folder, body); --label_column names" in err and "--task" not in err
    status, out, err = run("bert-finetune", "--flagfile=absent.txt")
    assert (status, out, err) == (
        1, "", "error: --flagfile: there is no file absent.txt; check the name.\n")
    status, out, err = run("bert-finetune", "--task=mrcp", "--do_train")
    assert (status, out) == (1, "") and "mrcp" in err and err.count("\n") == 1


def test_benchmarks_are_listed_and_found():
    status, out, err = run("bert-benchmark", "--help")
    assert (status, err) == (0, "") and "  masking-rates      Measures the effect" in out
    assert (status, out, err) == run("--help", package="benchmarks")
    assert "python -m benchmarks NAME" in out
    status, out, err = run("bert-benchmark", "dat")
    assert (status, out) == (1, "") and "did you mean data?" in err and err.count("\n") == 1
    status, out, err = run("bert-benchmark")
    assert (status, out) == (1, "") and "static-masks, student-sizes" in err
    assert err.count("\n") == 1
    status, out, err = run("bert-benchmrk")
    assert (status, out) == (1, "") and "there is no command 'bert-benchmrk'" in err


def test_what_is_installed_says_where_benchmarks_are(tmp_path):
    for package in ("bert_tf", "data_prep", "run_scripts"):
        shutil.copytree(ROOT / package, tmp_path / package,
                        ignore=shutil.ignore_patterns("__pycache__"))
    status, out, err = run("bert-benchmark", "data", cwd=tmp_path)
    assert (status, out) == (1, "") and "in the repository" in err and err.count("\n") == 1


# Shell scripts

# An interpreter that notes how it is called.
PYTHON = '#!/usr/bin/env bash\necho "$@" >> "$CALLS"\n'


@pytest.mark.parametrize("script, arguments, device, installs, runs", [
    ("quickstart", ["--output_dir=out", "--num_train_steps=9"], "cpu", ".",
     "-m run_scripts.quickstart --working_dir={cwd} --output_dir=out --num_train_steps=9"),
    ("quickstart", [], "gpu", ".[gpu]", "-m run_scripts.quickstart --working_dir={cwd}"),
    ("test", ["-x", "tests/data"], "cpu", ".[test]", "-x tests/data"),
    ("test", ["-x", "tests/data"], "gpu", ".[gpu,test]", "-x tests/data"),
])
def test_arguments_go_to_the_program_alone(script, arguments, device, installs, runs, tmp_path):
    shutil.copytree(ROOT / "run_scripts", tmp_path / "run_scripts", ignore=shutil.ignore_patterns(
        "*.py", "__pycache__"))
    shutil.copy(ROOT / "setup.cfg", tmp_path)
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(PYTHON, encoding="utf-8")
    python.chmod(0o755)
    calls = tmp_path / "calls"
    for _ in range(2):      # the second time, nothing is installed
        subprocess.run(["bash", str(tmp_path / "run_scripts" / f"{script}.sh"), *arguments],
                       check=True, cwd=tmp_path, env={
                           **os.environ, "CALLS": str(calls), "BERT_TF_DEVICE": device})
    noted = calls.read_text(encoding="utf-8").splitlines()
    installed = [line for line in noted if " pip install " in f" {line} "]
    assert len(installed) == 1 and installed[0].endswith(f"--editable {installs}")
    assert noted[-1].endswith(runs.format(cwd=tmp_path))
