"""Fine-tuning of one model on several tasks, from files to scores and answers."""

import contextlib
import dataclasses
import io
import json
import random
import shutil
import types

import keras
import numpy as np
import pytest

import bert_tf
from bert_tf.checkpoints.names import with_head_of
from bert_tf.errors import InputError
from bert_tf.finetuning import mixture
from bert_tf.finetuning.member import Member
from bert_tf.finetuning.mixture import MixtureFlags, settle_steps
from bert_tf.finetuning.model import ModelFlags
from bert_tf.tasks.named import TASKS
from bert_tf.tasks.saved_task import SavedTask
from bert_tf.tasks.split_records import Source
from bert_tf.tasks.task_flags import RunSplits, TaskFlags
from bert_tf.tokenization import open_tokenizer
from bert_tf.training import distribution
from bert_tf.training.settings import FineTuneSettings
from run_scripts import export_model, finetune
from tests.training import tiny

pytestmark = pytest.mark.usefixtures("eagerly")
WORDS = ["good", "fine", "bad", "poor", "film", "book", "seen"]
COLUMNS = {"text_a_column": "a", "label_column": "y"}
ROWS = {
    "mood": {"train_file": "mood.csv", "dev_file": "mood.csv", "test_file": "mood.csv",
             "labelled_test": True, **COLUMNS},
    "same": {"train_file": "same.csv", "dev_file": "same.csv", "text_b_column": "b", **COLUMNS},
    "rating": {"train_file": "rating.csv", "dev_file": "rating.csv", "task_kind": "regression",
               "text_b_column": "b", "loss_weight": 0.5, **COLUMNS},
    "which": {"train_file": "which.csv", "dev_file": "which.csv", "task_kind": "ranking",
              "labels": ["yes", "no"], "text_b_column": "b", **COLUMNS},
}


def write_csv(path, rows):
    path.write_text("".join(",".join(map(str, row)) + "\n" for row in rows))


@pytest.fixture(name="folder", scope="module")
def fixture_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("multitask")
    rng = random.Random(1)
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n")
    tiny.config(vocab_size=len(tokens), num_hidden_layers=1, hidden_size=8, num_attention_heads=2,
                intermediate_size=8).to_json_file(folder / "config.json")

    def text():
        return " ".join(rng.choices(WORDS, k=rng.randint(1, 5)))

    write_csv(folder / "mood.csv", [("a", "y"), *((text(), rng.choice("xz")) for _ in range(11))])
    write_csv(folder / "same.csv", [("a", "b", "y"), *(
        (text(), text(), rng.choice(["no", "yes"])) for _ in range(9))])
    write_csv(folder / "rating.csv", [("a", "b", "y"), *(
        (text(), text(), rng.randint(0, 5)) for _ in range(6))])
    write_csv(folder / "which.csv", [("a", "b", "y"), *(
        (f"good {WORDS[index]}", text(), label) for index in range(4) for label in ("yes", "no"))])
    write_csv(folder / "other.csv", [("a", "y"), ("good", "x"), ("bad", "w")])
    return folder


@pytest.fixture(name="run")
def fixture_run(folder, tmp_path):
    """Function that runs the command on changed rows of tasks; returns the folder it writes."""
    def run(output="out", rows=ROWS, **changes):
        (tmp_path / "tasks.json").write_text(json.dumps(rows))
        mixture = {"data_dir": str(folder), "task_config_path": str(tmp_path / "tasks.json"),
                   "answer_num_turn": 2}
        job = {"do_train": True, "do_eval": True, "bert_config_file": str(folder / "config.json"),
               "vocab_file": str(folder / "vocab.txt"), "classifier_dropout": 0.0,
               "max_seq_length": 14, "num_workers": 1}
        settings = {"output_dir": str(tmp_path / output), "train_batch_size": 16,
                    "eval_batch_size": 16, "num_train_epochs": 2.0, "learning_rate": 0.01,
                    "optimizer": "adamax", "save_checkpoints_steps": 7}
        for name, value in changes.items():
            (mixture if hasattr(MixtureFlags, name) or name in ("tasks", "best_of") else settings
             if hasattr(FineTuneSettings, name) else job)[name] = value
        finetune.main(MixtureFlags(**mixture), ModelFlags(**job), FineTuneSettings(**settings))
        return tmp_path / output
    return run


