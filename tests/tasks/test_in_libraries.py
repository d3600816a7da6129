"""Examples of named tasks from sets in the libraries' own formats, against those of the official
files."""

import sys
import types

import numpy as np
import pytest

from bert_tf.errors import InputError
from bert_tf.models.t5.task_files import TextFlags
from bert_tf.models.t5.tasks import TEXT_TASKS, text_task
from bert_tf.tasks import task as tasks
from bert_tf.tasks.libraries import read_library
from bert_tf.tasks.named import OF_SUITES, TASKS, configuration, placed
from bert_tf.tasks.split_records import Source
from bert_tf.tasks.squad import identify, read_answers, read_paragraphs
from bert_tf.tasks.task_flags import TaskFlags
from tests.tasks import library_sets


def examples(name, data_dir, split="train"):
    flags = TaskFlags(task=name, data_dir=data_dir)
    [source] = flags.find_sources(flags.read_task(), [split])
    return list(source.examples())


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


@pytest.mark.parametrize("name, data_dir", [("xnli-translate-test", "hf://datasets/facebook/xnli")])
def test_what_a_library_lacks_is_refused(name, data_dir, monkeypatch):
    monkeypatch.setattr(tasks, "match_names", lambda *_: [])
    monkeypatch.setattr(tasks, "is_file", lambda path: False)
    with pytest.raises(InputError, match=f"{data_dir} has no examples of {name}; give the folder"):
        placed(OF_SUITES[name], data_dir)
    for other in ("squad", "race", "xnli-de", "triviaqa"):
        with pytest.raises(InputError, match=f"{other} is not read from tensorflow_datasets; name"):
            placed(OF_SUITES[other], "tfds:any")


@pytest.mark.parametrize("data_dir, name, problem", [
    ("hf://datasets/rajpurkar/squad@main", "squad_v2", "is version v1.1"),
    ("hf://datasets/rajpurkar/squad/plain_text", "squad_v2", "is version v1.1"),
    ("hf://datasets/rajpurkar/squad_v2@main", "squad", "is version v2.0")])
def test_sets_of_other_tasks_are_refused(data_dir, name, problem):
    with pytest.raises(InputError, match=problem):
        configuration(data_dir, OF_SUITES[name])


def test_names_of_sets():
    """A suite may be a set with configurations, or several sets."""
    def names(data_dir, *known):
        return [configuration(data_dir, OF_SUITES[name]) for name in known]

    assert names("tfds:super_glue", "wsc-ranking", "ax-b", "record") == [
        "tfds:super_glue/wsc", "tfds:super_glue/axb", "tfds:super_glue/record"]
    assert names("hf://datasets/rajpurkar/squad", "squad", "squad_v2", "triviaqa") == [
        "hf://datasets/rajpurkar/squad", "hf://datasets/rajpurkar/squad_v2",
        "hf://datasets/mandarjoshi/trivia_qa/rc.wikipedia"]
    assert names("hf://datasets/rajpurkar/squad_v2@main", "squad_v2") == [
        "hf://datasets/rajpurkar/squad_v2@main"]
    assert names("hf://datasets/aps/super_glue", "mnli", "swag", "cb") == [
        "hf://datasets/nyu-mll/glue/mnli", "hf://datasets/allenai/swag/regular",
        "hf://datasets/aps/super_glue/cb"]
    assert names("tfds:glue/cola", "cola") == ["tfds:glue/cola"]
    assert placed(TASKS["mrpc"], "tfds:glue").splits["dev"].files == ("tfds:glue/mrpc:validation",)
    assert list(placed(TASKS["ax-b"], "tfds:super_glue").splits) == ["dev", "test"]


def read_questions(name, path):
    return [(found.context, found.words, question)
            for found in read_paragraphs(path, True, name == "squad_v2")
            for question in found.questions], read_answers(path)


def same(name, files, library):
    """Compares all splits of a library's set with those of official files; returns their number."""
    task, count = placed(OF_SUITES[name], library), 0
    for split in task.splits:
        if name == "xnli" and split[-2:] not in ("en", "de", "in"):
            continue        # two languages are enough
        if task.kind.name == "span":
            found, wanted = (read_questions(name, place.path(data_dir, split)) for place, data_dir
                             in ((task, library), (OF_SUITES[name], files)))
            assert found[1] == wanted[1]
            found, wanted = found[0], wanted[0]
        else:
            found, wanted = (examples(name, data_dir, split) for data_dir in (library, files))
        if name == "conll2003":     # libraries do not say where documents begin
            found, wanted = ([(one.texts, one.label) for one in each] for each in (found, wanted))
        assert found == wanted
        count += 1
    return count


