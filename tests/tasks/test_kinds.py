"""What all kinds of tasks promise those who ask them."""

import json
import pickle
import types

import numpy as np
import pytest

from bert_tf import objectives
from bert_tf.data.batches import example_set
from bert_tf.data.records import manifest
from bert_tf.data.text import units
from bert_tf.errors import InputError
from bert_tf.finetuning.jobs import JOBS
from bert_tf.heads import HEADS
from bert_tf.tasks.kinds.sentence import Classification
from bert_tf.tasks.kinds.table import KINDS
from bert_tf.tasks.named import SQUAD, TASKS
from bert_tf.tasks.reading import Example
from bert_tf.tasks.saved_task import SavedTask, kind_on_disk
from bert_tf.tasks.split_records import RecordOptions, Source, SplitRecords
from bert_tf.tasks.task import Task
from bert_tf.tasks.task_flags import SquadFlags, TaskFlags, own_task

LABELS = ("O", "B-X")
OPTIONS = {"span": {**SquadFlags().options, "version_2_with_negative": False}}


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_is_found_again_on_disk_and_in_other_processes(tmp_path, name):
    task = Task("own", name, {}, LABELS, bounds=(0, 5))
    saved = SavedTask(task, 64, False, {"doc_stride": 3}, num_texts=2)
    saved.write(tmp_path)
    assert SavedTask.read(tmp_path) == saved
    assert kind_on_disk(KINDS[name].on_disk) == KINDS[name]
    assert pickle.loads(pickle.dumps(task)) == task
    assert [kind for kind in KINDS.values() if kind == KINDS[name]] == [KINDS[name]]


def test_a_task_of_keras_hub_is_none_of_ours(tmp_path):
    (tmp_path / "task.json").write_text(
        '{"module": "keras_hub.src.models.bert.bert_text_classifier", "class_name": '
        '"BertTextClassifier", "config": {}, "registered_name": "keras_hub>BertTextClassifier"}')
    assert SavedTask.read(tmp_path) is None


def test_files_of_tasks_that_are_none_are_refused(tmp_path):
    task = '{"task": {"name": "x", "kind": "odd", "multi_label": false, "labels": [], '
    task += '"metrics": [], "bounds": null, "label_names": []}, "max_seq_length": 8, '
    task += '"do_lower_case": true, "options": {}, "num_texts": null, "columns": {}}'
    (tmp_path / "task.json").write_text(task, encoding="utf-8")
    with pytest.raises(InputError, match="does not describe a task .* no task of the kind 'odd'"):
        SavedTask.read(tmp_path)


# A task as `task.json` has it.
LABELLED = {"name": "own", "kind": "classification", "labels": ["a", "b"], "metrics": [],
            "bounds": None, "multi_label": False, "label_names": []}


@pytest.mark.parametrize("changes, message", [
    ({"num_texts": "two"}, "num_texts is two"), ({"max_seq_length": 0}, "max_seq_length is 0"),
    ({"options": {"doc_stride": "far"}}, "options.doc_stride is .far.; write a whole number"),
    ({"options": {"n_best_size": None}}, "options.n_best_size is null; write a whole number"),
    ({"options": {"null_score_diff_threshold": "x"}}, "options.null.* is .x.; write a number"),
    ({"options": {"null_score_diff_threshold": None}}, "options.null.* is null; write a number"),
    ({"options": {"squad_style": ["bert"]}}, "options.squad_style is .*; write bert or albert or"),
    ({"options": {"long_text": "odd"}}, "options.long_text is .odd.; write truncate or"),
    ({"options": {"max_qa_length": "x"}}, "options.max_qa_length is .x.; write .*, or null"),
    ({"task": {"name": "own", "kind": "tagging", "labels": [], "metrics": [], "bounds": None,
               "multi_label": False, "label_names": []}},
     "task.labels is empty; write the labels in the order of"),
    ({"options": []}, "options is not a JSON object"),
    ({"do_lower_case": "false"}, "do_lower_case is .false.; write true or false"),
    ({"do_lower_case": 0}, "do_lower_case is 0"), ({"max_seq_length": "64"}, "max_.* is .64.; wr"),
    ({"max_seq_length": True}, "max_.* is true"), ({"max_seq_length": None}, "max_.* is null"),
    ({"max_seq_length": 63.9}, "max_seq_length is 63.9"), ({"columns": []}, "columns is not a"),
    ({"options": {"version_2_with_negative": "no"}}, "options.*is .no.; write true, false or null"),
    ({"options": {"hypothesis_first": 0}}, "options.hypothesis_first is 0; write true, false"),
    ({"options": {"beams": "4"}}, "options.beams is .4.; write a whole number"),
    ({"options": {"alpha": None}}, "options.alpha is null; write a number"),
    ({"options": {"label_scale": "5"}}, "options.label_scale is .5.; write a number, or null"),
    ({"options": {"scorer": "odd"}}, "options.scorer is .odd.; write squad or trivia_qa or"),
    ({"options": {"head": "odd"}}, "options.head is .odd.; write linear or step or"),
    ({"options": {"max_answer_lenght": 5}}, "options.max_answer_lenght is not an option; write"),
    ({"options": {"null_score_threshold": 5}}, "options.*is not an option; write null_score_d"),
    ({"task": {**LABELLED, "labels": ["a", "b", "a"]}}, "task.labels has .a. 2 times; write each"),
    ({"task": {**LABELLED, "label_names": ["x"]}}, "task.label_names has 1 names for 2 labels"),
    ({"task": {**LABELLED, "label_values": [0]}}, "task.label_values has 1 values for 2 labels"),
    ({"task": {**LABELLED, "label_values": [0, None]}}, "task.label_values.1. is null; wr")])