def same(one, other, most=0.0):
    assert one.keys() == other.keys()
    return all(np.abs(one[name] - other[name]).max() <= most for name in one)


def test_tasks_are_learned_together(run, folder, copy_at, tmp_path, monkeypatch, mirrored, capsys):
    copy_at(7, tmp_path / "out", tmp_path / "parts")
    whole = run(do_predict=True)
    found = json.loads((whole / "metrics.json").read_text())
    assert found["best_epochs"].keys() == {"average", *ROWS}
    scores = [found["metrics"][name] for name in found["headlines"].values()]
    assert found["metrics"]["average"] == pytest.approx(np.mean(scores))
    curves = (whole / "dev_curves.tsv").read_text().splitlines()
    assert curves[0].split("\t") == ["epoch", "step", "average", *ROWS] and [
        line.split("\t")[:2] for line in curves[1:]] == [["1", "4"], ["2", "8"]]
    first = tiny.weights_at(whole)
    # Killed within an epoch, it goes on as if it had not been, with its own length and case.
    capsys.readouterr()
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    parts = run("parts", max_seq_length=None)
    assert same(first, tiny.weights_at(parts)) and "at step 7" in capsys.readouterr().out
    # Without the trial nothing was begun.
    shutil.rmtree(parts / "trials")
    with pytest.raises(InputError, match=r"task.json has another --do_lower_case \(True, now Fal"):
        run("parts")
    (folder / "tokenizer_config.json").unlink()
    # With one turn, none is left out.
    few = {"tasks": ["same", "rating"], "num_train_steps": 2, "do_eval": False,
           "answer_num_turn": 1}
    one = run("one", **few)
    monkeypatch.setattr(distribution, "make_strategy", lambda *_: mirrored)
    two = run("two", **few)
    monkeypatch.undo()
    assert same(tiny.weights_at(one), tiny.weights_at(two), 1e-6)
    # The model alone is scored as it was.
    run("whole_again", do_train=False, init_checkpoint=str(whole), bert_config_file="",
        vocab_file="", max_seq_length=None, tasks=["same", "rating"])
    again = json.loads((tmp_path / "whole_again" / "metrics.json").read_text())["metrics"]
    assert all(found["metrics"][name] == pytest.approx(value, rel=1e-6, abs=1e-6)
               for name, value in again.items() if name != "average")
    check_parts(whole, first)
    check_going_on(whole, folder, tmp_path)


def check_parts(whole, first):
    """Keras, the Predictor and the export read the model, the last two one task at a time."""
    learner = keras.saving.load_model(whole / "model.keras")
    assert [objective.name for objective in learner.objectives] == list(ROWS)
    lines = (whole / "tasks" / "mood" / "test_predictions.jsonl").read_text().splitlines()
    assert len(lines) == 11
    for name in ROWS:
        columns = SavedTask.read(str(whole / "tasks" / name)).columns
        assert columns["texts"] == ["a"] + ["b"] * ("text_b_column" in ROWS[name])
        own = tiny.weights_at(whole / "tasks" / name)
        assert all(np.array_equal(value, first[key]) for key, value in own.items() if key in first)
    model = bert_tf.open_model(whole / "tasks" / "same")
    job = export_model.resolve(export_model.ExportFlags(
        init_checkpoint=model.path, output="", format="ids"), model)
    assert job.task == "stochastic_answer"
    exported = export_model.build(job, model)
    batch = {"input_ids": np.array([[2, 5, 3, 6, 3]]), "input_mask": np.ones([1, 5], int),
             "segment_ids": np.array([[0, 0, 0, 1, 1]])}
    answer = exported.objectives[0].answers(exported(batch)["stochastic_answer"])["probabilities"]
    # The second text comes first.
    predicted = bert_tf.Predictor(whole, task="same")(("fine", "good"))["probabilities"]
    assert np.allclose(list(predicted.values()), answer[0], atol=1e-6)
    ranked = bert_tf.Predictor(whole, task="which")
    one, two = (ranked(("good film", *texts)) for texts in (("bad", "fine"), ("fine", "bad")))
    assert one["choice"] != two["choice"] and np.allclose(
        one["probabilities"], two["probabilities"][::-1], atol=1e-6)
    with pytest.raises(InputError, match="was trained with --hypothesis_first"):
        export_model.resolve(export_model.ExportFlags(init_checkpoint=model.path, output=""), model)
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        job = export_model.resolve(export_model.ExportFlags(
            init_checkpoint=str(whole), output="", format="ids"), bert_tf.open_model(whole))
    assert job.task == "encoder" and str(whole / "tasks" / "mood") in shown.getvalue()
    for arguments, part in (
            ((whole,), "tasks, mood, rating.* with task= .*, such as .*/tasks/mood[.]$"),
            ((whole, 32, None, "mrpc"), "no task 'mrpc'; it has mood, rating")):
        with pytest.raises(InputError, match=part):
            bert_tf.Predictor(*arguments)


