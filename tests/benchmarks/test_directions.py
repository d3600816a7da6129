"""Table 5 of BERT's paper at small size: its sentences, and its flags."""

import csv

import pytest

from benchmarks import directions
from bert_tf.tasks.named import find_task
from run_scripts import commands

ROWS = [("entailment", "a", "One."), ("neutral", "b", "Two."), ("contradiction", "c", "Three."),
        ("-", "d", "Four.")]


@pytest.fixture(name="job")
def fixture_job(tmp_path):
    for split in ("train", "dev"):
        path = tmp_path / find_task("snli").splits[split].files[0]
        path.write_text("gold_label\tsentence1\tsentence2\n" + "".join(
            "\t".join(row) + "\n" for row in ROWS))
        (tmp_path / f"{split}.json").write_text("{}")
    _, (job,) = commands.parse([
        "bert-benchmark", "directions", "--input_file=text.txt", "--mrpc_dir=mrpc",
        f"--snli_dir={tmp_path}", f"--squad_train_file={tmp_path / 'train.json'}",
        f"--squad_predict_file={tmp_path / 'dev.json'}", f"--output_dir={tmp_path / 'out'}",
        "--num_train_steps=600", "--sentence_epochs=1", "--squad_epochs=2", "--seeds=2"])
    return job


def test_sentences_are_those_that_are_entailed_or_contradicted(job, tmp_path):
    directions.write_sentences(job)
    with open(tmp_path / "out" / "sentences" / "dev.tsv", encoding="utf-8") as file:
        assert list(csv.reader(file, delimiter="\t")) == [
            ["sentence", "label"], ["One.", "entailment"], ["Three.", "contradiction"]]


def test_columns_follow_the_flags(job):
    table = directions.declare(job)
    assert job.all_seeds == [1, 2]
    columns = {column.title: column for column in table.columns}
    assert list(columns) == ["MRPC", "SQuAD", "sentence"]
    flags = {title: table.cell("+ BiLSTM", column, 2).flags for title, column in columns.items()}
    assert flags["sentence"]["num_train_epochs"] == 1 and not flags["sentence"]["task"]
    assert flags["SQuAD"]["num_train_epochs"] == 2 and flags["MRPC"]["num_train_steps"] == 300
    assert flags["MRPC"]["data_dir"].endswith("mrpc") and flags["MRPC"]["bilstm_size"] == 128
