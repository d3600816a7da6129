"""The table of history at small size: its tasks, how long systems train, and its lines."""

import json
import os

import pytest

from benchmarks import history as compare
from benchmarks import history_systems
from bert_tf.errors import InputError
from bert_tf.tasks.named import find_task
from run_scripts.kept_results import KeptResults

PAIRS = [("entailment", "a", "One."), ("neutral", "b", "Two."), ("contradiction", "c", "Three."),
         ("-", "d", "Four.")]
TUNED = "finetune"
NAMES = "-DOCSTART- O\n\nRome I-LOC\nfell O\n\n" + "Word O\n" * 41 + "\nBob I-PER\n\n"


@pytest.fixture(name="job")
def fixture_job(tmp_path):
    for name, content in (
            ("snli", "gold_label\tsentence1\tsentence2\n" + "".join(
                "\t".join(row) + "\n" for row in PAIRS)), ("conll2003", NAMES)):
        for split in ("train", "dev"):
            (tmp_path / find_task(name).splits[split].files[0]).write_text(content)
    return history_systems.HistoryFlags(
        input_file=["text.txt"], snli_dir=str(tmp_path), conll2003_dir=str(tmp_path),
        output_dir=str(tmp_path / "out"))


def test_a_folder_without_the_files_is_named_with_its_flag(job):
    job.conll2003_dir = "nowhere"
    with pytest.raises(InputError, match="^--conll2003_dir=nowhere has no eng.train; give the fol"):
        list(compare.read_split(job, "conll2003", "train"))


def test_all_systems_learn_the_same_rows(job):
    job.max_examples = 2
    compare.write_tasks(job)

    def read(*parts):
        with open(job.path(*parts), encoding="utf-8") as file:
            return file.read()
    assert read("sentence", "dev.tsv") == (
        "a\tlabel\nOne.\tentailment\nThree.\tcontradiction\n")
    assert read("sentence", "dev_text.tsv") == (
        "sentence a: One.\tentailment\nsentence a: Three.\tcontradiction\n")
    assert read("pair", "train_text.tsv") == (
        "pair a: a pair b: One.\tentailment\npair a: b pair b: Two.\tneutral\n")
    # A sentence of 41 words is left out.
    assert read("names", "eng.testa") == "Rome B-LOC\nfell O\n\nBob B-PER\n\n"


@pytest.fixture(name="started")
def fixture_started(monkeypatch):
    """The (program, flags) of all processes, which are not started: what each would write is."""
    asked = []

    def start(job, program, log, values):
        asked.append((program, values))
        if program == "data_prep.build_vocab":
            write(values["output_file"], "".join(
                f"{token}\n" for token in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "one")))
        elif program == "run_pretraining":
            write(os.path.join(values["output_dir"], "model.keras"), "")
        elif program != "data_prep.create_pretraining_data":
            score = sum(name == TUNED for name, _ in asked) / 10
            write(os.path.join(values["output_dir"], "metrics.json"), json.dumps(
                {"metrics": {"dev/accuracy": score, "dev/entity_f1": score}}))
        return 12.0 + start.a_step * values.get("num_train_steps", 0)

    def write(path, content):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(content)

    start.a_step = 0.5
    monkeypatch.setattr(compare, "start", start)
    return asked, start


@pytest.mark.parametrize("a_step, steps", [(0.5, 40), (3.0, 7)])
def test_each_system_trains_for_the_same_cpu_seconds(job, started, a_step, steps):
    asked, start = started
    job.cpu_seconds, start.a_step = 20.0, a_step
    compare.make_folder(job.output_dir, "output_dir")
    results = KeptResults(job.path("results.json"), job.settings())
    model = compare.pretrain(job, "BERT", results)
    assert compare.pretrain(job, "BERT", results) == model      # which is there
    assert [name for name, _ in asked] == [
        "data_prep.build_vocab", "data_prep.create_pretraining_data", *["run_pretraining"] * 3]
    assert [values["num_train_steps"] for _, values in asked[2:]] == [20, 60, steps]
    with open(asked[-1][1]["bert_config_file"], encoding="utf-8") as file:
        assert json.load(file)["vocab_size"] == 6
    assert asked[1][1]["output_file"] == asked[-1][1]["input_file"]
    os.remove(model)        # what was measured is kept
    compare.pretrain(job, "BERT", results)
    assert [values.get("num_train_steps") for _, values in asked[5:]] == [None, steps]


def test_a_measured_run_that_was_stopped_begins_anew(job, started, monkeypatch):
    """Its rest alone would take less time."""
    asked, start = started
    compare.make_folder(job.output_dir, "output_dir")
    results = KeptResults(job.path("results.json"), job.settings())

    def stop(job, program, log, values):
        found = start(job, program, log, values)
        if program == "run_pretraining":
            raise KeyboardInterrupt
        return found

    monkeypatch.setattr(compare, "start", stop)
    with pytest.raises(KeyboardInterrupt):
        compare.pretrain(job, "BERT", results)
    left = asked[-1][1]["output_dir"]
    assert os.listdir(left) == ["model.keras"]

    def check(job, program, log, values):
        if program == "run_pretraining":
            assert not os.path.exists(values["output_dir"])
        return start(job, program, log, values)

    monkeypatch.setattr(compare, "start", check)
    compare.pretrain(job, "BERT", results)
    assert asked[-3][1]["output_dir"] == left


def test_what_was_measured_is_not_measured_again(job, started, monkeypatch, capsys):
    asked, start = started

    def break_off(job, program, log, values):
        found = start(job, program, log, values)
        if len(tuned()) == 4:
            raise KeyboardInterrupt
        return found

    def tuned():
        return [(name, values["data_dir"]) for name, values in asked if name == TUNED]

    monkeypatch.setattr(compare, "start", break_off)
    job.systems = ["BERT", "left to right"]
    with pytest.raises(KeyboardInterrupt):
        compare.main(job)
    monkeypatch.setattr(compare, "start", start)
    compare.main(job)
    each = [(TUNED, job.path(task)) for task in ("sentence", "pair", "names")]
    assert tuned() == [*each, each[0], *each]
    lines = capsys.readouterr().out.splitlines()[-4:]
    assert lines[0].split() == [*compare.TASKS, "published"]
    assert lines[1].split()[:4] == ["BERT", "10.0", "20.0", "30.0"]
    job.systems = ["GPT-5"]
    with pytest.raises(InputError, match="no 'GPT-5'; choose from LSTM, LM-LSTM"):
        compare.main(job)
    job.systems, job.vocab_size = [], 7
    with pytest.raises(InputError, match="other flags"):
        compare.main(job)
