"""Rows of --task_config_path: the types of their values, and the names of tasks."""

import json

import pytest

from bert_tf.errors import InputError
from bert_tf.finetuning.mixture import MixtureFlags, check_row

ROW = {"train_file": "a.csv", "text_a_column": "body", "label_column": "folder"}


def test_values_have_the_types_of_flags():
    given = {**ROW, "header": "false", "labels": "good,bad", "teachers": "a,b", "dev_file": None,
             "label_scale": 5, "label_column": -1, "choice_columns": ["ending*", 3]}
    assert check_row("mail", given, "t.json") == {
        **ROW, "header": False, "labels": ["good", "bad"], "teachers": ["a,b"], "label_scale": 5.0,
        "label_column": "-1", "choice_columns": ["ending*", "3"]}


@pytest.mark.parametrize("key, value, message", [
    ("task_kind", "classify", "task_kind is classify; did you mean classification"),
    ("train_file", ["a.csv"], "train_file is .'a.csv'.; it must be a text"),
    ("data_dir", {}, "data_dir is {}; it must be a text"),
    ("text_a_column", ["a"], "text_a_column"),
    ("labels", 3, "labels is 3; it must be a list"),
    ("choice_columns", True, "choice_columns is True; it must be a list"),
    ("header", "perhaps", "header is 'perhaps'; it must be True or False"),
    ("multi_label", 2, "multi_label is 2"),
    ("train_fraction", [1], "train_fraction is .1.; it must be a number"),
    ("train_fraction", 0, "train_fraction is 0.0; it must be above 0"),
    ("max_qa_length", 1.5, "max_qa_length is 1.5; it must be a whole number"),
    ("label_scale", "x", "label_scale is 'x'; it must be a number"),
    ("distillation", ["minibert"], "distillation is"),
    ("distillation", "minibert", "there is no --distillation without --teachers"),
    ("teachers", {"a": 1}, "teachers is {'a': 1}; it must be a list"),
    ("dropout_p", float("nan"), "dropout_p is nan"),
    ("loss_weight", -1, "loss_weight is -1.0"),
    ("answer_opt", 5, "answer_opt is 5"),
    ("answer_opt", True, "answer_opt is True; it must be a whole number"),
    ("task", "mrpc", "has task; its keys may be"),
    ("labels_", [], "has labels_; its keys may be")])
def test_wrong_values_are_named(key, value, message):
    with pytest.raises(InputError, match=rf"t.json: the row of mail.*{message}"):
        check_row("mail", {**ROW, key: value}, "t.json")


@pytest.mark.parametrize("row", [[], "a.csv", 3, None])
def test_a_row_is_a_dict(row):
    with pytest.raises(InputError, match="the row of mail has .*; its keys may be"):
        check_row("mail", row, "t.json")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../../x", "a\\b", "a\nb"])
def test_a_task_whose_name_is_no_folder_is_refused(name, tmp_path):
    path = tmp_path / "t.json"
    path.write_text(json.dumps({name: ROW}))
    with pytest.raises(InputError, match="a folder of its name"):
        MixtureFlags(task_config_path=str(path)).rows()


def test_the_deciding_tasks_are_found_by_their_exact_names_first():
    names = ["one", "One", "mnli-x"]
    assert MixtureFlags(best_of=["One", "MNLIX", "one"]).deciding(names) == ["One", "mnli-x", "one"]
    assert MixtureFlags().deciding(names) == names
    with pytest.raises(InputError, match="--best_of names two, but the tasks are one, One"):
        MixtureFlags(best_of=["one", "two"]).deciding(names)