def check_going_on(whole, folder, tmp_path):
    """One task is trained further, with its head."""
    job = ModelFlags(do_train=True, do_eval=True, keep_head=True, num_workers=1,
                     init_checkpoint=with_head_of(str(whole), "same"))
    settings = FineTuneSettings(output_dir=str(tmp_path / "own"), num_train_epochs=0.0)
    own = TaskFlags(**{"data_dir": str(folder), **ROWS["same"]})
    finetune.main(own, job, settings)
    with pytest.raises(InputError, match="no head for the task mrpc; it has .* mood, rating"):
        finetune.main(TaskFlags(task="mrpc"), dataclasses.replace(
            job, init_checkpoint=str(whole)), settings)
    score = json.loads((tmp_path / "own" / "metrics.json").read_text())["metrics"]
    wanted = json.loads((whole / "metrics.json").read_text())["metrics"]
    assert score["dev/accuracy"] == wanted["same_dev_accuracy"]


@pytest.mark.parametrize("given, saved, wanted", [
    ({}, None, {"answer_turns": 5, "hypothesis_first": True}),
    ({"hypothesis_first": False, "answer_opt": 0}, None, {}),
    ({}, {}, {}),
    ({}, {"answer_turns": 2}, {"answer_turns": 2}),
    ({"answer_num_turn": 3, "hypothesis_first": False},
     {"answer_turns": 2, "hypothesis_first": True},
     {"answer_turns": 3, "hypothesis_first": False})])
def test_a_model_is_scored_with_the_options_of_its_training(folder, tmp_path, given, saved, wanted):
    (tmp_path / "tasks.json").write_text(json.dumps({"same": ROWS["same"]}))
    model = types.SimpleNamespace(path=str(tmp_path), folder=str(tmp_path), max_seq_length=14,
                                  tokenizer=open_tokenizer(str(folder / "vocab.txt")))
    if saved is not None:
        own = tmp_path / "tasks" / "same"
        own.mkdir(parents=True)
        task = dataclasses.replace(TASKS["mrpc"], name="same", labels=("no", "yes"))
        SavedTask(task, 14, True, saved).write(str(own))
    member, = mixture.open_members(
        MixtureFlags(data_dir=str(folder), task_config_path=str(tmp_path / "tasks.json"), **given),
        ModelFlags(do_train=saved is None, do_eval=True), model, FineTuneSettings(output_dir=""))
    assert member.options == wanted


def test_a_row_says_how_a_task_of_its_kind_is_learned(folder, tmp_path):
    write_csv(tmp_path / "choose.csv", [("a", "c0", "c1", "y"), ("good", "film", "book", 1)])
    path, table = tmp_path / "tasks.json", str(tmp_path / "choose.csv")
    path.write_text(json.dumps({
        "rating": {**ROWS["rating"], "label_scale": 5},
        "choose": {"train_file": table, "dev_file": table, **COLUMNS, "choice_columns": ["c*"],
                   "task_kind": "multiple_choice", "max_qa_length": 4, "carry_choices": True}}))
    model = types.SimpleNamespace(path="", max_seq_length=14,
                                  tokenizer=open_tokenizer(str(folder / "vocab.txt")))
    rating, choose = mixture.open_members(
        MixtureFlags(data_dir=str(folder), task_config_path=str(path)),
        ModelFlags(do_train=True, do_eval=True), model, FineTuneSettings(output_dir=""))
    assert rating.options["label_scale"] == rating.head()[1]["scale"] == 5
    assert (choose.options["max_qa_length"], choose.options["carry_choices"]) == (4, True)


