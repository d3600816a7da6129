"""The named tasks of IMDB, and those in Korean and Chinese."""

import json

import pytest

from bert_tf.errors import InputError
from bert_tf.tasks.named import find_task, placed
from bert_tf.tasks.reading import read_examples
from bert_tf.tasks.task import Split, Task
from bert_tf.tasks.task_flags import TaskFlags


def read(task, split, folder):
    found = read_examples(task, split, task.path(str(folder), split))
    return [(example.texts, example.label) for example in found]


@pytest.fixture(name="reviews")
def fixture_reviews(tmp_path):
    """A folder like aclImdb."""
    for name, text in (("train/pos/0_9.txt", "Good.<br /><br />Really “good”.\n"),
                       ("train/neg/1_1.txt", "Bad!"), ("train/neg/0_3.txt", " So\nso "),
                       ("train/unsup/0_0.txt", "Who knows?"), ("test/pos/0_8.txt", "Fine"),
                       ("test/neg/0_2.txt", "Poor"), ("train/labeledBow.feat", "9 0:9")):
        path = tmp_path / "aclImdb" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path / "aclImdb"


def test_imdb_is_read_as_by_xlnet(reviews):
    """run_classifier.py of zihangdai/xlnet: stripped, tags of line ends are blanks, neg first."""
    task = find_task("IMDB")
    for folder in (reviews, reviews.parent):
        assert read(task, "train", folder) == [
            (["So\nso"], 0), (["Bad!"], 0), (["Good.  Really “good”."], 1)]
        assert read(task, "dev", folder) == [(["Poor"], 0), (["Fine"], 1)]
    for folder in ("train/neg", "other/train"):     # of other data
        (reviews.parent / folder).mkdir(parents=True)
    assert task.path(str(reviews.parent), "train") == str(reviews / "train")
    with pytest.raises(InputError, match=r"there is no train/neg/\*.txt in .*other' \(the train"):
        task.path(str(reviews.parent / "other"), "train")
    (reviews / "train" / "pos" / "0_9.txt").unlink()
    with pytest.raises(InputError, match="train has no folder pos with files"):
        read(task, "train", reviews)


def test_the_test_set_is_scored_in_place_of_a_dev_set(reviews):
    flags = TaskFlags(task="imdb", data_dir=str(reviews))
    assert list(flags.find(find_task("imdb"), True, True, False)[0]) == ["train", "dev"]
    with pytest.raises(InputError, match="--do_predict: imdb has no test file of its own"):
        flags.find(find_task("imdb"), False, False, True)


def test_rows_have_no_tags_of_line_ends_either(tmp_path):
    task = Task("own", "classification", {"train": Split(
        ("a.jsonl",), ("text",), "label", format="jsonl", line_break="<br />")}, ("neg", "pos"))
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": " a<br />b ", "label": "pos"}))
    assert read(task, "train", tmp_path) == [(["a b"], 1)]


@pytest.mark.parametrize("name, rows, text", [
    ("imdb", "tfds:imdb_reviews", "text"), ("nsmc", "hf://datasets/e9t/nsmc", "document")])
def test_a_library_has_the_test_set_in_place_of_a_dev_set(name, rows, text):
    splits = placed(find_task(name), rows).splits
    assert {split: (layout.files, layout.texts) for split, layout in splits.items()} == {
        "train": ((f"{rows}:train",), (text,)), "dev": ((f"{rows}:test",), (text,))}


@pytest.mark.parametrize("name, file, content, wanted", [
    ("nsmc", "ratings_test.txt", 'id\tdocument\tlabel\n1\t"재미 있다\t1\n2\t\t0\n',
     [(['"재미 있다'], 1), ([""], 0)]),
    ("korsts", "sts-dev.tsv", "genre\tfilename\tyear\tid\tscore\tsentence1\tsentence2\n"
     "main-captions\tMSRvid\t2012test\t0\t4.750\t아이가\t아이\n", [(["아이가", "아이"], 4.75)]),
    ("kornli", "xnli.dev.ko.tsv", "sentence1\tsentence2\tgold_label\n그\t나\tneutral\n",
     [(["그", "나"], 2)]),
    ("chnsenticorp", "dev.tsv", "label\ttext_a\n1\t不错\n", [(["不错"], 1)]),
    ("lcqmc", "dev.tsv", "text_a\ttext_b\tlabel\n开初\t开始\t0\n", [(["开初", "开始"], 0)])])
def test_files_of_other_languages(tmp_path, name, file, content, wanted):
    (tmp_path / file).write_text(content, encoding="utf-8")
    task = find_task(name)
    assert read(task, "dev", tmp_path) == wanted
    assert all(layout.label is not None for layout in task.splits.values())
