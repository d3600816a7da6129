"""The table of history at small size: its tasks, how long systems train, and its lines."""

import pytest

from benchmarks import history as compare
from benchmarks import history_systems
from bert_tf.errors import InputError
from bert_tf.tasks.named import find_task
from run_scripts.kept_results import KeptResults

PAIRS = [("entailment", "a", "One."), ("neutral", "b", "Two."), ("contradiction", "c", "Three."),
         ("-", "d", "Four.")]
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


@pytest.mark.parametrize("a_step, steps", [(0.5, 40), (3.0, 7)])
def test_each_system_trains_for_the_same_cpu_seconds(job, monkeypatch, a_step, steps):
    asked = []

    def start(job, program, log, values):
        asked.append(values["num_train_steps"])
        return 12.0 + a_step * values["num_train_steps"]

    job.cpu_seconds = 20.0
    monkeypatch.setattr(compare, "prepare", lambda job, name: ("text.tfrecord", "config.json"))
    monkeypatch.setattr(compare, "start", start)
    compare.make_folder(job.output_dir, "output_dir")
    results = KeptResults(job.path("results.json"), job.settings())
    compare.pretrain(job, "BERT", results)
    compare.pretrain(job, "BERT", results)      # what was measured is kept
    assert asked == [20, 60, steps, steps]


def test_what_was_measured_is_not_measured_again(job, monkeypatch, capsys):
    asked = []

    def fine_tune(job, system, task, seed, results):
        asked.append((system, task, seed))
        if len(asked) == 4:
            raise KeyboardInterrupt
        return 10.0 * len(asked)

    monkeypatch.setattr(compare, "fine_tune", fine_tune)
    job.systems = ["BERT", "T5"]
    with pytest.raises(KeyboardInterrupt):
        compare.main(job)
    compare.main(job)
    assert asked[3] == asked[4] and len(set(asked)) == 6 and len(asked) == 7
    lines = capsys.readouterr().out.splitlines()[-4:]
    assert lines[0].split() == [*compare.TASKS, "published"]
    assert lines[1].split()[:4] == ["BERT", "10.0", "20.0", "30.0"]
    job.systems = ["GPT-5"]
    with pytest.raises(InputError, match="no 'GPT-5'; choose from LSTM, LM-LSTM"):
        compare.main(job)
    job.systems, job.vocab_size = [], 7
    with pytest.raises(InputError, match="other flags"):
        compare.main(job)
