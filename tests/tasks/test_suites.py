"""Suites of tasks: their scores, and the files that their servers take."""

import numpy as np
import pytest

from bert_tf.tasks.kinds.labelled import write_submission
from bert_tf.tasks.named import OF_SUITES, TASKS
from bert_tf.tasks.suites import SUITES, Grid

# arXiv:1810.04805, table 1: MNLI-m, -mm, QQP, QNLI, SST-2, CoLA, STS-B, MRPC, RTE, Average.
AVERAGES = {
    "BERT-Base": (84.6, 83.4, 71.2, 90.5, 93.5, 52.1, 85.8, 88.9, 66.4, 79.6),
    "BERT-Large": (86.7, 85.9, 72.1, 92.7, 94.9, 60.5, 86.5, 89.3, 70.1, 82.1),
    "OpenAI GPT": (82.1, 81.4, 70.3, 87.4, 91.3, 45.4, 80.0, 82.3, 56.0, 75.1),
    "Pre-OpenAI SOTA": (80.6, 80.1, 66.1, 82.3, 93.2, 35.0, 81.0, 86.0, 61.7, 74.0),
    # The table prints 71.0; the cells, which are rounded too, give 70.9.
    "BiLSTM+ELMo+Attn": (76.4, 76.1, 64.8, 79.8, 90.4, 36.0, 73.3, 84.9, 56.8, 70.9)}
# arXiv:1901.11504, table 2: CoLA, SST-2, MRPC, STS-B, QQP, MNLI, QNLI, RTE, WNLI, AX, Score.
SCORES = {
    "BERT-Large": (60.5, 94.9, (89.3, 85.4), (87.6, 86.5), (72.1, 89.3), (86.7, 85.9), 92.7, 70.1,
                   65.1, 39.6, 80.5),
    "human": (66.4, 97.8, (86.3, 80.8), (92.7, 92.6), (59.5, 80.4), (92.0, 92.8), 91.2, 93.6, 95.9,
              0.0, 87.1)}

# arXiv:1910.10683, table 14, and super.gluebenchmark.com: BoolQ, CB, COPA, MultiRC, ReCoRD, RTE,
# WiC, WSC, Score.
SUPER = {
    "T5": (91.2, (93.9, 96.8), 94.8, (88.1, 63.3), (94.1, 93.4), 92.5, 76.9, 93.8, 89.3),
    "BERT": (77.4, (75.7, 83.6), 70.6, (70.0, 24.1), (72.0, 71.3), 71.7, 69.6, 64.4, 69.0)}

# arXiv:1901.07291, table 1, XLM (MLM + TLM), in its order of languages, then the average.
LANGUAGES = "en fr es de el bg ru tr ar vi th zh hi sw ur".split()
XLM = {
    "zero-shot": (85.0, 78.7, 78.9, 77.8, 76.6, 77.4, 75.3, 72.5, 73.1, 76.1, 73.2, 76.5, 69.6,
                  68.4, 67.3, 75.1),
    "translate-train": (85.0, 80.2, 80.8, 80.3, 78.1, 79.3, 78.1, 74.7, 76.5, 76.6, 75.5, 78.6,
                        72.3, 70.9, 63.2, 76.7),
    "translate-test": (85.0, 79.0, 79.5, 78.1, 77.8, 77.6, 75.5, 73.7, 73.7, 70.8, 70.4, 73.6, 69.0,
                       64.7, 65.1, 74.2)}


@pytest.mark.parametrize("split", ["dev", "test"])
def test_ways_to_other_languages(split):
    zero_shot, train, test = ({f"{split}_{language}/accuracy": value for language, value in zip(
        LANGUAGES, XLM[way])} for way in XLM)
    xnli, test = SUITES["xnli"], dict(list(test.items())[1:])
    scores = {"xnli": zero_shot, "xnli-translate-test": test} | {
        f"xnli-{name.partition('/')[0][-2:]}": {name: value, f"{split}_zz/accuracy": 0.0}
        for name, value in train.items()}
    found = xnli.languages(scores, split)
    assert {way: round(cells.pop("average"), 1) for way, cells in found.items()} == {
        way: cells[-1] for way, cells in XLM.items()}
    assert found == {way: dict(zip(LANGUAGES, cells)) for way, cells in XLM.items()}
    del scores["xnli-zh"]
    assert {way for way, cells in xnli.languages(scores, split).items() if "average" not in cells
            } == {"translate-train"}
    assert xnli.languages({"xnli-zh": {f"{split}_zh/accuracy": 1.0}}, split) == {
        "translate-train": {"zh": 1.0}}
    assert SUITES["glue"].languages({"mnli": {f"{split}_en/accuracy": 1.0}}, split) == {}


