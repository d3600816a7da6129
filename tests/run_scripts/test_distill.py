"""Several models that answer together, and students that learn from stored answers."""

import dataclasses
import json
import random

import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf.compression import teachers
from bert_tf.data import ExampleSet
from bert_tf.errors import InputError
from bert_tf.tasks.task_flags import TaskFlags
from bert_tf.training.settings import FineTuneSettings
from run_scripts import distill, run_classifier, run_multitask, run_tagger
from run_scripts.finetuning.model import ModelFlags
from run_scripts.finetuning.multitask import MixtureFlags
from tests.training import tiny

pytestmark = pytest.mark.usefixtures("eagerly")
WORDS = ["good", "fine", "bad", "poor", "a", "film", "was", "the", "seen"]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PIECES = [*"gofineadpurlmwsth", *(f"##{letter}" for letter in "gofineadpurlmwsth")]


def texts(seed, count):
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=rng.randint(3, 9))) for _ in range(count)]


def table(path, seed, count, labelled=True):
    lines = [f"{text}\t{'yes' if 'good' in text else 'no'}" if labelled else text
             for text in texts(seed, count)]
    path.write_text("\n".join(["text\tlabel" if labelled else "text", *lines]) + "\n")


@pytest.fixture(name="data", scope="module")
def fixture_data(tmp_path_factory):
    """Two vocabularies, one of words and one of letters, and files to classify and to tag."""
    folder = tmp_path_factory.mktemp("distill")
    for name, tokens in (("words", WORDS), ("letters", PIECES)):
        tokens = [*SPECIAL, *tokens]
        padding = [f"[unused{i}]" for i in range(tiny.VOCAB - len(tokens))]
        (folder / f"{name}.txt").write_text("\n".join([*tokens, *padding]) + "\n")
    tiny.config(num_hidden_layers=2, max_position_embeddings=40).to_json_file(folder / "big.json")
    tiny.config(num_hidden_layers=1, hidden_size=16, num_attention_heads=2,
                max_position_embeddings=40).to_json_file(folder / "small.json")
    table(folder / "train.tsv", 1, 24)
    table(folder / "dev.tsv", 2, 10)
    (folder / "more.txt").write_text("\n".join(texts(3, 7)) + "\n")
    for split, seed, count in (("train", 4, 10), ("dev", 5, 5)):
        (folder / f"tags_{split}.txt").write_text("\n".join(
            "".join(f"{word} {'B-X' if word in ('good', 'bad') else 'O'}\n"
                    for word in text.split()) for text in texts(seed, count)))
    return folder


SETTINGS = {"train_batch_size": 8, "num_train_epochs": 1.0, "learning_rate": 1e-2}
TABLES = {"train_file": "train.tsv", "dev_file": "dev.tsv", "text_a_column": "text",
          "label_column": "label"}


def train(script, data, vocabulary, folder, files, seed):
    script.main(
        TaskFlags(data_dir=str(data), **files),
        ModelFlags(do_train=True, do_eval=True, vocab_file=str(data / f"{vocabulary}.txt"),
                   bert_config_file=str(data / "big.json"), max_seq_length=40, num_workers=1),
        *([run_tagger.HeadFlags()] if script is run_tagger else []),
        FineTuneSettings(output_dir=str(folder), random_seed=seed, **SETTINGS))
    return str(folder)


@pytest.fixture(name="models", scope="module")
def fixture_models(data, tmp_path_factory):
    """Two classifiers, whose tokenizers differ."""
    tf.config.run_functions_eagerly(True)
    found = [train(run_classifier, data, vocabulary, tmp_path_factory.mktemp("model"), TABLES, seed)
             for seed, vocabulary in enumerate(("words", "letters"))]
    tf.config.run_functions_eagerly(False)
    return found


