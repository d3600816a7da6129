"""The files that the GLUE server takes."""

import json

import numpy as np
import pytest

from bert_tf.tasks.kinds.labelled import write_submission
from bert_tf.tasks.named import TASKS

OFFICIAL = {"CoLA", "SST-2", "MRPC", "STS-B", "QQP", "MNLI-m", "MNLI-mm", "QNLI", "RTE", "WNLI",
            "AX"}
SUPER = {"BoolQ", "CB", "COPA", "MultiRC", "ReCoRD", "RTE", "WiC", "WSC", "AX-b", "AX-g"}


def test_official_names():
    names = {layout.submission for task in TASKS.values() for layout in task.splits.values()}
    assert names - {None} == {*(f"{name}.tsv" for name in OFFICIAL),
                              *(f"{name}.jsonl" for name in SUPER)}


@pytest.mark.parametrize("task, file, first, second", [
    ("boolq", "BoolQ", "true", "false"), ("cb", "CB", "entailment", "contradiction"),
    ("copa", "COPA", 1, 0), ("superglue-rte", "RTE", "not_entailment", "entailment"),
    ("wic", "WiC", "true", "false"), ("wsc", "WSC", "True", "False"),
    ("ax-b", "AX-b", "not_entailment", "entailment"),
    ("ax-g", "AX-g", "not_entailment", "entailment")])
def test_lines_of_super_glue(tmp_path, task, file, first, second):
    """super.gluebenchmark.com/faq: {"idx": 0, "label": "true"}; COPA has numbers, WSC
    capitals."""
    size = TASKS[task].split("test").size
    ids = np.zeros(size, int)
    ids[0] = 1
    assert write_submission(tmp_path, TASKS[task], "test", ids) == str(tmp_path / f"{file}.jsonl")
    rows = [json.loads(line) for line in (tmp_path / f"{file}.jsonl").read_text().splitlines()]
    assert [row["idx"] for row in rows] == list(range(size))
    assert rows[0] == {"idx": 0, "label": first} and rows[1] == {"idx": 1, "label": second}


@pytest.mark.parametrize("task, split, file, first", [
    ("cola", "test", "CoLA.tsv", "1"), ("ax", "test", "AX.tsv", "entailment"),
    ("mnli", "test_mismatched", "MNLI-mm.tsv", "entailment"),
    ("rte", "test", "RTE.tsv", "not_entailment")])
def test_labels(tmp_path, task, split, file, first):
    task = TASKS[task]
    ids = np.zeros(task.split(split).size, int)
    ids[0] = 1
    path = write_submission(tmp_path, task, split, ids)
    assert path == str(tmp_path / file)
    lines = (tmp_path / file).read_text(encoding="utf-8").split("\n")
    assert lines[:3] == ["index\tprediction", f"0\t{first}", f"1\t{task.labels[0]}"]
    assert len(lines) == len(ids) + 2 and lines[-1] == ""


def test_numbers_stay_within_their_bounds(tmp_path):
    path = write_submission(tmp_path, TASKS["sts-b"], "test", np.linspace(-1, 6, 1379))
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    assert lines[1] == "0\t0.000" and lines[690] == "689\t2.500" and lines[-1] == "1378\t5.000"


def test_what_the_server_would_refuse(capsys):
    layout = TASKS["cola"].split("test")
    assert layout.takes("cola", "some.tsv", 1063) and not layout.takes("cola", "some.tsv", 5)
    assert capsys.readouterr().out == ("no CoLA.tsv: the server takes 1,063 predictions of cola, "
                                       "and some.tsv has 5 examples\n")
    assert not TASKS["snli"].split("test").takes("snli", "some.txt", 1)
    assert not capsys.readouterr().out
