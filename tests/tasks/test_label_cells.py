"""Labels in cells of tables: several in one, flags, columns; numbers and their range."""

import csv
import json

import numpy as np
import pytest

from bert_tf.errors import InputError
from bert_tf.tasks.kinds.sentence import is_reached, mean_and_deviation, with_range
from bert_tf.tasks.kinds.table import KINDS
from bert_tf.tasks.label_cells import Flags, form_of_cells
from bert_tf.tasks.named import TASKS
from bert_tf.tasks.reading import Example, discover_labels, read_examples
from bert_tf.tasks.rows import Omissions, plain_label
from bert_tf.tasks.task_flags import own_task

NAMES = ("toxic", "severe insult", "insult")
ROWS = [("toxic", "insult"), (), ("severe insult",), ("insult",), NAMES]


def flags_of(row):
    return [int(name in row) for name in NAMES]


def write(path, cells, header=("text", "tags")):
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps({"text": "a", "tags": cell}) + "\n" for cell in cells))
    else:
        with open(path, "w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(header)
            rows.writerows([["a", *(cell if isinstance(cell, tuple) else [cell])]
                            for cell in cells])
    return str(path)


def read(path, labels=(), column="tags", omissions=None):
    """The labels that a file's task has, and those of each example."""
    task = own_task("multi_label", {"train": path}, ["text"], column, labels=labels)
    task = discover_labels(task, "train", path)
    examples = list(read_examples(task, "train", path, omissions))
    return task.labels, [tuple(name for name, has in zip(task.labels, example.label) if has)
                         for example in examples]


def same(found, rows=ROWS):
    return [set(one) for one in found] == [set(row) for row in rows]


@pytest.mark.parametrize("form", [
    ",".join, ";".join, "|".join, ", ".join, " ; ".join, lambda row: str(list(row)), json.dumps,
    lambda row: str(np.array(row, dtype=object)), lambda row: str(list(map(np.str_, row))),
    lambda row: repr(np.array(row, dtype=object)), lambda row: repr(np.array(row, str)),
    lambda row: "[" + ", ".join(row) + "]", lambda row: str(set(row)),
    lambda row: str(frozenset(row)),
    lambda row: json.dumps({"choices": row}) if row[1:] else "".join(row)],
    ids="comma semicolon bar blanks wide python json numpy typed array str bare set frozen "
        "label_studio".split())
def test_names_in_a_cell(form, tmp_path):
    path = write(tmp_path / "train.csv", [form(row) for row in ROWS])
    labels, found = read(path)
    assert labels == tuple(sorted(NAMES)) and same(found)


def test_quotes_and_marks_in_the_names_of_lists(tmp_path):
    names = ["it's", 'a "b"', "c, d", "é;f"]
    for form in (str, json.dumps):
        labels, found = read(write(tmp_path / "train.csv", [form(names), form(names[:1])]))
        assert set(labels) == set(names) and same(found, [names, names[:1]])


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
@pytest.mark.parametrize("form", [
    lambda row: ",".join(map(str, row)), lambda row: ";".join(map(str, row)), str,
    lambda row: " ".join(map(str, row)), lambda row: str(np.array(row)),
    lambda row: str(np.array(row, float)), lambda row: str(np.array(row, bool)),
    lambda row: str(list(map(bool, row))), lambda row: str(tuple(row)),
    lambda row: json.dumps(list(map(bool, row))), lambda row: str(list(map(float, row)))])
def test_flags_in_a_cell(form, suffix, tmp_path, capsys):
    path = write(tmp_path / f"train.{suffix}", [form(flags_of(row)) for row in ROWS])
    labels, found = read(path, NAMES)
    assert labels == NAMES and same(found)
    labels, found = read(path)
    assert labels == ("LABEL_0", "LABEL_1", "LABEL_2")
    assert found[0] == ("LABEL_0", "LABEL_2") and "--labels" in capsys.readouterr().err


@pytest.mark.parametrize("kind", [int, bool, float, str])
def test_flags_of_json(kind, tmp_path):
    path = write(tmp_path / "train.jsonl", [list(map(kind, flags_of(row))) for row in ROWS])
    labels, found = read(path, NAMES)
    assert labels == NAMES and same(found)


@pytest.mark.parametrize("shown", [
    {0: "0", 1: "1"}, {0: "false", 1: "true"}, {0: "False", 1: "True"}, {0: "0.0", 1: "1.0"},
    {0: "", 1: "1"}])
def test_a_column_for_each_label(shown, tmp_path):
    path = write(tmp_path / "train.csv", [tuple(map(shown.get, flags_of(row))) for row in ROWS],
                 ("text", *NAMES))
    labels, found = read(path, column=",".join(NAMES))
    assert labels == NAMES and same(found)
    # Names that are given in another order, or as others.
    assert same(read(path, NAMES[::-1], ",".join(NAMES))[1])
    assert read(path, ["x", "y", "z"], "1,2,3")[1][0] == ("x", "z")
    with pytest.raises(InputError, match="columns of labels are toxic, severe insult, insult, but"):
        read(path, ["toxic", "other", "insult"], ",".join(NAMES))


def test_columns_of_json(tmp_path):
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(
        {"text": "a", "is_b": bool(b), "is_a": a}) + "\n" for a, b in ((0, 1), (1, 1), (0, 0))))
    path = str(tmp_path / "train.jsonl")
    assert read(path, column="is_b, is_a") == (("is_b", "is_a"), [("is_b",), ("is_b", "is_a"), ()])


