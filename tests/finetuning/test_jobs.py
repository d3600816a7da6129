"""`bert_tf.finetune`, the call for Python, against the commands."""

import copy
import csv
import json
import pathlib
import pickle
from collections import UserString

import numpy as np
import pandas
import pytest

import bert_tf
from bert_tf import text_model
from bert_tf.errors import InputError
from bert_tf.finetuning import jobs
from bert_tf.finetuning.python_values import typed
from bert_tf.finetuning.run import has_learned_from
from bert_tf.tasks.label_cells import form_of_cells
from bert_tf.tasks.task_flags import TaskFlags
from bert_tf.training.settings import FineTuneSettings
from run_scripts import finetune
from tests.rounding import assert_same
from tests.run_scripts.test_run_classifier import write_csv
from tests.training import tiny

pytestmark = pytest.mark.usefixtures("all_eagerly")
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ",", "seen", *map(str, range(94))]
FILES = {"train_file": "train.csv", "dev_file": "dev.csv", "text_a_column": "body",
         "label_column": "folder"}


@pytest.fixture(name="folder", scope="module")
def fixture_folder(tmp_path_factory):
    """Files of texts, and a model to begin with."""
    folder = tmp_path_factory.mktemp("jobs")
    write_csv(folder / "train.csv", 1, 24)
    write_csv(folder / "dev.csv", 2, 9)
    tiny.save_encoder(folder / "model", TOKENS)
    return folder


def settings(folder):
    return {"data_dir": str(folder), "num_workers": 1, "train_batch_size": 8,
            "num_train_steps": 3, "max_seq_length": 24}


def test_an_lstm_that_no_memory_holds_is_refused(tmp_path):
    flags = jobs.ModelFlags(do_eval=True, bilstm_size=10**20)
    with pytest.raises(InputError, match=f"--bilstm_size is {10**20}; it must be from 0 to 65536"):
        flags.check(FineTuneSettings(output_dir=str(tmp_path)))


def test_the_call_does_what_the_command_does(folder, tmp_path):
    scores = bert_tf.finetune(FILES, folder / "model", tmp_path / "call", **settings(folder))
    given = settings(folder)
    finetune.main(
        TaskFlags(**FILES, data_dir=given.pop("data_dir")),
        jobs.ModelFlags(do_train=True, do_eval=True, init_checkpoint=str(folder / "model"),
                        max_seq_length=given.pop("max_seq_length"),
                        num_workers=given.pop("num_workers")),
        FineTuneSettings(output_dir=str(tmp_path / "command"), **given))
    assert_same(*(tiny.weights_at(tmp_path / name) for name in ("call", "command")))
    written = json.loads((tmp_path / "command" / "metrics.json").read_text())["metrics"]
    assert scores == written and {"loss", "dev/accuracy"} <= scores.keys()
    assert set(bert_tf.Predictor(tmp_path / "call")("a film")["probabilities"]) == {"ham", "spam"}


def test_values_of_python_are_those_of_the_command_line(folder, tmp_path):
    given = settings(folder) | {
        "data_dir": folder, "learning_rate": np.float32(0.5), "random_seed": np.int64(7),
        "train_batch_size": 8.0, "num_train_epochs": 1, "num_train_steps": None,
        "class_weights": np.array([1, 2]),
        "grid": np.False_, "warmup_proportion": "0.5", "label_column": 0, "text_a_column": 1,
        "jit_compile": False, "grid_train_batch_size": "16,32", "adv_train": "none"}
    tuned = jobs.open_job({"train_file": "train.csv"}, folder / "model", tmp_path, **given).settings
    found = {name: getattr(tuned, name) for name in given if hasattr(tuned, name)}
    wanted = {"learning_rate": 0.5, "random_seed": 7, "train_batch_size": 8,
              "num_train_epochs": 1.0, "num_train_steps": 0, "class_weights": ["1", "2"],
              "grid": False, "warmup_proportion": 0.5, "jit_compile": "false",
              "grid_train_batch_size": ["16", "32"], "adv_train": "none"}
    assert found == wanted
    assert {name: type(value) for name, value in found.items()} == {
        name: type(value) for name, value in wanted.items()}