def test_a_row_without_the_file_of_a_flag_is_told_so(folder, tmp_path):
    row = {**ROWS["same"]}
    del row["dev_file"]
    (tmp_path / "tasks.json").write_text(json.dumps({"same": row}))
    with pytest.raises(InputError, match="task same: --do_eval: name a file .*=False"):
        mixture.open_members(MixtureFlags(data_dir=str(folder), task_config_path=str(
            tmp_path / "tasks.json")), ModelFlags(do_train=True, do_eval=True), None, None)


def test_the_rate_is_scheduled_for_the_originals_steps(test_data):
    cases = json.loads((test_data / "golden" / "mtdnn" / "schedule_seed1.json").read_text())
    case = next(case for case in cases if "--ratio" in case["flags"] and "batch_size" not in case)
    settings = FineTuneSettings(output_dir="", train_batch_size=4, num_train_epochs=3.0)
    settings, order = settle_steps(
        MixtureFlags(ratio=0.5), settings, list(case["sizes"].values()), does_evaluate=True)
    assert (settings.num_train_steps, settings.schedule_steps, settings.num_warmup_steps) == (
        len(case["task_of_step"]), case["num_train_steps"], case["num_train_steps"] * 0.1)
    endless, _ = settle_steps(MixtureFlags(ratio=0.5), FineTuneSettings(
        output_dir="", train_batch_size=4, num_train_epochs=3.0, learning_rate_schedule="constant"),
        list(case["sizes"].values()), does_evaluate=True)
    assert endless == dataclasses.replace(
        settings, learning_rate_schedule="constant", schedule_steps=0)
    plain, _ = settle_steps(MixtureFlags(), FineTuneSettings(output_dir="", num_warmup_steps=0),
                            [8, 8], does_evaluate=True)
    assert plain.num_warmup_steps == 0
    assert order.steps_of_epoch * 3 == settings.num_train_steps == 39


def test_an_order_has_as_many_steps_as_were_asked_for():
    for steps in (30, 61, 122, 563, 564):       # 30 / 563 * 563 is less than 30 in float64
        settings, order = settle_steps(
            MixtureFlags(), FineTuneSettings(output_dir="", num_train_steps=steps),
            [8551, 3668, 5749], does_evaluate=False)
        assert len(order.steps()) == settings.num_train_steps == steps


# The flags that --grid gives values of its own, at their defaults.
TRIED = {name: getattr(FineTuneSettings, name)
         for name in ("train_batch_size", "learning_rate", "num_train_epochs")}


@pytest.mark.parametrize("changes, part", [
    ({"tasks": ["mood", "mood"]}, "--tasks names mood 2 times"),
    ({"tasks": ["mood", "sonnets"]}, "there is no task 'sonnets'"),
    ({"tasks": ["cola"]}, "no folder cola for the task cola"),
    ({"best_of": ["cola"]}, "--best_of names cola"),
    ({"rows": {"mood": {**ROWS["mood"], "weight": 2}}}, "the row of mood has weight"),
    ({"rows": {"mood": {**ROWS["mood"], "train_file": ""}}}, "task mood: --do_train needs"),
    ({"rows": {"mood": {**ROWS["mood"], "train_file": "no.csv"}}}, "task mood: there is no no.csv"),
    ({"rows": {"mood": {**ROWS["mood"], "dev_file": "other.csv"}}, "answer_num_turn": None},
     "label 'w' is none of x, z"),
    ({"rows": {"mood": {**ROWS["mood"], "loss_weight": "x"}}}, "loss_weight is 'x'"),
    ({"rows": {"mood": {**ROWS["mood"], "loss_weight": 0}}},
     "the row of mood: --loss_weight is 0.0; it must be above 0."),
    ({"rows": {"mood": {**ROWS["mood"], "task_kind": "multi_label"}}}, "can't be trained together"),
    ({"grid": True, **TRIED}, "--grid is for one task"), ({"answer_num_turn": -1}, "_turn is -1"),
    ({"rows": {"mood": {**ROWS["mood"], "answer_opt": 1}}}, "has answer_opt, which is for pairs"),
    ({"rows": {"mood": ROWS["mood"]}}, "--answer_num_turn is for stochastic answer networks"),
    ({"ratio": 1.0, "task_sampling": "temperature"}, "there is no --ratio with"),
    ({"do_train": False}, "there is no model.keras"),
])
def test_what_cannot_work_is_refused(run, tmp_path, changes, part):
    with pytest.raises(InputError, match=part):
        run("refused", **changes)
    assert not (tmp_path / "refused" / "model.keras").exists()