def test_a_flag_that_is_none_names_its_line(tmp_path):
    path = write(tmp_path / "train.csv", [("1", "0"), ("", "0"), ("0", "-1")], ("text", "a", "b"))
    with pytest.raises(InputError, match="line 3 has nothing where 0 or 1 must be for the label a"):
        read(path, column="a,b")
    path = write(tmp_path / "train.csv", ["1,0,0", "", "0,1,1"])
    with pytest.raises(InputError, match="line 3 has nothing where 0 or 1 must be"):
        read(path)
    omissions = Omissions(skip_malformed=True)
    task = own_task("multi_label", {"train": path}, ["text"], "tags", labels=NAMES)
    assert len(list(read_examples(task, "train", path, omissions))) == 2


@pytest.mark.parametrize("cells, labels, message", [
    (["a,b", "c", "a;b"], (), "separated by ',' in line 2 and by ';' in line 4"),
    (["a,b", "a,b,a"], (), "line 3: 'a' comes twice"),
    (["2,0,1", "0,0,1"], (), "line 3: '0' comes twice"),
    (["0,1,0", "1,0"], (), "line 2 has 3 flags and line 3 2"),
    (["0", "1", "1"], (), "may be names of labels or flags"),
    (["0,1", "0,1"], (), "may be names of labels or flags"),
    (["0,1,1", "1,0,0"], ("a", "b"), "line 2: there are 3 flags, but 2 labels: a, b"),
    (["a", "[0 0 ... 0 1]"], (), "cut off"), (["['a', nan]", "['b']"], (), "line 2 has null"),
    (["0.2,0.8", "0.9,0.1"], (), "line 2: 0.2, 0.8 are neither names of labels nor"),
    (["101", "010"], (), "line 2: 101 are neither names of labels nor"),
    (["c", '"a, b",c'], (), 'line 3: the labels "a, b",c are in quotes'),
    (["'a; b'; c", "c"], (), "line 2: the labels 'a; b'; c are in quotes")])
def test_what_cannot_be_told_apart_is_refused(cells, labels, message, tmp_path):
    with pytest.raises(InputError, match=message):
        read(write(tmp_path / "train.csv", cells), labels)