def test_values_that_were_changed_by_hand_are_named(tmp_path, changes, message):
    SavedTask(Task("own", "span", {}), 64, False, {"doc_stride": 3}).write(tmp_path)
    path = tmp_path / "task.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    with pytest.raises(InputError, match=f"task.json does not describe a task .{message}"):
        SavedTask.read(tmp_path)


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_has_a_head_a_script_and_a_description(name):
    kind = KINDS[name]
    head, arguments = kind.head(Task("own", kind, {}, LABELS), OPTIONS.get(name, {}))
    assert (HEADS[head].task or kind.reads) and hasattr(objectives, HEADS[head].objective)
    assert arguments.get("num_labels", 2) == 2
    assert kind.job in JOBS and kind.title and kind.features
    least, most, wanted = kind.texts
    assert least >= 0 and (most is None or most >= least) and wanted.startswith("a t")


def test_only_kinds_of_own_files_may_be_named_by_a_flag():
    choices = TaskFlags.__dataclass_fields__["task_kind"].metadata["choices"]
    assert set(choices) == set(KINDS) - {
        "span", "text_to_text", "answer_set", "cloze", "word_in_context", "coreference",
        "pronoun_ranking"}
    with pytest.raises(InputError, match="--multi_label is for classification, not for regression"):
        TaskFlags(task_kind="regression", multi_label=True, train_file="a.csv", text_a_column="a",
                  label_column="b").read_task()
    task = TaskFlags(multi_label=True, train_file="a.csv", text_a_column="a",
                     label_column="b").read_task()
    assert task.kind == KINDS["multi_label"] and task.headline == "micro_f1"


@pytest.mark.parametrize("given, saved, is_training, expected", [
    (None, None, True, 128), (None, 64, True, 64), (None, 64, False, 64), (32, 64, False, 32),
    (0, 64, False, 0)])
def test_an_option_is_the_flag_else_the_models_else_the_default(given, saved, is_training,
                                                                expected):
    known = {"version_2_with_negative": True, **({} if saved is None else {"doc_stride": saved})}
    flags = SquadFlags(doc_stride=given)
    options = KINDS["span"].options(flags.options, known, is_training, "model")
    assert options["doc_stride"] == expected and options["n_best_size"] == 20
    assert options["version_2_with_negative"] and "null_score_diff_threshold" not in options
    assert flags.with_options(SQUAD[False], options) is SQUAD[True]


@pytest.mark.parametrize("name, saved", [
    ("ranking", {"hypothesis_first": True, "long_text": "mean"}),
    ("multiple_choice", {"max_qa_length": 128, "carry_choices": True}),
    ("tagging", {"document_context": True, "feature_layers": None}),
    ("regression", {"label_scale": 5.0}),
    ("classification", {"answer_turns": 5, "head": "step", "head_size": 30})])
