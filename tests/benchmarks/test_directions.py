"""Table 5 of BERT's paper at small size: its sentences, what is run again, and its lines."""

import csv

import pytest

from benchmarks import directions as compare
from bert_tf.errors import InputError
from bert_tf.tasks.named import find_task

ROWS = [("entailment", "a", "One."), ("neutral", "b", "Two."), ("contradiction", "c", "Three."),
        ("-", "d", "Four.")]


@pytest.fixture(name="job")
def fixture_job(tmp_path):
    for split in ("train", "dev"):
        path = tmp_path / find_task("snli").splits[split].files[0]
        path.write_text("gold_label\tsentence1\tsentence2\n" + "".join(
            "\t".join(row) + "\n" for row in ROWS))
    return compare.DirectionsFlags(
        input_file=["text.txt"], mrpc_dir="mrpc", snli_dir=str(tmp_path), squad_train_file="t",
        squad_predict_file="p", output_dir=str(tmp_path / "out"))


def test_sentences_are_those_that_are_entailed_or_contradicted(job):
    compare.write_sentences(job)
    with open(job.path("sentences", "dev.tsv"), encoding="utf-8") as file:
        assert list(csv.reader(file, delimiter="\t")) == [
            ["sentence", "label"], ["One.", "entailment"], ["Three.", "contradiction"]]


def test_what_was_measured_is_not_measured_again(job, monkeypatch, capsys):
    asked = []

    def fine_tune(job, system, task, seed):
        asked.append((system, task, seed))
        if len(asked) == 4:
            raise KeyboardInterrupt
        return 10.0 * len(asked)

    monkeypatch.setattr(compare, "prepare", lambda job: None)
    monkeypatch.setattr(compare, "fine_tune", fine_tune)
    with pytest.raises(KeyboardInterrupt):
        compare.main(job)
    compare.main(job)
    assert len(asked) == 13 and asked[3] == asked[4] and len(set(asked)) == 12
    lines = capsys.readouterr().out.splitlines()[-6:]
    assert lines[1].split() == ["BERT", "10.0", "20.0", "30.0", "86.7", "92.7", "88.5"]
    assert [line[:14].strip() for line in lines[1:5]] == list(compare.SYSTEMS)
    job.num_train_steps = 7
    with pytest.raises(InputError, match="other flags"):
        compare.main(job)
