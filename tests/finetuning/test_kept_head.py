"""Fine-tuning a fine-tuned model: its head is trained further for the same labels, else a new one.
"""

import functools
import json
import shutil

import pytest

import bert_tf
from bert_tf import checkpoints
from bert_tf.errors import InputError
from bert_tf.finetuning.jobs import open_job
from tests.finetuning.test_jobs import TOKENS
from tests.rounding import assert_same
from tests.training import tiny

pytestmark = pytest.mark.usefixtures("eagerly")
TEXTS = ["seen 1 2", "seen 3", "4 5 6", "7 8 9"] * 2
LABELS = {"classification": ["x", "y"] * 4, "regression": [0.5, 2.0] * 4,
          "multi_label": [["x"], ["y", "x"]] * 4}
GIVEN = {"num_train_steps": 2, "train_batch_size": 4, "max_seq_length": 6, "num_workers": 1}
# Nothing is learned: what comes out is what went in.
STILL = {**GIVEN, "num_train_steps": 1, "learning_rate": 0.0}
FURTHER, NEW = "is trained further", "a new head is trained, since"


@pytest.fixture(name="base", scope="module")
def fixture_base(tmp_path_factory):
    """A pre-trained model."""
    folder = tmp_path_factory.mktemp("kept")
    tiny.save_encoder(folder, TOKENS)
    return folder


@pytest.fixture(name="tuned", scope="module")
def fixture_tuned(base, tmp_path_factory):
    @functools.cache
    def make(kind):
        model = bert_tf.TextModel.from_pretrained(base, kind)
        model.fit(TEXTS, LABELS[kind], **GIVEN)
        model.save(folder := tmp_path_factory.mktemp("tuned") / "model")
        return folder
    return make


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def files_of(folder, kind, labels):
    path = write(folder / "train.jsonl", [
        {"text": text, "label": label} for text, label in zip(TEXTS, labels)])
    return {"train_file": path, "text_a_column": "text", "label_column": "label", "task_kind": kind}


def answers(folder):
    return bert_tf.Predictor(folder)(TEXTS[:4])


def head_of(folder):
    return {name: tensor.read() for name, tensor in checkpoints.read(folder).tensors.items()
            if name.endswith("dense/kernel") and name.count("/") == 2
            and not name.startswith("pooler")}


@pytest.mark.parametrize("kind", LABELS)
def test_the_same_labels_go_on_with_the_head(kind, tuned, tmp_path, capsys):
    folder = tuned(kind)
    bert_tf.finetune(files_of(tmp_path, kind, LABELS[kind]), folder, tmp_path / "out", **STILL)
    assert FURTHER in capsys.readouterr().out
    assert_same(head_of(tmp_path / "out"), head_of(folder))
    assert answers(tmp_path / "out") == answers(folder)


def test_a_new_head_is_trained_on_request(tuned, tmp_path, capsys):
    folder = tuned("classification")
    capsys.readouterr()
    bert_tf.finetune(files_of(tmp_path, "classification", LABELS["classification"]), folder,
                     tmp_path / "new", **STILL, keep_head=False)
    assert FURTHER not in capsys.readouterr().out
    with pytest.raises(AssertionError):
        assert_same(head_of(tmp_path / "new"), head_of(folder))


@pytest.mark.parametrize("kind", LABELS)
def test_a_folder_of_hugging_face_follows_the_same_rule(kind, tuned, tmp_path, capsys):
    folder, hf = tuned(kind), tmp_path / "hf"
    checkpoints.convert(str(folder), str(hf), "huggingface")
    shutil.copy(folder / "vocab.txt", hf)
    run = open_job(files_of(tmp_path, kind, LABELS[kind]), hf, tmp_path / "out", **STILL)
    said = capsys.readouterr().out
    assert run.flags.keep_head and FURTHER in said
    assert kind != "classification" or f"the head of {hf}, with the labels x, y, {FURTHER}" in said
    model = bert_tf.TextModel.from_pretrained(hf)
    assert model.kind == kind and "call fit" not in repr(model)
    before = model.predict(TEXTS[:4])
    model.fit(TEXTS, LABELS[kind], **STILL)
    assert model.predict(TEXTS[:4]) == before