def test_nothing_to_predict_is_said(run):
    out = run(rows={"rating": ROWS["rating"]}, answer_num_turn=None)
    for output, changes in ((out.name, {}), ("other", {"init_checkpoint": str(out)})):
        with pytest.raises(InputError, match="--do_predict: none of the tasks has a test file"):
            run(output, rows={"rating": ROWS["rating"]}, answer_num_turn=None, do_train=False,
                do_eval=False, do_predict=True, **changes)


def test_a_task_reads_long_texts_in_windows(folder, tmp_path):
    """Its model answers as that of one task does."""
    long = {"train_file": "long.csv", "dev_file": "long.csv", "long_text": "mean", **COLUMNS}
    rows = {"long": long, "same": {**ROWS["same"], "long_text": "max"}}
    rng = random.Random(3)
    texts = [" ".join(rng.choices(WORDS, k=count)) for count in (3, 20, 7, 14)]
    write_csv(folder / "long.csv", [("a", "y"), *zip(texts, "xzxz")])
    (tmp_path / "tasks.json").write_text(json.dumps(rows))
    flags = ModelFlags(do_train=True, do_eval=True, vocab_file=str(folder / "vocab.txt"),
                       bert_config_file=str(folder / "config.json"), max_seq_length=8,
                       num_workers=1)
    out = tmp_path / "out"
    finetune.main(
        MixtureFlags(task_config_path=str(tmp_path / "tasks.json"), data_dir=str(folder)), flags,
        FineTuneSettings(output_dir=str(out), train_batch_size=16, num_train_epochs=1.0))
    records = json.loads((out / "records" / "long" / "train.manifest.json").read_text())
    assert records["counts"]["examples"] == 4 and records["counts"]["records"] == 1 + 5 + 2 + 3
    found = [json.loads(line)["probabilities"] for line in
             (out / "tasks" / "long" / "dev_predictions.jsonl").read_text().splitlines()]
    alone = bert_tf.Predictor(str(out), task="long")(texts)
    for one, other in zip(found, alone, strict=True):
        assert one == pytest.approx(other["probabilities"], abs=2e-6)
    assert len(bert_tf.Predictor(str(out), task="same")([("good film", "film " * 9)])) == 1

    (tmp_path / "tasks.json").write_text(json.dumps({"mrpc": {"long_text": ["mean"]}}))
    with pytest.raises(InputError, match="row of mrpc: long_text is .'mean'.; it must be a text"):
        MixtureFlags(task_config_path=str(tmp_path / "tasks.json")).rows()
    (folder / "tags.txt").write_text("good B-X\nfilm O\n\nbad B-X\n")
    (tmp_path / "tasks.json").write_text(json.dumps({"long": {
        "train_file": "tags.txt", "dev_file": "tags.txt", "task_kind": "tagging",
        "label_column": "1", "long_text": "mean"}}))
    with pytest.raises(InputError, match="task long: --long_text=mean is not for tagging"):
        finetune.main(
            MixtureFlags(task_config_path=str(tmp_path / "tasks.json"), data_dir=str(folder)),
            flags, FineTuneSettings(output_dir=str(tmp_path / "other")))


def test_a_guest_of_several_test_files_is_one(monkeypatch):
    """Each file is answered once."""
    task = TASKS["xnli-translate-test"]
    splits = [split for split in task.splits if split.startswith("test")]
    files = RunSplits({split: Source(task, split, "") for split in splits}, [], splits)
    monkeypatch.setattr(mixture, "_find", lambda *given: files)
    host = Member(TASKS["xnli"], None, {}, files, None, FineTuneSettings(output_dir=""))
    guest, = mixture.find_guests(None, ModelFlags(do_predict=True), [host])
    assert guest.name == task.name and guest.predicted_splits == splits and len(splits) > 1