def predictions(folder):
    with open(f"{folder}/dev_predictions.jsonl", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def test_models_that_answer_together_give_the_mean_of_their_probabilities(data, models, tmp_path):
    run_classifier.main(
        TaskFlags(data_dir=str(data), **TABLES),
        ModelFlags(do_eval=True, ensemble=models, num_workers=1),
        FineTuneSettings(output_dir=str(tmp_path)))
    first, second = map(predictions, models)
    for found, *own in zip(predictions(tmp_path), first, second, strict=True):
        expected = {label: np.mean([one["probabilities"][label] for one in own])
                    for label in ("no", "yes")}
        assert found["probabilities"] == pytest.approx(expected, abs=2e-6)
        assert found["label"] == max(expected, key=expected.get)
    metrics = json.loads((tmp_path / "metrics.json").read_text())["metrics"]
    right = np.mean([found["label"] == ("yes" if "good" in text else "no")
                     for found, text in zip(predictions(tmp_path), texts(2, 10))])
    assert metrics["dev/accuracy"] == pytest.approx(right)


def test_taggers_with_other_tokenizers_answer_together(data, tmp_path):
    files = {"train_file": "tags_train.txt", "dev_file": "tags_dev.txt", "label_column": "1"}
    models = [train(run_tagger, data, vocabulary, tmp_path / vocabulary, files, seed)
              for seed, vocabulary in enumerate(("words", "letters"))]
    found = [teachers.Teacher(folder) for folder in models]
    task = dataclasses.replace(found[0].saved.task)
    examples = [task.kind.example(text, 0) for text in texts(5, 5)]
    likely = np.mean([one.answer(task, examples)["probabilities"] for one in found], 0)
    run_tagger.main(TaskFlags(data_dir=str(data), **files),
                    ModelFlags(do_eval=True, ensemble=models, num_workers=1),
                    run_tagger.HeadFlags(), FineTuneSettings(output_dir=str(tmp_path / "both")))
    tags = [tag for line in predictions(tmp_path / "both") for tag in line["tags"]]
    assert tags == [task.labels[index] for index in likely.argmax(-1)]

    distill.main(
        distill.DistillFlags(
            teacher=models[1:], student=str(data / "small.json"), recipe="minibert",
            vocab_file=str(data / "words.txt"), transfer_file=[str(data / "tags_dev.txt")]),
        TaskFlags(data_dir=str(data), **files),
        FineTuneSettings(output_dir=str(tmp_path / "small"), **SETTINGS))
    records = ExampleSet(str(tmp_path / "small" / "records" / "train.manifest.json"))
    batch = records.batch(np.arange(records.size), records.max_seq_length)
    is_word = batch["label_weights"] > 0
    expected = found[1].answer(task, [task.kind.example(text, 0) for text in [
        *texts(4, 10), *texts(5, 5)]])["logits"]
    assert np.allclose(np.moveaxis(batch["teacher_logits"], 1, 2)[is_word], expected, atol=1e-5)
    assert batch["is_labelled"][is_word].sum() == len(" ".join(texts(4, 10)).split())


def distilled(data, models, folder, **changes):
    distill.main(
        distill.DistillFlags(**{
            "teacher": models, "student": str(data / "small.json"), "recipe": "mtdnn_kd",
            "transfer_file": [str(data / "more.txt")], "vocab_file": str(data / "words.txt"),
            **changes}),
        TaskFlags(data_dir=str(data), **TABLES),
        FineTuneSettings(output_dir=str(folder), **SETTINGS))
    return ExampleSet(str(folder / "records" / "train.manifest.json"))


def test_a_student_learns_from_the_mean_of_its_teachers(data, models, tmp_path, monkeypatch):
    monkeypatch.setattr(teachers.TaughtRecords, "shard_examples", 16)
    records = distilled(data, models, tmp_path)
    wanted = [*texts(1, 24), *texts(3, 7)]
    assert records.size == len(wanted)
    batch = records.batch(np.arange(records.size), records.max_seq_length)
    assert batch["is_labelled"][:, 0].tolist() == [1] * 24 + [0] * 7
    likely = np.mean([[list(found["probabilities"].values()) for found in bert_tf.Predictor(
        folder)(wanted)] for folder in models], 0)
    assert np.allclose(tf.nn.softmax(batch["teacher_logits"]), likely, atol=2e-6)
    answer = bert_tf.Predictor(str(tmp_path))("a good film")
    assert answer.keys() == {"label", "probabilities"}


def test_labelling_goes_on_where_it_was_killed(data, models, tmp_path, monkeypatch):
    monkeypatch.setattr(teachers.TaughtRecords, "shard_examples", 16)
    answer, calls = teachers.Teacher.answer, []

    def stops(self, task, examples):
        calls.append(len(examples))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return answer(self, task, examples)

    monkeypatch.setattr(teachers.Teacher, "answer", stops)
    with pytest.raises(KeyboardInterrupt):
        distilled(data, models[:1], tmp_path)
    records = distilled(data, models[:1], tmp_path)
    assert calls == [16, 15, 15]
    whole = distilled(data, models[:1], tmp_path / "whole")
    rows = np.arange(whole.size)
    for name, values in whole.batch(rows, whole.max_seq_length).items():
        assert (values == records.batch(rows, whole.max_seq_length)[name]).all(), name


def test_a_model_of_several_tasks_learns_from_their_teachers(data, models, tmp_path, capsys):
    files = {**TABLES, "data_dir": str(data)}
    (tmp_path / "tasks.json").write_text(json.dumps(
        {"taught": {**files, "teachers": models}, "plain": files}))
    run_multitask.main(
        MixtureFlags(task_config_path=str(tmp_path / "tasks.json")),
        ModelFlags(do_train=True, do_eval=True, vocab_file=str(data / "words.txt"),
                   bert_config_file=str(data / "small.json"), max_seq_length=40, num_workers=1),
        FineTuneSettings(output_dir=str(tmp_path / "out"), **SETTINGS))
    assert "taught_soft loss" in capsys.readouterr().out
    assert set(bert_tf.Predictor(str(tmp_path / "out"), task="taught")("good")) == {
        "label", "probabilities"}


@pytest.mark.parametrize("changes, message", [
    ({"recipe": "pkd"}, "compares vectors of layers"),
    ({"patience_layers": "last"}, "compares no layers"),
    ({"train_examples": False, "transfer_file": []}, "nothing to learn from"),
    ({"teacher": ["nowhere"]}, "--teacher: there is no task.json in .nowhere."),
    ({"distill_temperature": 0.0}, "temperature"),
    ({"student_layers": ["0"]}, "--student_layers takes layers"),
])
def test_what_cannot_be_distilled_is_refused(data, models, tmp_path, changes, message):
    with pytest.raises(InputError, match=message):
        distilled(data, models[:1], tmp_path, **changes)