def test_a_regression_of_several_numbers_is_not_trained_further(tuned, tmp_path):
    checkpoints.convert(str(tuned("classification")), str(tmp_path / "hf"), "huggingface")
    path = tmp_path / "hf" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "problem_type": "regression"}))
    run = functools.partial(open_job, files_of(tmp_path, "regression", LABELS["regression"]),
                            tmp_path / "hf", tmp_path / "out", **STILL)
    with pytest.raises(InputError, match="hf.model.safetensors gives 2 numbers .* --keep_head=F"):
        run(keep_head=True)
    assert not (tmp_path / "out").exists()
    run()


def test_labels_in_another_order_stay_with_their_rows(tuned, base, tmp_path):
    """A config.json may number the labels otherwise than the training file's order."""
    checkpoints.convert(str(tuned("classification")), str(tmp_path / "hf"), "huggingface")
    shutil.copy(base / "vocab.txt", tmp_path / "hf")
    config = json.loads((tmp_path / "hf" / "config.json").read_text())
    config |= {"id2label": {"0": "y", "1": "x"}, "label2id": {"y": 0, "x": 1}}
    (tmp_path / "hf" / "config.json").write_text(json.dumps(config))
    wanted = bert_tf.Predictor(tmp_path / "hf")(TEXTS[:4])
    bert_tf.finetune(files_of(tmp_path, "classification", LABELS["classification"]),
                     tmp_path / "hf", tmp_path / "out", **STILL)
    assert bert_tf.Predictor(tmp_path / "out")(TEXTS[:4]) == wanted


def test_numbers_of_another_range_get_a_new_head(base, tmp_path, capsys):
    model = bert_tf.TextModel.from_pretrained(base, "regression")
    model.fit(TEXTS, [1e5, 9e5] * 4, **GIVEN)
    model.save(tmp_path / "model")
    for labels, said in (([1900, 2020] * 4, "are far from the numbers that"),
                         ([2e5, 8e5] * 4, f"for regression of numbers around 500000, {FURTHER}")):
        run = open_job(files_of(tmp_path, "regression", labels), tmp_path / "model",
                       tmp_path / str(labels[0]), **STILL)
        assert said in capsys.readouterr().out and run.flags.keep_head == (FURTHER in said)
    model.fit(TEXTS, [1900, 2020] * 4, **STILL)
    assert all(1700 < answer["value"] < 2200 for answer in model.predict(TEXTS))
    model.fit(TEXTS[:1], [1999], **STILL)
    assert FURTHER in capsys.readouterr().out


@pytest.mark.parametrize("labels, kind, more, reason", [
    (["x", "z"] * 4, "classification", {}, "knows the labels x, y, and here are x, z"),
    (["x", "y", "z", "x"] * 2, "classification", {}, "and here are x, y, z"),
    (["x"] * 7 + ["y"], "multi_label", {}, "a model for classification, not for"),
    ([0.5, 2.0] * 4, "regression", {}, "a model for classification, not for"),
    (["x", "y"] * 4, "classification", {"bilstm_size": 4}, "--bilstm_size=0, not 4"),
    (["x", "y"] * 4, "classification", {"head": "step"}, "--head=linear, not step")])
def test_other_tasks_get_a_new_head_and_say_so(labels, kind, more, reason, tuned, tmp_path, capsys):
    model = tuned("classification")
    capsys.readouterr()
    run = open_job(files_of(tmp_path, kind, labels), model, tmp_path / "out", **STILL, **more)
    said = capsys.readouterr().out
    assert NEW in said and reason in said and FURTHER not in said and not run.flags.keep_head
    with pytest.raises(InputError):
        bert_tf.finetune(files_of(tmp_path, kind, labels), model, tmp_path / "2", **STILL, **more,
                         keep_head=True)


@pytest.mark.parametrize("kind", ["regression", "multi_label"])
def test_the_kind_of_the_model_is_named_where_no_flag_names_one(kind, tuned, tmp_path, capsys):
    model = tuned(kind)
    capsys.readouterr()
    files = files_of(tmp_path, kind, ["x", "y"] * 4 if kind == "multi_label" else LABELS[kind])
    del files["task_kind"]
    open_job(files, model, tmp_path / "new", **STILL)
    said = capsys.readouterr().out
    assert f"not for classification (--task_kind={kind} trains its head further)" in said