def test_none_is_the_default(folder, tmp_path):
    given = settings(folder)
    nothing = dict.fromkeys(("grid", "learning_rate", "class_weights", "do_train", "label_scale",
                             "warmup_proportion", "weight_decay", "test_file"))
    plain, none = (jobs.open_job(FILES, folder / "model", tmp_path / "out", **given, **more)
                   for more in ({}, nothing))
    assert (plain.settings, plain.flags) == (none.settings, none.flags)
    with pytest.raises(InputError, match="has no setting learning_rat;"):
        jobs.open_job(FILES, folder / "model", tmp_path / "out", **given, learning_rat=None)


def test_files_of_a_task_and_weights_are_read_once(folder, tmp_path, monkeypatch):
    from bert_tf.checkpoints import hdf5
    from bert_tf.tasks import rows
    opened = []

    def count(module, name):
        read = getattr(module, name)

        def counted(*arguments):
            opened.append(str(arguments[-1]).rsplit("/", 1)[-1])
            return read(*arguments)

        monkeypatch.setattr(module, name, counted)

    count(rows, "open_unpacked")
    count(hdf5, "tensors")
    bert_tf.finetune(FILES, folder / "model", tmp_path / "out", **settings(folder))
    assert sorted(opened) == ["dev.csv", "model.keras", "train.csv"]


@pytest.fixture(name="ran", scope="module")
def fixture_ran(folder, tmp_path_factory):
    """A run's folder, how it is given again, and the settings that its trial keeps."""
    given, out = {**settings(folder), "random_seed": 1}, tmp_path_factory.mktemp("ran") / "out"
    bert_tf.finetune(FILES, folder / "model", out, **given)
    path = out / "trials" / "seed1" / "trial.json"
    return out, given, path, json.loads(path.read_text())


def test_settings_of_a_trial_that_were_changed_by_hand_are_named(folder, ran):
    out, given, path, kept = ran
    for name, message in (
            ("padding", "a trial whose padding is 'odd', but it must be one of max_length"),
            ("bert_config_file", "holds a run with another --bert_config_file")):
        path.write_text(json.dumps({**kept, "settings": {**kept["settings"], name: "odd"}}))
        with pytest.raises(InputError, match=message):
            bert_tf.finetune(FILES, folder / "model", out, **given)


def test_only_the_hash_of_its_records_tells_what_a_trial_learned_from(folder, ran):
    out, given, path, kept = ran
    path.write_text(json.dumps(kept))
    run = jobs.open_job(FILES, folder / "model", out, **given)
    size, digest = kept["settings"]["train_file"]
    for value, knows in (([size, digest], True), ({"tasks": {"a": [size, digest]}}, True),
                         ([size, digest + "0"], False), (None, False),
                         ({"tasks": {}, "order": {"of": digest}}, False)):
        path.write_text(json.dumps({**kept, "settings": {**kept["settings"], "train_file": value}}))
        assert has_learned_from(run, str(out / "records")) == knows


def test_several_tasks(folder, tmp_path):
    (tmp_path / "tasks.json").write_text(json.dumps({"one": FILES, "two": FILES}))
    scores = bert_tf.finetune([], folder / "model", tmp_path / "out",
                              task_config_path=str(tmp_path / "tasks.json"), **settings(folder))
    assert {"average", "one_dev_accuracy", "two_dev_accuracy"} <= scores.keys()


@pytest.mark.parametrize("task, given, message", [
    (FILES, {"learning_rat": 1}, "^this task has no setting learning_rat; did you mean "
     "learning_rate. bert-finetune --helpfull with the task lists its settings.$"),
    (FILES, {"qqqq": 1}, "has no setting qqqq; bert-finetune --helpfull"),
    ("nothing", {}, "nothing"),
    ({"train_file": "absent.csv", "text_a_column": "body", "label_column": "folder"}, {},
     "absent.csv"),
    (FILES, {"learning_rate": "fast"}, "learning_rate is 'fast'; it must be a number"),
    (FILES, {"train_batch_size": 2.5}, "train_batch_size is 2.5; it must be a whole number"),
    (FILES, {"grid": "perhaps"}, "grid is 'perhaps'; it must be True or False"),
    (FILES, {"class_weights": 3}, "class_weights is 3; it must be a list")])
def test_what_cannot_be_done(folder, tmp_path, task, given, message):
    with pytest.raises(InputError, match=message):
        bert_tf.finetune(task, folder / "model", tmp_path / "out", **settings(folder) | given)
    assert not (tmp_path / "out").exists()