def as_texts(name, folder, task):
    jobs = {split: bool([known for known in task.splits if known.split("_")[0] == split])
            for split in ("train", "dev", "test")}
    known = next(text.name for text in TEXT_TASKS.values() if name in (
        text.official, text.submitted, text.name))
    sources = TextFlags([known], [folder]).open(*jobs.values())
    return {split: [(file.task, file.examples) for file in sources.of(split)]
            for split, has in jobs.items() if has}


@pytest.fixture(name="places")
def fixture_places(tmp_path):
    """The folders of official files and of a library's sets."""
    return tmp_path / "files", tmp_path / "library"


# Splits that a library has; the tests of XNLI have two languages.
SPLITS = {"xnli": 5, "mnli": 5,
          **dict.fromkeys(("ax-b", "ax-g", "squad", "squad_v2", "triviaqa"), 2)}


@pytest.mark.parametrize("name", library_sets.HUB)
def test_every_task_is_read_from_the_hub(name, places, monkeypatch):
    pytest.importorskip("datasets")
    files = library_sets.write_files(name, places[0])
    library = library_sets.write_hub(name, places[1], monkeypatch)
    assert same(name, files, library) == SPLITS.get(name, 3)
    if text_task(name) or name in ("squad", "conll2003"):
        task = placed(OF_SUITES[name], library)
        assert as_texts(name, library, task) == as_texts(name, files, task)


@pytest.mark.peer
@pytest.mark.parametrize("name", library_sets.TFDS)
def test_every_task_is_read_from_tensorflow_datasets(name, places, monkeypatch):
    """The library's own builders make the sets of the official files."""
    pytest.importorskip("tensorflow_datasets")
    files = library_sets.write_files(name, places[0])
    library = library_sets.write_tfds(name, files, places[1], monkeypatch)
    assert same(name, files, library) == SPLITS.get(name, 3)
    if text_task(name):
        task = placed(OF_SUITES[name], library)
        assert as_texts(name, library, task) == as_texts(name, files, task)


@pytest.mark.parametrize("write", ["write_hub", pytest.param("write_tfds", marks=pytest.mark.peer)])
@pytest.mark.parametrize("name", ["multirc", "record"])
def test_submissions_have_the_numbers_of_the_official_file(name, write, places, monkeypatch):
    pytest.importorskip({"write_hub": "datasets", "write_tfds": "tensorflow_datasets"}[write])
    files = library_sets.write_files(name, places[0])
    library = library_sets.write_hub(name, places[1], monkeypatch) if write == "write_hub" else (
        library_sets.write_tfds(name, files, places[1], monkeypatch))
    answers = np.random.default_rng(0).integers(0, 2, len(examples(name, library, "test")))
    written = []
    for data_dir in (files, library):
        path = places[0] / "submission.jsonl"
        TASKS[name].kind.write_submission(
            str(path), placed(TASKS[name], data_dir).path(data_dir, "test"), answers)
        written.append(path.read_text())
    assert written[0] == written[1] and written[0].count("\n") == {"multirc": 6, "record": 12}[name]


def test_questions_of_a_library_have_an_identity(places, monkeypatch):
    """Which records of them keep: that of a split's content, alike in each process."""
    pytest.importorskip("datasets")
    library = library_sets.write_hub("squad_v2", places[1], monkeypatch)
    task = placed(OF_SUITES["squad_v2"], library)
    train, dev = (task.path(library, split) for split in ("train", "dev"))
    assert identify(dev) == identify(dev) != identify(train)
    digest, size = identify(dev)
    assert len(digest) == 64 and size > 0


@pytest.mark.parametrize("form, row, message", [
    ("multirc", {"paragraph": "a", "question": "b"}, "tfds:x/y:train does not have the usual"),
    ("record", {"passage": "a", "query": "@placeholder", "entities": ["b"], "answers": [],
                "idx": {"passage": 0, "query": 0}}, "substring not found"),
    ("squad", {"context": "a", "question": "b"}, "name another data set, or the folder")])
def test_other_columns_are_refused(form, row, message, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", types.SimpleNamespace(
        load=lambda *_, **__: ([row], types.SimpleNamespace(features=None)), as_numpy=iter))
    with pytest.raises(InputError, match=message):
        list(read_library("tfds:x/y:train", form))


def test_tags_in_documents_need_files(monkeypatch):
    source = Source(TASKS["conll2003"], "train", "tfds:conll2003:train")
    with pytest.raises(InputError, match="tfds:conll2003:train do not say where a document begins"):
        TASKS["conll2003"].kind.records(source, None, 16, {"document_context": True}, "")