def test_options_that_no_flag_gives_are_the_models(name, saved):
    """Commands that have no such flag read texts as in training."""
    assert KINDS[name].options({}, saved, False, "model") == saved
    assert KINDS[name].options(dict.fromkeys(saved), saved, False, "model") == saved


def test_training_makes_a_threshold_void():
    saved = {"version_2_with_negative": True, "null_score_diff_threshold": 2.5}
    given = SquadFlags().options
    for is_training in (False, True):
        options = KINDS["span"].options(given, saved, is_training, "model")
        assert ("null_score_diff_threshold" in options) != is_training
    options = KINDS["span"].options(SquadFlags(null_score_diff_threshold=0.0).options, saved, True,
                                    "model")
    assert options["null_score_diff_threshold"] == 0


@pytest.mark.parametrize("columns", [("a",), ("a", "b")])
def test_what_training_examples_looked_like_is_kept(tmp_path, columns):
    task = own_task("classification", {"train": "t.csv"}, columns, "l", labels=("x", "y"))
    count = task.kind.num_texts(task)
    assert count == len(columns)
    SavedTask(task, 8, True, {}, count, task.columns).write(tmp_path)
    saved = SavedTask.read(tmp_path)
    assert saved.columns == {"texts": list(columns), "choices": []}
    saved.check_texts(count, "an example")
    with pytest.raises(InputError, match=f"t.csv has {3 - count} text.*trained on examples of"):
        saved.check_texts(3 - count, "t.csv")
    SavedTask(task, 8, True).write(tmp_path)
    SavedTask.read(tmp_path).check_texts(3 - count, "t.csv")
    assert TASKS["conll2003"].kind.num_texts(TASKS["conll2003"]) is None


class Shouts(Classification):
    """A kind of its own: whether a text shouts, with a feature that no other kind has."""

    name = title = "shouts"
    features = (*Classification.features, Classification.features[0].__class__(
        "capitals", "float32", 1))

    def encode(self, task, examples, tokenizer, max_seq_length, options=None):
        features, cut = super().encode(task, examples, tokenizer, max_seq_length, options)
        shares = [sum(map(str.isupper, e.texts[0])) / len(e.texts[0]) for e in examples]
        return {**features, "capitals": np.array(shares, np.float32)[:, None]}, cut


def test_a_new_kind_is_a_class_and_a_row(tmp_path, tokenizer, monkeypatch):
    monkeypatch.setitem(KINDS, "shouts", Shouts())
    (tmp_path / "t.tsv").write_text("text\tlabel\nA B\tyes\na b\tno\n", encoding="utf-8")
    task = own_task("shouts", {"train": str(tmp_path / "t.tsv")}, ["text"], "label",
                    labels=("no", "yes"))
    source = Source(task, "train", str(tmp_path / "t.tsv"))
    assert [example.label for example in source.examples()] == [1, 0]
    record, _ = SplitRecords(source, RecordOptions(8), tokenizer, str(tmp_path)).make(1)
    assert kind_on_disk(record["task"]).name == "shouts"
    record = manifest.load_manifest(tmp_path / "train.manifest.json")
    described, sizes = example_set.record_features(record)
    assert described == Shouts.features and sizes["max_seq_length"] == 8
    assert Example(["A"], 0) == task.kind.example("A", 0)


def test_documents_of_tagged_text_are_told_apart(tmp_path):
    examples = [Example(words, [0] * len(words), document) for words, document in (
        (["a", "b 1"], 1), (["c"], 1), (["d"], 2), (["e", "f"], 3))]
    task = types.SimpleNamespace(split=lambda name: types.SimpleNamespace(label=None))
    source = types.SimpleNamespace(task=task, split="test")
    predicted = [["O"] * len(example.texts) for example in examples]
    KINDS["tagging"].write_more(str(tmp_path), source, examples, predicted, {}, True)
    content = (tmp_path / "test_predictions.txt").read_text()
    assert content == "a O\nb\xa01 O\n\nc O\n\n\nd O\n\n\ne O\nf O\n\n"
    text = units.TaggedText(content.split("\n"), None, None, [])
    assert [line for line in text.lines if line] == ["a b\xa01", "c", "d", "e f"]
    assert text.lines[:6] == ["a b\xa01", "c", "", "d", "", "e f"]