def test_flags_may_have_the_order_of_other_names(tuned, capsys):
    model = bert_tf.TextModel.from_pretrained(tuned("multi_label"))
    capsys.readouterr()
    model.fit(TEXTS, [[0, 1], [1, 1]] * 4, label_names=["y", "x"], **STILL)
    said = capsys.readouterr().out
    assert "x (8), y (4)" in said and "labels x, y" in repr(model)
    model.fit(TEXTS, ["0,1", "1,1"] * 4, label_names=["y", "x"], **STILL)
    said = capsys.readouterr().out
    assert "here are y, x" in said and "y (4), x (8)" in said


def test_texts_in_memory_may_lack_a_label(tuned, capsys):
    model = bert_tf.TextModel.from_pretrained(tuned("classification"))
    model.fit(TEXTS[:4], ["x"] * 4, **STILL)
    assert "labels x, y" in repr(model)
    capsys.readouterr()
    model.fit(TEXTS, ["x", "z"] * 4, **STILL)
    assert NEW in capsys.readouterr().out and "labels x, z" in repr(model)


def test_the_values_of_labels_stay_with_the_head(base, tmp_path):
    model = bert_tf.TextModel.from_pretrained(base)
    model.fit(TEXTS, [7, 0] * 4, **GIVEN)
    model.save(tmp_path / "model")
    bert_tf.finetune(files_of(tmp_path, "classification", [7, 0] * 4), tmp_path / "model",
                     tmp_path / "out", **STILL, keep_head=True)
    assert answers(tmp_path / "out") == answers(tmp_path / "model")
    assert {*answers(tmp_path / "out")[0]["probabilities"]} == {0, 7}
    model.fit(TEXTS, ["7", "0"] * 4, **STILL)
    assert {*model.predict(TEXTS[0])["probabilities"]} == {"0", "7"}


def test_trials_begin_with_the_same_head_and_resume(tuned, tmp_path, capsys):
    model = tuned("classification")
    task = {**files_of(tmp_path, "classification", LABELS["classification"]),
            "dev_file": str(tmp_path / "train.jsonl")}
    given = {**GIVEN, "num_trials": 2}
    bert_tf.finetune(task, model, tmp_path / "whole", **given)
    assert "all trials begin with it" in capsys.readouterr().out
    bert_tf.finetune(task, model, tmp_path / "out", **given, stop_at_step=1)
    bert_tf.finetune(task, model, tmp_path / "out", **given)
    assert_same(head_of(tmp_path / "whole"), head_of(tmp_path / "out"))


def test_numbers_that_mean_other_labels_get_a_new_head(base, tmp_path, capsys):
    """CoLA's labels and MRPC's are 0 and 1 in the files; acceptable is not equivalent."""
    for name, header in (("cola", ""), ("mrpc", "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n")):
        (tmp_path / name).mkdir()
        for split in ("train", "dev"):
            (tmp_path / name / f"{split}.tsv").write_text(header + "".join(
                f"{number % 2}\t1\t2\t{text}\t{text}\n" if header else
                f"x\t{number % 2}\t\t{text}\n" for number, text in enumerate(TEXTS)))
    given = {**GIVEN, "do_eval": False, "max_seq_length": 12}
    bert_tf.finetune("cola", base, tmp_path / "1", data_dir=str(tmp_path / "cola"), **given)
    for task, said in (("mrpc", "a new head is trained, since"), ("cola", FURTHER)):
        capsys.readouterr()
        open_job(task, tmp_path / "1", tmp_path / f"2{task}", data_dir=str(tmp_path / task),
                 **given)
        assert said in capsys.readouterr().out


def test_a_tagger_goes_on_in_its_scheme(base, tmp_path, capsys):
    (tmp_path / "words.txt").write_text("seen B-X\n1 I-X\n2 O\n\n3 B-Y\n4 O\n\n" * 3)
    task = {"task_kind": "tagging", "train_file": str(tmp_path / "words.txt")}
    given = {**GIVEN, "num_train_steps": 1}
    bert_tf.finetune({**task, "tag_scheme": "bioes"}, base, tmp_path / "1", **given)
    bert_tf.finetune(task, tmp_path / "1", tmp_path / "2", **given, learning_rate=0.0)
    assert FURTHER in capsys.readouterr().out
    assert_same(head_of(tmp_path / "1"), head_of(tmp_path / "2"))
    (tmp_path / "words.txt").write_text("seen B-X\n1 I-X\n2 O\n\n3 B-Z\n4 O\n\n" * 3)
    open_job(task, tmp_path / "1", tmp_path / "3", **given)
    assert NEW in capsys.readouterr().out