def test_score_of_super_glue():
    *cells, score = SUPER["T5"]
    rows = [row for row in SUITES["superglue"].rows if row.counts]
    scores = {row.task: {f"dev/{metric}": value for metric, value in zip(
        row.metrics, cell if isinstance(cell, tuple) else (cell,), strict=True)}
        for row, cell in zip(rows, cells, strict=True)}
    scores["ax-b"] = {"dev/matthews": 1.0}
    # 89.25 is printed as 89.3.
    assert round(SUITES["superglue"].score(scores) + 1e-9, 1) == score
    assert SUITES["superglue"].missing({**scores, "wsc": {}}) == ["wsc"]


@pytest.mark.parametrize("system", SCORES)
def test_score_of_glue(system):
    cola, sst, mrpc, sts, qqp, mnli, qnli, rte, wnli, ax, score = SCORES[system]
    scores = {"cola": {"loss": 3.0, "dev/matthews": cola, "dev/accuracy": 1.0},
              "sst-2": {"dev/accuracy": sst},
              "mrpc": dict(zip(("dev/f1", "dev/accuracy"), mrpc)),
              "sts-b": dict(zip(("dev/pearson", "dev/spearman"), sts)),
              "qqp": dict(zip(("dev/f1", "dev/accuracy"), qqp)),
              "mnli": dict(zip(("dev_matched/accuracy", "dev_mismatched/accuracy"), mnli)),
              "qnli": {"dev/accuracy": qnli}, "rte": {"dev/accuracy": rte, "test/accuracy": 1.0},
              "wnli": {"dev/accuracy": wnli}, "ax": {"dev/matthews": ax}}
    # 87.05 of the human row is printed as 87.1.
    assert round(SUITES["glue"].score(scores) + 1e-9, 1) == score
    # BERT's average has one metric of each task, and WNLI and AX not at all.
    assert SUITES["glue"].average(scores) == pytest.approx(np.mean(
        [cola, sst, mrpc[0], sts[1], qqp[0], *mnli, qnli, rte]))
    assert SUITES["glue"].missing(scores) == []
    del scores["cola"]["dev/matthews"]
    assert SUITES["glue"].missing(scores) == ["cola"]


def test_published_cells_give_the_published_figures():
    """The cells are in the order of the suite's rows, so the papers' figures come out."""
    glue, super_glue = SUITES["glue"], SUITES["superglue"]
    for suite in (glue, super_glue):
        for one in suite.published:
            scores = {task: {f"dev_{place}/{name}": value for place, (name, value) in enumerate(
                zip(metrics * len(cells) if len(metrics) < len(cells) else metrics, cells,
                    strict=True))} for (task, metrics), cells in zip(
                        suite.compared, one.cells, strict=True)}
            total = (suite.average if suite is glue else suite.score)(scores)
            assert total + 1e-9 == pytest.approx(one.figure, abs=0.1)
    for one in glue.published:
        cells = dict(zip((task for task, _ in glue.compared), one.cells))
        wanted = AVERAGES[one.system]
        assert (*cells["mnli"], *(cells[task][0] for task in (
            "qqp", "qnli", "sst-2", "cola", "sts-b", "mrpc", "rte"))) == wanted[:-1]
    for one, system in zip(super_glue.published, ("BERT", "T5"), strict=True):
        wanted = [cell if isinstance(cell, tuple) else (cell,) for cell in SUPER[system]]
        assert [*one.cells, (one.figure,)] == wanted


def test_rows_name_tasks_and_their_metrics():
    for suite in SUITES.values():
        names = [row.task for row in suite.rows]
        assert len(set(names)) == len(names)
        for row in suite.rows:
            average = row.average if suite.has_average else ()
            assert {*row.metrics, *average} <= set(OF_SUITES[row.task].metrics)
            assert row.begins_with in ("", *names)


def test_what_comes_first_in_bert_plus_plus():
    """arXiv:1905.00537, section 5.1: other training before the tasks, as in arXiv:1811.01088."""
    rows = SUITES["superglue"].rows
    assert {row.task: row.begins_with for row in rows if row.begins_with} == {
        "boolq": "mnli", "cb": "mnli", "superglue-rte": "mnli", "copa": "swag"}
    assert {row.task for row in rows if row.is_first} == {"mnli", "swag"}
    # A task begins with a new head, whatever the task before had.
    assert not any(row.keeps_head for row in rows)


def test_points_of_a_grid():
    assert list(Grid().points()) == [{}]
    assert list(Grid((1e-5, 2e-5), (16,)).points()) == [
        {"learning_rate": 1e-5, "train_batch_size": 16},
        {"learning_rate": 2e-5, "train_batch_size": 16}]


# Submissions

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