def test_texts_in_memory_give_the_model_of_files(folder, tmp_path):
    with (folder / "train.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    texts, labels = [row["body"] for row in rows], [row["folder"] for row in rows]
    given = {name: value for name, value in settings(folder).items() if name != "data_dir"}
    model = bert_tf.TextModel.from_pretrained(folder / "model")
    assert "call fit" in repr(model) and model.fit(texts, labels, **given) == {}
    answers = model.predict(texts[:3])
    with pytest.raises(InputError, match="can't be copied, .* save the model"):
        copy.deepcopy(model)
    model.save(tmp_path / "saved")
    bert_tf.finetune({**FILES, "dev_file": ""}, folder / "model", tmp_path / "files",
                     **settings(folder))
    ours, theirs = tiny.weights_at(tmp_path / "saved"), tiny.weights_at(tmp_path / "files")
    assert all((ours[name] == theirs[name]).all() for name in theirs)
    saved = bert_tf.Predictor(tmp_path / "saved")
    assert model.predict(np.array(texts[:3])) == answers
    assert saved(texts[:3]) == answers and "classification into" in repr(saved)
    with pytest.raises(InputError, match="fine-tuned for classification, not for regression"):
        bert_tf.TextModel.from_pretrained(tmp_path / "saved", "regression")
    again = copy.deepcopy(bert_tf.TextModel.from_pretrained(tmp_path / "saved"))
    with pytest.raises(InputError, match="stop_at_step ended"):
        again.fit(texts, labels, **given, stop_at_step=1)
    assert again.predict(texts[:3]) == answers
    again.fit(texts, labels, None, None, **given, keep_head=None, grid=None, learning_rate=0.0)
    assert again.predict(texts[:3]) == answers
    assert again.fit(texts, labels, texts[:9], labels[:9], **given)["dev/accuracy"] >= 0
    assert "trials" not in {path.name for path in (tmp_path / "saved").iterdir()}
    card = (tmp_path / "saved" / "README.md").read_text()
    assert "# saved\n" in card and 'Predictor("saved")' in card and "weights of `model`" in card
    assert f"- train: {len(texts)} examples\n" in card and ".jsonl" not in card
    for text in (card, (tmp_path / "files" / "README.md").read_text()):
        assert "| `num_train_steps` | 3 |" in text and "num_train_epochs" not in text
    with pytest.raises(InputError, match="already"):
        again.save(tmp_path / "saved")


def test_a_table_in_memory_is_no_file():
    with pytest.raises(InputError, match="dev_file is a DataFrame; write it to a file and give"):
        bert_tf.finetune({"train_file": "a.csv", "dev_file": pandas.DataFrame({"a": ["b"]})},
                         "model", "out")
    with pytest.raises(InputError, match="train_file is a list; write it to a file"):
        bert_tf.finetune({"train_file": ["a text"], "text_a_column": "a"}, "model", "out")


@pytest.mark.parametrize("task, output_dir", [(None, "out"), ("mrpc", None)])
def test_a_task_and_a_folder_must_be_given(task, output_dir):
    with pytest.raises(InputError, match=f"task is .*, and output_dir .*{output_dir}.*; give both"):
        bert_tf.finetune(task, "model", output_dir)


def test_errors_of_fit_name_its_arguments(folder):
    model = bert_tf.TextModel.from_pretrained(folder / "model")
    given = {"num_train_steps": 1, "train_batch_size": 4, "max_seq_length": 6}
    with pytest.raises(InputError, match="^texts and labels: its .* 1 label; .* with label_names"):
        model.fit(["a", "b"], ["x", "x"], **given)
    model.fit(["a", "b"], ["x", "x"], label_names=["x", "y"], **given)
    with pytest.raises(InputError, match="^texts and labels, line 2: label 'z' is none of x, y"):
        model.fit(["a", "b"], ["x", "z"], **given, keep_head=True)
    with pytest.raises(InputError, match="^dev_texts and dev_labels, line 1: label 'z' is none"):
        model.fit(["a", "b"], ["x", "y"], ["a"], ["z"], **given)
    with pytest.raises(InputError, match="is a list; give kind='multi_label' to from_pretrained"):
        model.fit(["a", "b"], [["x"], ["x", "y"]], **given)


def test_warnings_of_fit_name_its_arguments(folder, capsys):
    model = bert_tf.TextModel.from_pretrained(folder / "model")
    model.fit(["a", "b"] * 2, ["nan", "x"] * 2, ["a", "b"], ["x", "nan"], num_train_steps=1,
              train_batch_size=4, max_seq_length=6)
    said = "".join(capsys.readouterr())
    assert "warning: texts and labels: 'nan' is learned as a label" in said
    assert "train.jsonl" not in said and "dev.jsonl" not in said


@pytest.mark.parametrize("kind, labels", [
    ("classification", np.array([-1, 7])), ("classification", [2.5, True]),
    ("multi_label", [[3, 4], [3]])])
def test_answers_have_the_labels_as_they_were_given(folder, tmp_path, kind, labels):
    given = {"num_train_steps": 1, "train_batch_size": 4, "max_seq_length": 6}
    model = bert_tf.TextModel.from_pretrained(folder / "model", kind)
    flat = labels[0]
    if kind == "classification":
        flat = np.array(labels, object).tolist()
    model.fit(["a", "b"], labels, **given)
    model.fit(["a", "b"], [labels[0]] * 2, **given)
    model.save(tmp_path / "saved")
    answers = model.predict(["a", "b"])
    assert answers == bert_tf.Predictor(tmp_path / "saved")(["a", "b"])
    for answer in answers:
        chosen = answer["labels"] if kind == "multi_label" else [answer["label"]]
        for label in (*chosen, *answer["probabilities"]):
            assert (type(label), label) in [(type(one), one) for one in flat]
        assert len(answer["probabilities"]) == 2


@pytest.mark.parametrize("labels", [[1, True], ["no", 1]])
def test_equal_or_mixed_labels_are_texts_in_answers(folder, labels):
    model = bert_tf.TextModel.from_pretrained(folder / "model")
    model.fit(["a", "b"], labels, num_train_steps=1, train_batch_size=4, max_seq_length=6)
    assert model.predict("a")["probabilities"].keys() == {*map(str, labels)}


FLAGS = [[1, 0, 1], [0, 0, 0], [0, 1, 0], [1, 1, 1]] * 2
LABELS = ("toxic", "severe", "insult")


@pytest.mark.parametrize("labels, names, dev", [
    (FLAGS, LABELS, FLAGS), (np.array(FLAGS), LABELS, np.array(FLAGS, bool)),
    (pandas.DataFrame(FLAGS, columns=LABELS),  (),
     pandas.DataFrame(FLAGS, columns=LABELS)[["insult", "toxic", "severe"]]),
    ([np.array(row) for row in FLAGS], LABELS, [np.array(row) for row in FLAGS]),
    ([",".join(map(str, row)) for row in FLAGS], LABELS, FLAGS)])
def test_flags_are_labels_in_every_form(folder, labels, names, dev, monkeypatch):
    given = {}
    monkeypatch.setattr(text_model, "finetune", lambda task, *paths, **settings: given.update(
        task, rows={name: pathlib.Path(task[f"{name}_file"]).read_text().splitlines()
                    for name in ("train", "dev")}) or {})
    model = bert_tf.TextModel.from_pretrained(folder / "model", kind="multi_label")
    texts = list("abcdefgh")
    with pytest.raises(InputError, match="stop_at_step"):       # there is no model
        model.fit(texts, labels, texts, dev, label_names=names)
    assert given["labels"] == list(LABELS)
    for split, rows in given["rows"].items():
        form = form_of_cells(((line, json.loads(row)["label"]) for line, row in enumerate(rows)),
                             given["labels"], split)
        assert [list(map(int, form.read(json.loads(row)["label"]).values)) for row in rows] == FLAGS


def test_columns_of_flags_may_be_a_list():
    given = typed(TaskFlags, {"label_column": ["toxic", "insult"], "labels": ["a", "b"]})
    assert given == {"label_column": "toxic,insult", "labels": ["a", "b"]}
    with pytest.raises(InputError, match="long_text is .'mean'.; it must be a text"):
        typed(TaskFlags, {"long_text": ["mean"]})


def test_tables_of_flags_that_do_not_fit_are_refused(folder):
    model = bert_tf.TextModel.from_pretrained(folder / "model", kind="multi_label")
    table = pandas.DataFrame(FLAGS[:2], columns=LABELS)
    for labels, given, part in (
            (table, {"label_names": ["a", "b"]}, "label_names are a, b, but labels have 3 columns"),
            (table, {"dev_texts": ["a", "b"], "dev_labels": table.rename(columns={"toxic": "x"})},
             "columns of labels are x, severe, insult, but the labels are toxic, severe, insult")):
        with pytest.raises(InputError, match=part):
            model.fit(["a", "b"], labels, **given)
    with pytest.raises(InputError, match="are toxic, severe, insult, but the labels are given wi"):
        model.fit(["a", "b"], [["toxic"], []], dev_texts=["a", "b"], dev_labels=table)


def test_a_text_model_and_its_copy_open_its_folder_from_anywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = bert_tf.TextModel("model")
    monkeypatch.chdir("/")
    assert model.path == pickle.loads(pickle.dumps(model)).path == str(tmp_path / "model")
    with pytest.raises(InputError, match="^there is no .*/model; name the folder"):
        model.predict("a text")


def test_texts_and_labels_that_do_not_go_together_are_refused(folder):
    model = bert_tf.TextModel.from_pretrained(folder / "model")
    with pytest.raises(InputError, match="dev_texts has 2 texts, but an example of texts has 1"):
        model.fit(["a", "b"], [0, 1], [("a", "b")], [0])
    for texts, labels, part in (([], [], "0 texts and 0 labels"), (["a"], [], "1 text and 0"),
                                (["a", ("b", "c")], [0, 1], "text 1 is"),
                                (["a"], None, "labels is one NoneType"),
                                (pathlib.Path("a"), [0, 1], "texts is one PosixPath"),
                                ({"a", "b"}, [0, 1], "texts is one set"),
                                ([3], [0], "text 0 is 3"), ("ab", [0, 1], "texts is one str"),
                                ({"x": "a", "y": "b"}, [0, 1], "texts is one dict"),
                                (["a", "b"], "ab", "labels is one str"),
                                (UserString("ab"), [0, 1], "texts is one UserString"),
                                (pandas.DataFrame({"a": ["x", 3]}), [0, 1], "text 1 is 3"),
                                (["a", "b"], np.eye(2), "labels have 2 columns"),
                                (iter(["a", np.nan]), [0, 1], "text 1 is nan"),
                                (["a", "b"], np.array(["x", np.nan], object), "label 1 is nan"),
                                (["a", "b"], [["x"], [b"y"]], "label 1 is b'y'"),
                                (["a", "b"], (label for label in ("x", None)), "label 1 is None")):
        with pytest.raises(InputError, match=part):
            model.fit(texts, labels)
    for setting, value, part in (("output_dir", "x", "^output_dir is no setting of fit, which"),
                                 ("label_column", "x", "^label_column is no setting"),
                                 ("num_train_epochs", 0, "0, so nothing would be learned")):
        with pytest.raises(InputError, match=part):
            model.fit(["a", "b"], [0, 1], **{setting: value})
    with pytest.raises(InputError, match="0 texts and 1 label"):
        model.fit(["a", "b"], [0, 1], dev_labels=[0])
    with pytest.raises(InputError, match="dev_texts has 2 texts"):
        model.fit(iter(["a", "b"]), iter([0, 1]), iter([("a", "b")]), iter([0]))
    with pytest.raises(InputError, match="call fit first"):
        model.predict("a")
    with pytest.raises(InputError, match="kind is 'spam'"):
        bert_tf.TextModel("x", "spam")


@pytest.mark.parametrize("way", ["mean", "head_tail"])
def test_long_texts_are_predicted_as_they_are_scored(folder, tmp_path, way):
    given = {**settings(folder), "max_seq_length": 6, "long_text": way}
    bert_tf.finetune(FILES, folder / "model", tmp_path, **given)
    manifest = json.loads((tmp_path / "records" / "dev.manifest.json").read_text())
    counts = manifest["counts"]
    assert counts["examples"] == 9 and (counts["records"] > 9) == (way == "mean")
    with (folder / "dev.csv").open(newline="", encoding="utf-8") as file:
        texts = [row["body"] for row in csv.DictReader(file)]
    lines = (tmp_path / "dev_predictions.jsonl").read_text().splitlines()
    predicted = [json.loads(line) for line in lines]
    answers = bert_tf.Predictor(tmp_path)(texts)
    card = (tmp_path / "README.md").read_text()
    assert f"| `long_text` | {way} |" in card and "weights of `model`" in card
    assert len(predicted) == len(texts) == 9
    for line, answer in zip(predicted, answers):
        assert line["label"] == answer["label"]
        assert np.allclose(list(line["probabilities"].values()),
                           list(answer["probabilities"].values()), atol=2e-5)
