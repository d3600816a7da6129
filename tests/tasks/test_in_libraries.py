"""Examples of named tasks from sets in the libraries' own formats, against those of the official
files."""

import json
import pathlib
import sys
import types

import numpy as np
import pytest

from bert_tf.errors import InputError
from bert_tf.tasks import task as tasks
from bert_tf.tasks.in_libraries import configuration, placed
from bert_tf.tasks.named import TASKS
from bert_tf.tasks.task_flags import TaskFlags

HUB = "hf://datasets/me/{}@" + "a" * 40
# task, columns and classes in the libraries, rows as (texts, class), the official train file.
CASES = {
    "cola": (("sentence",), ("unacceptable", "acceptable"), [(("A b.",), 1), (("C \"d",), 0)],
             "x\t1\t\tA b.\nx\t0\t*\tC \"d\n"),
    "mrpc": (("sentence1", "sentence2"), ("not_equivalent", "equivalent"),
             [(("a", "b"), 1), (("c", "d"), 0)],
             "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t1\t2\ta\tb\n0\t1\t2\tc\td\n"),
    "mnli": (("premise", "hypothesis"), ("entailment", "neutral", "contradiction"),
             [(("a", "b"), 0), (("c", "d"), 2)],
             "sentence1\tsentence2\tgold_label\na\tb\tentailment\nc\td\tcontradiction\n"),
    "sts-b": (("sentence1", "sentence2"), (), [(("a", "b"), 2.5), (("c", "d"), 5.0)],
              "sentence1\tsentence2\tscore\na\tb\t2.5\nc\td\t5.0\n"),
    "snli": (("premise", "hypothesis"), ("entailment", "neutral", "contradiction"),
             [(("a", "b"), 1), (("c", "d"), -1), (("e", "f"), 2)],
             "gold_label\tsentence1\tsentence2\nneutral\ta\tb\n-\tc\td\ncontradiction\te\tf\n"),
    "copa": (("premise", "question", "choice1", "choice2"), ("choice1", "choice2"),
             [(("p", "cause", "x", "y"), 1), (("q", "effect", "x", "y"), 0)],
             "".join(json.dumps({"premise": premise, "question": question, "choice1": "x",
                                 "choice2": "y", "label": label}) + "\n"
                     for premise, question, label in (("p", "cause", 1), ("q", "effect", 0))))}


def official(name, folder):
    path = folder / TASKS[name].splits["train"].files[0]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(CASES[name][3], encoding="utf-8")
    return examples(name, str(folder))


def examples(name, data_dir, split="train"):
    flags = TaskFlags(task=name, data_dir=data_dir)
    [source] = flags.find_sources(flags.read_task(), [split])
    return list(source.examples())


@pytest.fixture(name="hub")
def fixture_hub(tmp_path, monkeypatch):
    """Writes a set of the Hub as Parquet files, which the library itself reads."""
    datasets = pytest.importorskip("datasets")
    load, place = datasets.load_dataset, tmp_path / "hub"
    monkeypatch.setattr(tasks, "match_names", lambda *_: [])        # no official files there
    monkeypatch.setattr(tasks, "is_file", lambda path: pathlib.Path(path).is_file())

    def from_disk(name, config, split, revision, streaming):
        assert revision == "a" * 40 and streaming
        return load("parquet", data_files={split: str(
            place / name / (config or "") / f"{split}.parquet")}, split=split, streaming=True)

    monkeypatch.setattr(datasets, "load_dataset", from_disk)

    def write(name, split, columns, classes, rows):
        label = datasets.ClassLabel(names=list(classes)) if classes else datasets.Value("float32")
        path = place / name / f"{split}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        datasets.Dataset.from_list(
            [dict(zip(columns, texts)) | {"label": value} for texts, value in rows],
            datasets.Features({column: datasets.Value("string") for column in columns}
                              | {"label": label})).to_parquet(str(path))

    return write


