"""Several models that answer together, and students that learn from stored answers."""

import dataclasses
import functools
import json
import random
import shutil
import types

import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf import networks
from bert_tf.compression import students, taught_records, teachers
from bert_tf.compression.teachers import InStep
from bert_tf.compression.transfer import TransferSource
from bert_tf.config import XLNetConfig
from bert_tf.data import ExampleSet
from bert_tf.errors import InputError
from bert_tf.finetuning.mixture import MixtureFlags
from bert_tf.finetuning.model import ModelFlags
from bert_tf.opening import open_model
from bert_tf.recipes import find_distillation
from bert_tf.tasks.reading import Example
from bert_tf.tasks.saved_task import SavedTask
from bert_tf.tasks.split_records import RecordOptions
from bert_tf.tasks.task_flags import SquadFlags, TaskFlags
from bert_tf.tokenization import open_tokenizer
from bert_tf.tokenization.vocabulary import Layout
from bert_tf.training.settings import FineTuneSettings
from run_scripts import distill, finetune, quantise_model
from run_scripts.finetuning import teaching
from tests.run_scripts.test_run_squad import VOCABULARY, squad_json
from tests.training import tiny

pytestmark = pytest.mark.usefixtures("all_eagerly")
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


SETTINGS = {"train_batch_size": 24, "num_train_epochs": 1.0, "learning_rate": 1e-2}
TABLES = {"train_file": "train.tsv", "dev_file": "dev.tsv", "text_a_column": "text",
          "label_column": "label"}


def train(data, vocabulary, folder, files, seed):
    finetune.main(
        TaskFlags(data_dir=str(data), **files),
        ModelFlags(do_train=True, do_eval=True, vocab_file=str(data / f"{vocabulary}.txt"),
                   bert_config_file=str(data / "big.json"), max_seq_length=40, num_workers=1),
        FineTuneSettings(output_dir=str(folder), random_seed=seed, **SETTINGS))
    return str(folder)


def train_two(data, tmp_path_factory, files):
    """Two models, whose tokenizers differ."""
    return [train(data, vocabulary, tmp_path_factory.mktemp("model"), files, seed)
            for seed, vocabulary in enumerate(("words", "letters"))]


@pytest.fixture(name="models", scope="module")
def fixture_models(data, tmp_path_factory):
    """Two classifiers."""
    return train_two(data, tmp_path_factory, TABLES)