@pytest.mark.parametrize("cells, labels, expected", [
    (["0", "1", "0,1"], (), [("0",), ("1",), ("0", "1")]),        # of two widths: names
    (["0", "1", "1"], ("0", "1"), [("0",), ("1",), ("1",)]),
    (["0", "1", "1"], ("toxic",), [(), ("toxic",), ("toxic",)]),
    (["0,1", "1,0"], (), [("LABEL_1",), ("LABEL_0",)]),             # in both orders: flags
    (["3", "0,1", "27"], (), [("3",), ("0", "1"), ("27",)]),
    (["10", "11"], (), [("10",), ("11",)]),
    (["'90s,rock 'n' roll", "pop"], (), [("'90s", "rock 'n' roll"), ("pop",)]),
    (["['a', 'b']", "a, c"], (), [("a", "b"), ("a", "c")]),
    (["[don't, can't]", "[rock 'n' roll]"], (), [("can't", "don't"), ("rock 'n' roll",)]),
    (["R, D", "R, D|b"], (), None),
    (["R, D", "R, D|b"], ("R, D", "b"), [("R, D",), ("R, D", "b")]),
    (["R, D", "b"], ("R, D", "b"), [("R, D",), ("b",)])])
def test_small_files_and_known_labels(cells, labels, expected, tmp_path):
    path = write(tmp_path / "train.csv", cells)
    if expected is None:
        with pytest.raises(InputError, match="use one separator"):
            read(path, labels)
    else:
        assert same(read(path, labels)[1], expected)


@pytest.mark.parametrize("cells, is_told", [
    (["haze", "haze primary", "primary"], True), (["a/b", "b", "a"], True),
    (["a#b", "b", "a"], True),
    (["insult", "severe insult"], False), ([["a", "b"], ["a b"]], False), (["a b,a", "b"], False),
    (["C", "C++", ""], False)])
def test_labels_between_marks_that_separate_none_are_told(cells, is_told, tmp_path, capsys):
    read(write(tmp_path / "train.jsonl", cells))
    assert ("is one label, though its parts" in capsys.readouterr().err) == is_told


def test_several_columns_need_multi_label(tmp_path):
    path = write(tmp_path / "train.csv", [("1", "0"), ("0", "1")], ("text", "a", "b"))
    task = own_task("classification", {"train": path}, ["text"], "a,b")
    with pytest.raises(InputError, match="there is no column 'a,b'; .*--multi_label"):
        discover_labels(task, "train", path)


def test_dev_may_have_another_separator():
    form = form_of_cells([(2, "a;b"), (3, "b")], ("a", "b"), "dev.csv")
    assert form.read("a;b") == ["a", "b"] and form.read("") == []
    form = form_of_cells([(1, [True, False])], ("a", "b"), "dev.jsonl")
    assert form.read([False, True]) == Flags(("a", "b"), (False, True))


@pytest.mark.parametrize("cell, expected", [
    (1.0, "1"), (1, "1"), ("1.0", "1.0"), (" good\u00a0", "good"), ("  ", None), (None, None),
    (float("nan"), None), (1.5, "1.5"), (True, "True")])
def test_labels_have_no_blanks_at_their_ends(cell, expected):
    assert plain_label(cell) == expected == KINDS["classification"].read_cell(cell)


def test_labels_that_differ_by_blanks_are_one(tmp_path):
    path = write(tmp_path / "train.csv", ["good", "good ", " bad"])
    task = own_task("classification", {"train": path}, ["text"], "tags")
    task = discover_labels(task, "train", path)
    assert task.labels == ("bad", "good")
    assert [example.label for example in read_examples(task, "train", path)] == [1, 1, 0]
    task = own_task("classification", {"train": path}, ["text"], "tags", labels=["good", " bad"])
    assert [example.label for example in read_examples(task, "train", path)] == [0, 0, 1]


# Numbers

REGRESSION = KINDS["regression"]


def numbers(low, high, count=200):
    return np.random.default_rng(0).uniform(low, high, count)