@pytest.mark.parametrize("name", CASES)
def test_the_hub_gives_the_examples_of_official_files(name, tmp_path, hub):
    *described, _ = CASES[name]
    hub(f"me/set/{name.replace('-', '')}", "train", *described)
    wanted = official(name, tmp_path / "files")
    assert len(wanted) == 2
    assert examples(name, HUB.format("set") + f"/{name.replace('-', '')}") == wanted


def test_languages_are_configurations(hub):
    classes = ("entailment", "neutral", "contradiction")
    for language in ("en", "zh"):
        for split in ("train", "validation"):
            hub(f"me/xnli/{language}", split, ("premise", "hypothesis"), classes, [
                ((language, split), 2)])
    for name, split, texts in (("xnli", "train", ["en", "train"]),
                               ("xnli", "dev_zh", ["zh", "validation"]),
                               ("xnli-zh", "train", ["zh", "train"])):
        [example] = examples(name, HUB.format("xnli"), split)
        assert example.texts == texts and example.label == 0


@pytest.mark.peer
@pytest.mark.parametrize("name", CASES)
def test_tensorflow_datasets_gives_the_examples_of_official_files(name, tmp_path, monkeypatch):
    tfds = pytest.importorskip("tensorflow_datasets")
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
    columns, classes, rows, _ = CASES[name]
    label = tfds.features.ClassLabel(names=list(classes)) if classes else tfds.features.Scalar(
        np.float32)

    def info(self):
        return tfds.core.DatasetInfo(builder=self, features=tfds.features.FeaturesDict({
            **{column: tfds.features.Text() for column in columns}, "label": label}))

    small = type(f"Small{name.replace('-', '').title()}", (tfds.core.GeneratorBasedBuilder,), {
        "VERSION": tfds.core.Version("1.0.0"), "_info": info, "__module__": __name__,
        "_split_generators": lambda self, manager: {"train": self._generate_examples()},
        "_generate_examples": lambda self: (
            (i, dict(zip(columns, texts)) | {"label": value})
            for i, (texts, value) in enumerate(rows))})
    small(data_dir=str(tmp_path)).download_and_prepare()
    found = examples(name, f"tfds:{small.name}")
    assert sorted(found, key=str) == sorted(official(name, tmp_path / "files"), key=str)


def test_what_is_submitted_is_in_the_official_order(monkeypatch):
    """The servers count lines of the official test file; tensorflow_datasets shuffles them."""
    rows = [{"sentence": f"text {index}".encode(), "label": -1, "idx": index}
            for index in np.random.default_rng(3).permutation(30)]
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", types.SimpleNamespace(
        load=lambda *_, **__: (rows, types.SimpleNamespace(features=dict.fromkeys(rows[0]))),
        as_numpy=iter))
    assert [example.texts for example in examples("cola", "tfds:glue/cola", "test")] == [
        [f"text {index}"] for index in range(30)]


def test_names_of_splits(tmp_path):
    assert {name: layout.files for name, layout in placed(
        TASKS["mnli"], "tfds:glue/mnli").splits.items()} == {
        "train": ("tfds:glue/mnli:train",), "dev_matched": ("tfds:glue/mnli:validation_matched",),
        "dev_mismatched": ("tfds:glue/mnli:validation_mismatched",),
        "test_matched": ("tfds:glue/mnli:test_matched",),
        "test_mismatched": ("tfds:glue/mnli:test_mismatched",)}
    assert list(placed(TASKS["ax"], "tfds:glue/ax").splits) == ["test"]
    assert configuration("tfds:glue", TASKS["sts-b"]) == "tfds:glue/stsb"
    assert placed(TASKS["mnli"], str(tmp_path)) is TASKS["mnli"]


@pytest.mark.parametrize("name", ["wic", "record", "race", "conll2003", "xnli"])
def test_other_files_are_refused(name):
    with pytest.raises(InputError, match=f"{name} can't be read from tfds:x"):
        placed(TASKS[name], "tfds:x")