def predictions(folder):
    with open(f"{folder}/dev_predictions.jsonl", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def test_models_that_answer_together_give_the_mean_of_their_probabilities(data, models, tmp_path):
    finetune.main(
        TaskFlags(data_dir=str(data), **TABLES),
        ModelFlags(do_eval=True, ensemble=models, num_workers=1),
        FineTuneSettings(output_dir=str(tmp_path)))
    first, second = map(predictions, models)
    for found, *own in zip(predictions(tmp_path), first, second, strict=True):
        expected = {label: np.mean([one["probabilities"][label] for one in own])
                    for label in ("no", "yes")}
        assert found["probabilities"] == pytest.approx(expected, rel=2e-6, abs=2e-6)
        assert found["label"] == max(expected, key=expected.get)
    metrics = json.loads((tmp_path / "metrics.json").read_text())["metrics"]
    right = np.mean([found["label"] == ("yes" if "good" in text else "no")
                     for found, text in zip(predictions(tmp_path), texts(2, 10))])
    assert metrics["dev/accuracy"] == pytest.approx(right)


TAGS = {"train_file": "tags_train.txt", "dev_file": "tags_dev.txt", "label_column": "1"}


@pytest.fixture(name="taggers", scope="module")
def fixture_taggers(data, tmp_path_factory):
    return train_two(data, tmp_path_factory, TAGS)


def test_taggers_with_other_tokenizers_answer_together(data, taggers, tmp_path):
    files, models = TAGS, taggers
    found = [teachers.Teacher(folder) for folder in models]
    task = dataclasses.replace(found[0].saved.task)
    examples = [task.kind.example(text, 0) for text in texts(5, 5)]
    likely = np.mean([one.answer(task, examples)["probabilities"] for one in found], 0)
    turned = found[0].answer(dataclasses.replace(task, labels=task.labels[::-1]), examples)
    assert (turned["logits"] == found[0].answer(task, examples)["logits"][:, ::-1]).all()
    finetune.main(TaskFlags(data_dir=str(data), **files),
                    ModelFlags(do_eval=True, ensemble=models, num_workers=1),
                    FineTuneSettings(output_dir=str(tmp_path / "both")))
    tags = [tag for line in predictions(tmp_path / "both") for tag in line["tags"]]
    assert tags == [task.labels[index] for index in likely.argmax(-1)]

    (tmp_path / "brat").mkdir()
    (tmp_path / "brat" / "dev.ann").touch()
    (tmp_path / "brat" / "dev.txt").write_text("\n".join(texts(5, 5)))
    distill.main(
        distill.DistillFlags(
            teacher=models[1:], student=str(data / "small.json"), recipe="minibert",
            vocab_file=str(data / "words.txt"), transfer_file=[str(tmp_path / "brat")],
            max_seq_length=8),
        TaskFlags(data_dir=str(data), **files),
        FineTuneSettings(output_dir=str(tmp_path / "small"), **SETTINGS))
    records = ExampleSet(str(tmp_path / "small" / "records" / "train.manifest.json"))
    batch = records.batch(np.arange(records.size), records.max_seq_length)
    assert records.size > len([*texts(4, 10), *texts(5, 5)])        # some have several windows
    is_word = batch["label_weights"] > 0
    expected = found[1].answer(task, [task.kind.example(text, 0) for text in [
        *texts(4, 10), *texts(5, 5)]])["logits"]
    assert np.allclose(np.moveaxis(batch["teacher_logits"], 1, 2)[is_word], expected, atol=1e-5)
    assert batch["is_labelled"][is_word].sum() == len(" ".join(texts(4, 10)).split())


def distilled(data, models, folder, settings=None, task_flags=None, **changes):
    distill.main(
        distill.DistillFlags(**{
            "teacher": models, "student": str(data / "small.json"), "recipe": "mtdnn_kd",
            "transfer_file": [str(data / "more.txt")], "vocab_file": str(data / "words.txt"),
            **changes}),
        task_flags or TaskFlags(data_dir=str(data), **TABLES),
        FineTuneSettings(output_dir=str(folder), **{**SETTINGS, **(settings or {})}))
    return ExampleSet(str(folder / "records" / "train.manifest.json"))


def test_a_student_learns_from_the_mean_of_its_teachers(data, models, tmp_path, monkeypatch):
    monkeypatch.setattr(taught_records.TaughtRecords, "shard_examples", 16)
    records = distilled(data, models, tmp_path)
    wanted = [*texts(1, 24), *texts(3, 7)]
    assert records.size == len(wanted)
    batch = records.batch(np.arange(records.size), records.max_seq_length)
    assert batch["is_labelled"][:, 0].tolist() == [1] * 24 + [0] * 7
    likely = np.mean([[list(found["probabilities"].values()) for found in bert_tf.Predictor(
        folder)(wanted)] for folder in models], 0)
    assert np.allclose(tf.nn.softmax(batch["teacher_logits"]), likely, atol=2e-6)
    assert "fine-tuned for classification" in (tmp_path / "README.md").read_text()
    answer = bert_tf.Predictor(str(tmp_path))("a good film")
    assert answer.keys() == {"label", "probabilities"}


def test_a_student_answers_with_the_values_of_its_teachers_labels(data, models, tmp_path):
    teacher = shutil.copytree(models[0], tmp_path / "teacher")
    saved = SavedTask.read(str(teacher))
    dataclasses.replace(saved, task=dataclasses.replace(
        saved.task, label_values=(0, 1))).write(str(teacher))       # of no and yes
    distilled(data, [str(teacher)], tmp_path / "student", {"num_train_steps": 1}, TaskFlags(
        data_dir=str(data), **TABLES, labels=["yes", "no"]))
    assert SavedTask.read(str(tmp_path / "student")).task.answers == (1, 0)


@pytest.mark.parametrize("way, own", [("mean", None), (None, "mean"), ("mean", "truncate")])
def test_windows_of_a_text_learn_the_answer_to_the_whole_text(data, models, tmp_path, way, own):
    """Teachers and student may each read windows; the student does so by default if they do."""
    folder = str(tmp_path / "teacher")
    shutil.copytree(models[0], folder)
    saved = SavedTask.read(folder)
    dataclasses.replace(saved, max_seq_length=8,
                        options={"long_text": way} if way else {}).write(folder)
    records = distilled(data, [folder], tmp_path / "out",
                        task_flags=TaskFlags(data_dir=str(data), **TABLES, long_text=own))
    wanted = [*texts(1, 24), *texts(3, 7)]
    batch = records.batch(np.arange(records.size), records.max_seq_length)
    counts = [1 if len(text.split()) <= 6 or own == "truncate" else 2 for text in wanted]
    assert records.size == sum(counts) and (own == "truncate" or records.size > len(wanted))
    likely = [list(found["probabilities"].values()) for found in bert_tf.Predictor(folder)(wanted)]
    assert np.allclose(tf.nn.softmax(batch["teacher_logits"]), np.repeat(likely, counts, 0),
                       atol=2e-6)
    assert batch["is_labelled"][:, 0].sum() == sum(counts[:24])
    found = SavedTask.read(str(tmp_path / "out")).options
    assert found.get("long_text", "truncate") == (own or way)
    assert len(predictions(tmp_path / "out")) == 10
    message = ("several .CLS. vectors per example" if way else
               f"with --long_text={found['long_text']} the student has several")
    with pytest.raises(InputError, match=message):
        distilled(data, [folder], tmp_path / "pkd", recipe="pkd", student=models[0],
                  task_flags=TaskFlags(data_dir=str(data), **TABLES, long_text=own))


@pytest.mark.parametrize("given, kept, teacher, expected", [
    (None, None, "head_tail", "head_tail"), ("max", None, "mean", "max"), (None, {}, "mean", None),
    (None, {"long_text": "max"}, "mean", "max"), ("truncate", None, "mean", "truncate")])
def test_students_that_were_begun_read_texts_as_before(models, given, kept, teacher, expected):
    saved = SavedTask.read(models[0])
    begun = kept if kept is None else dataclasses.replace(saved, options=kept)
    found = distill._long_text(TaskFlags(long_text=given),
                               dataclasses.replace(saved, options={"long_text": teacher}), begun)
    assert found == expected


def test_a_bilstm_begins_with_word_vectors(data, models, tmp_path, capsys):
    """With next to no training, its embeddings are those of the file."""
    sizes = {"model_type": "bilstm", "vocab_size": tiny.VOCAB, "embedding_size": 5, "lstm_size": 3,
             "hidden_size": 4, "pairs": False}
    (tmp_path / "bilstm.json").write_text(json.dumps(sizes))
    known = WORDS[::2]
    vectors = dict(zip(known, np.random.default_rng(2).normal(2, 1, (len(known), 5)).round(3)))
    (tmp_path / "vectors.txt").write_text(f"{len(known)} 5\n" + "".join(
        f"{word} {' '.join(map(str, row))}\n" for word, row in vectors.items()))
    flags = {"student": str(tmp_path / "bilstm.json"), "recipe": "bilstm_soft",
             "augmentation": "none", "word_vectors": str(tmp_path / "vectors.txt")}
    distilled(data, models[:1], tmp_path / "out", {"learning_rate": 1e-7}, **flags)
    table = open_model(str(tmp_path / "out")).network().embedding_table.numpy()
    tokens = (data / "words.txt").read_text().split("\n")[:-1]
    for token, row in zip(tokens, table, strict=True):
        assert (np.allclose(row, vectors[token], atol=1e-4) if token in vectors
                else np.abs(row).max() < 0.251)
    assert f"vectors of {len(known)} of {tiny.VOCAB} tokens" in capsys.readouterr().out
    for changes, message in (
            ({"student": str(data / "small.json")}, "--word_vectors is for"),
            ({"word_vectors": str(data / "words.txt")}, "--word_vectors: .* line 1")):
        with pytest.raises(InputError, match=message):
            distilled(data, models[:1], tmp_path / "other", **{**flags, **changes})


def test_labelling_goes_on_where_it_was_killed(data, models, tmp_path, monkeypatch):
    monkeypatch.setattr(taught_records.TaughtRecords, "shard_examples", 16)
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


def test_teachers_that_read_documents_read_whole_ones(data, taggers, tmp_path, monkeypatch):
    """Their student may read sentence by sentence."""
    monkeypatch.setattr(taught_records.TaughtRecords, "shard_examples", 2)
    shutil.copytree(taggers[0], tmp_path / "teacher")
    saved = SavedTask.read(str(tmp_path / "teacher"))
    dataclasses.replace(saved, options={**saved.options, "document_context": True}).write(
        str(tmp_path / "teacher"))
    teacher = teachers.Teacher(str(tmp_path / "teacher"))
    (tmp_path / "tags.txt").write_text("".join(
        "-DOCSTART- O\n\n" * (number in (0, 3)) + "".join(
            f"{word} O\n" for word in text.split()) + "\n"
        for number, text in enumerate(texts(6, 5))))
    flags = TaskFlags(task_kind="tagging", train_file=str(tmp_path / "tags.txt"),
                      label_column="1", labels=list(saved.task.labels))
    source = flags.find(flags.read_task(), True, False, False).sources["train"]
    own = {field.name: getattr(source, field.name) for field in dataclasses.fields(source)}

    def records():
        return taught_records.TaughtRecords(
            TransferSource(**own), RecordOptions(40), open_tokenizer(str(tmp_path / "teacher")),
            str(tmp_path / "records"), teachers.Teachers((teacher,)))

    def answers():
        found = ExampleSet(str(tmp_path / "records" / "train.manifest.json"))
        batch = found.batch(np.arange(found.size), found.max_seq_length)
        return np.moveaxis(batch["teacher_logits"], 1, 2)[batch["label_weights"] > 0]

    (tmp_path / "records").mkdir()
    with monkeypatch.context() as earlier:
        earlier.setattr(teachers.Teachers, "read_documents", False)
        records().make()
    before = answers()
    made, was_there = records().make()
    expected = teacher.answer(source.task, list(source.examples()))["logits"]
    assert not was_there and made["fingerprint"]["pieces"] == [3, 2]
    assert np.allclose(answers(), expected, atol=1e-6)
    assert np.abs(before - expected).max() > 1e-5


def test_a_model_of_several_tasks_learns_from_their_teachers(data, models, taggers, tmp_path,
                                                             capsys):
    files, tags = ({**one, "data_dir": str(data)} for one in (TABLES, TAGS))
    tags |= {"task_kind": "tagging", "teachers": taggers[1], "distillation": "minibert"}
    (tmp_path / "tasks.json").write_text(json.dumps(
        {"taught": {**files, "teachers": models}, "tags": tags, "plain": files}))
    finetune.main(
        MixtureFlags(task_config_path=str(tmp_path / "tasks.json")),
        ModelFlags(do_train=True, do_eval=True, vocab_file=str(data / "words.txt"),
                   bert_config_file=str(data / "small.json"), max_seq_length=40, num_workers=1),
        FineTuneSettings(output_dir=str(tmp_path / "out"), **SETTINGS))
    said = capsys.readouterr().out
    assert all(f"{name}_soft loss" in said for name in ("taught", "tags"))
    assert len(predictions(tmp_path / "out" / "tasks" / "tags")) == 5
    assert len(bert_tf.Predictor(str(tmp_path / "out"), task="tags")("good film")["tags"]) == 2
    assert set(bert_tf.Predictor(str(tmp_path / "out"), task="taught")("good")) == {
        "label", "probabilities"}


def test_smoothness_without_gold_labels_is_refused(data, models, taggers, tmp_path):
    smart = {"adv_train": "smart", "adv_noise_var": 0.01}
    for recipe in ("tinybert", "pre_trained", "minibert", "bilstm_soft", "tinybert_layers"):
        with pytest.raises(InputError, match="give --gold_weight above 0"):
            distilled(data, models, tmp_path / "out", smart, recipe=recipe)
    tags = {**TAGS, "data_dir": str(data), "task_kind": "tagging", "teachers": taggers[1],
            "distillation": "minibert"}
    (tmp_path / "tasks.json").write_text(json.dumps({"tags": tags, "others": tags}))
    with pytest.raises(InputError, match="weight is 0 in minibert; give"):
        finetune.main(
            MixtureFlags(task_config_path=str(tmp_path / "tasks.json")),
            ModelFlags(do_train=True, vocab_file=str(data / "words.txt"),
                       bert_config_file=str(data / "small.json"), max_seq_length=40),
            FineTuneSettings(output_dir=str(tmp_path / "out"), **SETTINGS, **smart))
    assert not (tmp_path / "out").exists()


def test_tinybert_learns_layers_and_then_predictions(data, models, tmp_path):
    def encoder(folder):
        return bert_tf.open_model(str(folder)).network().get_weights()

    layers, small = tmp_path / "layers", tmp_path / "small"
    teach = functools.partial(distilled, data, models[:1], layers, {
        "num_train_epochs": 5.0, "iterations_per_loop": 1, "train_batch_size": 31},
        recipe="tinybert_layers")
    teach()
    lines = [json.loads(line) for line in (layers / "metrics.jsonl").read_text().splitlines()]
    for name in ("attention_transfer", "hidden_transfer"):
        losses = [line[f"{name}/loss"] for line in lines if f"{name}/loss" in line]
        assert len(losses) == 5 and losses[-1] < losses[0]
    assert not (layers / "metrics.json").exists()           # the head has not learned
    for use in (bert_tf.Predictor, lambda folder: teachers.Teacher(folder)):
        with pytest.raises(InputError, match="there is no task.json"):
            use(str(layers))
    before = (layers / "model.keras").read_bytes()
    teach()         # the same command again
    assert (layers / "model.keras").read_bytes() == before
    distilled(data, models[:1], small, {"num_train_steps": 1, "learning_rate": 0.0},
              recipe="tinybert", student=str(layers))
    assert all(map(np.array_equal, encoder(layers), encoder(small)))
    # Its head, which learned from the teacher alone, goes on to learn from labels.
    assert bert_tf.open_model(str(small), finetuned=True).learner().objectives[0].loss_weight == 1
    *_, line = (small / "metrics.jsonl").read_text().splitlines()
    # The loss of the labels, which do not count in this training.
    assert json.loads(line)["loss"] == json.loads(
        (small / "metrics.json").read_text())["metrics"]["loss"] > 0.5
    assert {"label", "probabilities"} == bert_tf.Predictor(str(small))("a good film").keys()


def test_internal_distillation_learns_layers_in_phases(data, models, tmp_path, capsys):
    layers, student = tmp_path / "layers", str(tmp_path / "student.json")
    with pytest.raises(InputError, match="16 wide and --teacher=.* is 32 wide; set"):
        distilled(data, models[:1], layers, recipe="internal")
    config = bert_tf.open_model(models[0], finetuned=True).config
    dataclasses.replace(config, intermediate_size=8).to_json_file(student)

    def losses(recipe):
        distilled(data, models[:1], layers / recipe, {
            "num_train_steps": 4, "iterations_per_loop": 1, "train_batch_size": 31},
            recipe=recipe, phase_steps=2, student=student)
        lines = [json.loads(line)
                 for line in (layers / recipe / "metrics.jsonl").read_text().splitlines()]
        return ([line[f"internal_{name}/loss"] for line in lines
                 if f"internal_{name}/loss" in line] for name in ("attention", "cosine"))

    (alone, cosine), (stacked, _) = losses("internal"), losses("internal_stacked")
    assert len(cosine) == 4 and max(cosine) <= 2 and cosine[1] < cosine[0]      # of a single layer
    assert min(alone) > 0 and stacked[:2] == alone[:2] and stacked[2] > alone[2]
    assert not (layers / "internal" / "metrics.json").exists()      # the head has not learned
    card = (layers / "internal" / "README.md").read_text()
    assert "Its head is not trained and can't predict yet" in card and "Predictor" not in card
    assert "give this folder as `--student`" in capsys.readouterr().out


@pytest.fixture(name="answering", scope="module")
def fixture_answering(tmp_path_factory):
    """A folder with SQuAD files, a vocabulary, and a model that has begun to learn them."""
    folder = tmp_path_factory.mktemp("answering")
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
    (folder / "v1.json").write_text(json.dumps(squad_json(1)))
    tiny.config(vocab_size=len(VOCABULARY), max_position_embeddings=32).to_json_file(
        folder / "config.json")
    finetune.main(
        SquadFlags(train_file=str(folder / "v1.json"), doc_stride=8, max_query_length=8),
        ModelFlags(do_train=True, bert_config_file=str(folder / "config.json"), max_seq_length=16,
                   vocab_file=str(folder / "vocab.txt"), num_workers=1),
        FineTuneSettings(output_dir=str(folder / "teacher"), **SETTINGS))
    return folder


def answering_student(folder, output, files=None, **changes):
    distill.main(
        distill.DistillFlags(**{
            "teacher": [str(folder / "teacher")], "student": str(folder / "teacher"),
            "student_layers": ["1"], **changes}),
        TaskFlags(data_dir=str(folder), train_file="v1.json", dev_file="v1.json", **(files or {})),
        FineTuneSettings(output_dir=str(output), **SETTINGS))


def test_a_student_finds_answers(answering, tmp_path):
    answering_student(answering, tmp_path)
    records = ExampleSet(str(tmp_path / "records" / "train.manifest.json"))
    assert records.size > 8                 # questions are cut into windows as the teacher's were
    batch = records.batch(np.arange(records.size), records.max_seq_length)
    learner = bert_tf.open_model(str(answering / "teacher"), finetuned=True).learner()
    expected = learner({name: tf.constant(value) for name, value in batch.items()})["answer_span"]
    found, mask = batch["teacher_logits"], batch["input_mask"][:, None] > 0
    assert found.shape == (records.size, 2, 16)
    assert np.allclose(np.where(mask, found, 0), np.where(mask, expected, 0), atol=1e-5)
    scores = json.loads((tmp_path / "metrics.json").read_text())["metrics"]
    assert {"squad/f1", "squad/exact_match"} <= scores.keys()
    assert bert_tf.open_model(str(tmp_path), finetuned=True).learner().encoder.config.depth == 1


def test_a_student_is_not_written_where_another_run_is_at_work(answering, hold, tmp_path):
    (tmp_path / "out").mkdir()
    holder = hold(tmp_path / "out")
    with pytest.raises(InputError, match=f"--output_dir: process {holder.pid} .* is at work on"):
        answering_student(answering, tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == [".lock"]


@pytest.mark.parametrize("changes, message", [
    ({"vocab_file": "other.txt", "student": "config.json", "student_layers": []},
     "and the student have different tokenizers"),
    ({"transfer_file": [__file__]}, "learns only from --train_file"),
    ({"files": {"train_fraction": 0.5}}, "--train_fraction is not for question answering, which"),
    ({"files": {"test_file": "v1.json"}}, "--test_file: a student that answers questions has one"),
    ({"files": {"skip_malformed_lines": True}}, "--skip_malformed_lines is not for question"),
    ({"recipe": "pkd"}, "compares .CLS. vectors, but answers")])
def test_what_answers_cannot_be_learned_from(answering, tmp_path, changes, message):
    (answering / "other.txt").write_text("\n".join([*VOCABULARY[:-2], *VOCABULARY[:-3:-1]]) + "\n")
    given = {name: str(answering / value) if name in ("vocab_file", "student") else value
             for name, value in changes.items()}
    with pytest.raises(InputError, match=message):
        answering_student(answering, tmp_path, **given)


def test_a_run_keeps_its_teacher_and_its_student(data, models, tmp_path):
    """Another teacher or other layers are refused, and what is there stays."""
    out = tmp_path / "out"
    more = {"student": models[0], "transfer_file": []}
    distilled(data, models[:1], out, student_layers=["1"], **more)
    records = {path.name: path.read_bytes() for path in (out / "records").iterdir()}
    with pytest.raises(InputError, match="train.manifest.json describes other records, made from"):
        distilled(data, models[1:], out, student_layers=["1"], **more)
    assert {path.name: path.read_bytes() for path in (out / "records").iterdir()} == records
    for changes in ({"student_layers": ["0"]}, {"student_layers": ["1", "0"]},
                    {"student_layers": ["1"], "student": models[1]}):
        with pytest.raises(InputError, match="out holds a run with another --student"):
            distilled(data, models[:1], out, **{**more, **changes})
    distilled(data, models[:1], out, student_layers=["1"], **more)
    students.write_start(models[0], ["0"], str(out / "student"))    # no trial has begun


def test_a_run_notices_another_vocabulary_of_its_teacher(data, models, tmp_path, capsys):
    """With a vocabulary of the student's own."""
    teacher = shutil.copytree(models[1], tmp_path / "teacher")
    distilled(data, [str(teacher)], tmp_path / "out")
    capsys.readouterr()
    distilled(data, [str(teacher)], tmp_path / "out")
    assert "there already" in capsys.readouterr().out
    tokens = (teacher / "vocab.txt").read_text().split()
    tokens[5:22] = reversed(tokens[5:22])
    (teacher / "vocab.txt").write_text("\n".join(tokens) + "\n")
    with pytest.raises(InputError, match="train.manifest.json describes other records, made from"):
        distilled(data, [str(teacher)], tmp_path / "out")


@pytest.mark.parametrize("recipe, directionality, message", [
    ("pkd", "left_to_right", "first token, which sees no other in a left-to-right model such as"),
    ("internal", "left_to_right", "first token, which sees no other in a left-to-right model"),
    ("pkd", "bidi", "but the class token of --teacher is the last")])
def test_vectors_of_a_first_token_that_says_nothing_are_not_compared(
        data, models, tmp_path, recipe, directionality, message, monkeypatch):
    tiny.config(directionality=directionality, max_position_embeddings=40).to_json_file(
        tmp_path / "student.json")
    if directionality == "bidi":
        xlnet = types.SimpleNamespace(layout=Layout(0, 1, 2, cls_last=True))
        monkeypatch.setattr(teaching, "open_tokenizer",
                            lambda *_: types.SimpleNamespace(vocabulary=xlnet))
    with pytest.raises(InputError, match=message):
        distilled(data, models[:1], tmp_path / "out", recipe=recipe,
                  student=str(tmp_path / "student.json"))
    assert not (tmp_path / "out").exists()


XLNET = XLNetConfig(vocab_size=20, d_model=8, n_layer=3, n_head=2, d_head=4, d_inner=8)
PRUNED = tiny.config(num_hidden_layers=2, pruned_heads={0: [1]}, intermediate_sizes=[3, 5])


@pytest.mark.parametrize("config, layers, changes", [
    (XLNET, [2, 0], {"n_layer": 2}),
    (PRUNED, [1, 0], {"pruned_heads": {1: [1]}, "intermediate_sizes": [5, 3]})])
def test_layers_become_a_student_with_their_heads_and_units(config, layers, changes):
    encoder = networks.build(config)
    student = students.take_layers(encoder, layers)
    assert student.config == dataclasses.replace(config, **changes)
    for mine, layer in zip(student.layers_, layers, strict=True):
        theirs = encoder.layers_[layer]
        assert all(map(np.array_equal, mine.get_weights(), theirs.get_weights()))


def test_a_model_of_integers_teaches(models, tmp_path):
    quantise_model.main(quantise_model.QuantiseFlags(
        init_checkpoint=models[0], output=str(tmp_path), quantisation="q8bert"))
    teacher = teachers.Teacher(str(tmp_path))
    found = teacher.answer(teacher.saved.task, [Example(["a good film"], 0)])
    wanted = bert_tf.Predictor(tmp_path)("a good film")["probabilities"]
    assert found["probabilities"][0].tolist() == pytest.approx(list(wanted.values()))
    assert len(teacher.digest()) == len(teachers.Teacher(models[0]).digest())
    assert InStep(str(tmp_path), None).config == teacher.config


def test_heads_of_pruned_models_are_not_compared(models):
    teacher = InStep(models[0], find_distillation("tinybert_layers"))
    own, tokenizer = teacher.config, open_tokenizer(models[0])
    pruned = dataclasses.replace(own, pruned_heads={own.depth - 1: [0]})
    teacher.check(own, tokenizer, 16)
    with pytest.raises(InputError, match="but the student has pruned heads"):
        teacher.check(pruned, tokenizer, 16)
    teacher.config = pruned
    with pytest.raises(InputError, match=f"but --teacher={models[0]} has pruned heads"):
        teacher.check(own, tokenizer, 16)


def test_what_the_student_would_overwrite_is_refused(data, models):
    for flag, changes in (("teacher", {}), ("student", {
            "teacher": models[1:2], "student": models[0], "student_layers": ["0"]})):
        with pytest.raises(InputError, match=f"--output_dir is the folder of --{flag}="):
            distilled(data, models[:1], models[0], **changes)


def test_a_teacher_of_single_texts_does_not_answer_pairs(data, models):
    """The labels of two tasks may have the same names, as CoLA's and MRPC's."""
    pairs = TaskFlags(data_dir=str(data), **TABLES, text_b_column="text").read_task(
        "classification")
    with pytest.raises(InputError, match="has 2 texts, but the model was trained on .* 1 text;"):
        teachers.Teachers((teachers.Teacher(models[0]),)).check(pairs)


@pytest.mark.parametrize("changes, message", [
    ({"recipe": "pkd"}, "compares the vectors of layers"),
    *(({"recipe": "pkd", "student": "MODEL", "student_layers": ["0"], "patience_layers": layers},
       f"--patience_layers={layers}: .* this student has one layer") for layers in ("skip", "7")),
    ({"recipe": "tinybert_layers", "gold_weight": 1.0, "student": "MODEL"},
     "--gold_weight is 1, but in records of --recipe=tinybert_layers texts without labels"),
    ({"recipe": "bilstm_soft", "masked_lm": "x"},
     "there is no --masked_lm with --augmentation=random_words; it is for"),
    ({"recipe": "pre_trained", "settings": {"label_smoothing": 0.1}}, "is for gold labels"),
    ({"task_flags": TaskFlags(**TABLES, label_scale=2.0)}, "--label_scale stays as in the"),
    ({"train_examples": False, "transfer_file": []}, "nothing to learn from"),
    ({"recipe": "internal", "do_predict": True}, "trains layers, but not the head that predicts"),
    ({"teacher": ["nowhere"]}, "--teacher: there is no folder .nowhere.; name the --output_dir"),
    ({"distill_temperature": 0.0}, "--distill_temperature is 0.0; it must be above 0"),
    ({"student": "tiny"}, "--student=tiny names a size, not a file; write a JSON file of sizes"),
    ({"student_layers": ["0"]}, "--student_layers takes layers"),
    *(({"student": "MODEL", "student_layers": ["0"], **absent}, message) for absent, message in (
        ({"transfer_file": ["absent"]}, "--transfer_file: there is no file absent"),
        ({"task_flags": TaskFlags(**{**TABLES, "train_file": "absent.tsv"})}, "no absent.tsv"))),
    ({"transfer_file": ["EMPTY"]}, "--transfer_file: EMPTY holds no text"),
    ({"augmentation": "random_words", "pos_tagger": "MODEL"},
     "--pos_tagger: .* is a model for classification; name a tagger, from bert-finetune"),
])
def test_what_cannot_be_distilled_is_refused(data, models, tmp_path, changes, message, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "EMPTY").touch()
    changes = {name: models[0] if value == "MODEL" else value for name, value in changes.items()}
    with pytest.raises(InputError, match=message):
        distilled(data, models[:1], tmp_path / "out", **changes)
    assert not (tmp_path / "out" / "student").exists()