@pytest.mark.parametrize("low, high, reaches", [
    *((*ends, True) for ends in ((0, 5), (1, 5), (0, 1), (-1, 1), (-5, 5))),
    *((*ends, False) for ends in ((120, 250), (0.001, 0.002), (2e6, 5e6), (-300, -100), (0, 100),
                                  (1900, 2020)))])
def test_labels_that_a_head_does_not_reach_give_their_mean_and_deviation(low, high, reaches):
    labels = numbers(low, high)
    expected = None if reaches else pytest.approx((labels.mean(), labels.std()))
    assert mean_and_deviation(labels) == expected


def test_one_wrong_number_does_not_decide_about_the_others(capsys):
    near, far = numbers(0, 5), numbers(120, 250)
    assert mean_and_deviation([*near, 1e9]) is None
    assert mean_and_deviation([*far, -1e9]) == pytest.approx((far.mean(), far.std()))
    assert with_range({}, [*near, 1e9, -1e9]) == {}
    warned = capsys.readouterr().err
    assert "2 of 202 labels" in warned and "such as 1e+09" in warned
    # Most labels are 0, and a few are far: these are the task.
    rare = [0.0] * 90 + [100.0] * 10
    assert mean_and_deviation(rare) == pytest.approx((np.mean(rare), np.std(rare)))
    with_range({}, rare)
    with_range({}, near)
    assert not capsys.readouterr().err


@pytest.mark.parametrize("labels, expected", [
    (numbers(120, 250), True), (numbers(150, 170), True), ([199.0], True), ([180.0] * 3, True),
    (numbers(0, 5), False), (numbers(1900, 2020), False), (numbers(184.9, 185.1), False),
    ([*numbers(120, 250), 1e9], True), (numbers(12, 25), False), ([70.0, 71.0], True)])
def test_a_head_is_kept_for_numbers_that_it_says(labels, expected):
    assert is_reached({"label_mean": 185.0, "label_scale": 37.5}, labels) is expected
    assert is_reached({}, labels) == (max(labels) <= 5)


@pytest.mark.parametrize("value", [7.0, 0.1, 1e6, -300.3])
def test_equal_labels_start_at_their_value(value):
    assert mean_and_deviation([value] * 7) == pytest.approx((value, 1.0))


def test_the_labels_of_sts_b_stay_as_they_are(test_data):
    task = TASKS["sts-b"]
    labels = [example.label for example in read_examples(
        task, "train", task.path(str(test_data / "glue" / "STS-B"), "train"))]
    assert mean_and_deviation(labels) is None and with_range({}, labels) == {}


def test_what_is_given_stays(capsys):
    labels = numbers(120, 250)
    assert with_range({"label_scale": 9.0}, labels) == {
        "label_scale": 9.0, "label_mean": pytest.approx(labels.mean())}
    assert with_range({"label_mean": 0.0}, labels) == {
        "label_mean": 0.0, "label_scale": pytest.approx(labels.std())}
    capsys.readouterr()
    both = {"label_mean": 0.0, "label_scale": 1.0}
    assert with_range(both, labels) == both and not capsys.readouterr().out


def test_small_numbers_keep_their_digits():
    def shown(value):
        return REGRESSION.describe(TASKS["sts-b"], Example(["a"], 0), np.float32(value), None)

    assert shown(0.00123456) == {"value": 0.001235} and shown(3.14159) == {"value": 3.1416}
    assert shown(-0.5) == {"value": -0.5} and shown(0) == {"value": 0.0}
    assert shown(2345678.5) == {"value": 2345678.5} and np.isnan(shown(np.nan)["value"])


def test_a_number_that_records_cannot_hold_is_refused(tmp_path):
    path = tmp_path / "train.csv"
    path.write_text("text,price\na,12\nb,1e39\n")
    task = own_task("regression", {"train": str(path)}, ["text"], "price")
    with pytest.raises(InputError, match="line 3: '1e39' is not a number"):
        list(read_examples(task, "train", str(path)))
