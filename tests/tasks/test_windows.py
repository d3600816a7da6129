"""Long texts: their windows, the answers to these, and the same records for texts that fit."""

import numpy as np
import pytest

from bert_tf.errors import InputError
from bert_tf.tasks.kinds import windows
from bert_tf.tasks.kinds.table import KINDS
from bert_tf.tasks.reading import Example
from bert_tf.tasks.task import Task
from bert_tf.tasks.task_flags import TaskFlags
from bert_tf.tokenization import open_tokenizer
from bert_tf.tokenization.encoding import LONG_TEXTS, encode_pairs

LENGTH = 16
KIND = {"classification": ("no", "yes"), "multi_label": ("a", "b"), "regression": ()}


@pytest.fixture(name="tokenizer", scope="module",
                params=["bert-base-uncased", "roberta-base", "albert"])
def fixture_tokenizer(request, test_data):
    return open_tokenizer(str(test_data / "vocabs" / request.param))


def words(count, first="the"):
    return " ".join([first, *["of"] * (count - 1)]) if count else ""


def make(way, texts, tokenizer, kind="classification", **options):
    task = Task("own", kind, {}, KIND.get(kind, ()))
    return task.kind.encode(task, [Example(row, 1) for row in texts], tokenizer, LENGTH,
                            {"long_text": way, **options})


@pytest.mark.parametrize("way", LONG_TEXTS)
def test_texts_that_fit_give_the_records_of_before(tokenizer, way):
    for texts in ([["the of"], [words(13)], [words(1)]], [["the of", "and"], ["a", words(9)]]):
        wanted, _ = encode_pairs(texts, tokenizer, LENGTH)
        found, cut = make(way, texts, tokenizer)
        assert cut == 0 and all((found[name] == wanted[name]).all() for name in wanted)


@pytest.mark.parametrize("way", LONG_TEXTS[1:])
@pytest.mark.parametrize("kind", ["classification", "ranking", "multiple_choice", "similarity"])
def test_the_second_text_may_come_first(tokenizer, way, kind):
    """As MT-DNN's models read pairs and candidates. Long pairs are the pairs turned around."""
    long = kind not in ("classification", "similarity")
    texts = ["the of", "and of the", "to"][:2 + long]
    wanted, _ = make("truncate", [texts], tokenizer, kind, hypothesis_first=True)
    found, _ = make(way, [texts], tokenizer, kind, hypothesis_first=True)
    assert all((found[name] == wanted[name]).all() for name in wanted)
    if kind == "classification":
        texts = [words(40), words(3, "and")]
        wanted, _ = make(way, [texts[::-1]], tokenizer)
        found, _ = make(way, [texts], tokenizer, hypothesis_first=True)
        assert all((found[name] == wanted[name]).all() for name in wanted)
    # An empty text leaves another room at its two places.
    for count in (12, 13, 14, 15, 29, 39):
        rows = [[words(count), *[""] * (len(texts) - 1)]]
        options = {"long_text": way, "hypothesis_first": True}
        found, _ = make(way, rows, tokenizer, kind, hypothesis_first=True)
        counts = KINDS[kind].count_records([Example(rows[0], 1)], tokenizer, LENGTH, options)
        assert counts.tolist() == [len(found["input_ids"])]


def test_sentences_to_tag_have_as_many_records(tokenizer):
    """A word may have several tokens or, as a lone control character, none."""
    lists = [["the"] * count for count in (1, 13, 14, 15, 40)] + [["internationalisation"] * 9,
                                                                  ["\x01"] * 20, ["a", "\x01"] * 9]
    task = Task("own", "tagging", {}, ("O", "B-X"))
    examples = [Example(words_, [0] * len(words_)) for words_ in lists]
    counts = task.kind.count_records(examples, tokenizer, LENGTH, {})
    for example, count in zip(examples, counts, strict=True):
        features, _ = task.kind.encode(task, [example], tokenizer, LENGTH)
        assert len(features["input_ids"]) == count
    assert counts.max() > 2 and counts.min() == 1


def test_answers_must_be_as_many_as_windows():
    with pytest.raises(ValueError, match="there are 3 answers to 4 windows"):
        windows.join_windows(KINDS["regression"], {"values": np.zeros((3, 1))}, np.array([1, 3]),
                             "mean")


def test_a_pair_of_one_token_too_many_is_cut(tokenizer):
    """Of 7 and 7 tokens 13 fit; neither text is longer than its half."""
    room = tokenizer.vocabulary.layout.room
    length = next(length for length in range(LENGTH, LENGTH + 4) if room(length, True) == 13)
    texts = [next(words(n, first) for n in range(1, 8)
                  if len(tokenizer.encode(words(n, first))) == 7) for first in ("the", "and")]
    wanted, _ = encode_pairs([texts], tokenizer, length)
    found, counts, is_cut = windows.encode_long([[tuple(texts)]], tokenizer, length, "mean")
    assert counts == 1 and is_cut == 1
    assert (found["input_ids"] == wanted["input_ids"]).all()


@pytest.mark.parametrize("first, second", [(40, 0), (15, 0), (30, 3), (3, 30), (30, 20)])
def test_every_token_is_in_a_window(test_data, first, second):
    """Each word of the longer text is another token."""
    tokenizer = open_tokenizer(str(test_data / "vocabs" / "bert-base-uncased"))
    texts = [" ".join(map(str, range(begin, begin + count)))
             for begin, count in ((100, first), (200, second)) if count]
    found, cut = make("mean", [texts], tokenizer)
    ids = [tokenizer.encode(text) for text in texts]
    shorter = min(ids, key=len) if second else []
    assert cut == (len(shorter) > (LENGTH - 3) // 2) and len(found["label_ids"]) > 1
    assert set(max(ids, key=len)) <= set(found["input_ids"].ravel().tolist())
    for row in found["input_ids"].tolist():         # the shorter text is in each window
        assert set(shorter[:(LENGTH - 3) // 2]) <= set(row)
    assert (found["label_ids"] == 1).all()
    assert len(found["label_ids"]) == windows.count_windows([[tuple(texts)]], tokenizer, LENGTH)
    for way, count in (("mean", len(found["label_ids"])), ("truncate", 1)):
        assert KINDS["classification"].count_records(
            [Example(texts, 1)], tokenizer, LENGTH, {"long_text": way}).tolist() == [count]


def test_windows_of_a_slow_account(test_data):
    """14 tokens fit; windows of 40 begin at a distance of 10 at most, evenly spread."""
    tokenizer = open_tokenizer(str(test_data / "vocabs" / "bert-base-uncased"))
    ids = tokenizer.encode(" ".join(chr(97 + n % 26) for n in range(40)))
    found, _ = make("mean", [[" ".join(chr(97 + n % 26) for n in range(40))]], tokenizer)
    assert found["input_ids"].tolist() == [
        [101, *ids[start:start + 14], 102] for start in (0, 9, 17, 26)]
    found, cut = make("head_tail", [[" ".join(chr(97 + n % 26) for n in range(40))]], tokenizer)
    assert cut == 1 and found["input_ids"].tolist() == [[101, *ids[:3], *ids[-11:], 102]]


def test_choices_share_their_windows(test_data):
    tokenizer = open_tokenizer(str(test_data / "vocabs" / "bert-base-uncased"))
    found, _ = make("max", [[words(30), "a b", "c d e"]], tokenizer, "multiple_choice")
    rows = found["input_ids"].reshape(-1, 2, LENGTH)
    assert len(rows) == windows.count_windows(
        [[(words(30), "a b"), (words(30), "c d e")]], tokenizer, LENGTH) > 1
    ends = [tokenizer.encode(choice) + [102] for choice in ("a b", "c d e")]
    for row in rows.tolist():
        assert [sequence[-len(end):] for sequence, end in zip(row, ends)] == ends


@pytest.mark.parametrize("kind", KIND)
@pytest.mark.parametrize("way", ["mean", "max"])
def test_answers_are_joined(kind, way):
    rng, counts = np.random.default_rng(1), np.array([1, 3, 2])
    logits = rng.normal(size=(6, 2)).astype(np.float32)
    likely = 1 / (1 + np.exp(-logits)) if kind == "multi_label" else (
        np.exp(logits) / np.exp(logits).sum(-1, keepdims=True))
    answers = {"values": logits} if kind == "regression" else {
        "logits": logits, "probabilities": likely}
    found = windows.join_windows(KINDS[kind], answers, counts, way)
    reduce = np.mean if way == "mean" else np.max
    for number, rows in enumerate(([0], [1, 2, 3], [4, 5])):
        if kind == "regression":
            assert np.allclose(found["values"][number], reduce(logits[rows], 0), atol=1e-6)
            continue
        wanted = reduce(likely[rows], 0)
        if kind == "classification" and way == "max":
            wanted = wanted / wanted.sum()
        assert np.allclose(found["probabilities"][number], wanted, atol=1e-6)
        assert len(rows) > 1 or (found["logits"][number] == logits[0]).all()
        again = 1 / (1 + np.exp(-found["logits"][number])) if kind == "multi_label" else (
            np.exp(found["logits"][number]) / np.exp(found["logits"][number]).sum())
        assert np.allclose(again, wanted, atol=1e-5)


def test_what_does_not_go_together_is_refused(tokenizer, tmp_path):
    with pytest.raises(InputError, match="--long_text=mean and --max_qa_length"):
        KINDS["multiple_choice"].check_options(
            {"long_text": "mean", "max_qa_length": 3}, LENGTH, tokenizer)
    (tmp_path / "eng.train").write_text("EU NNP I-NP I-ORG\n")
    flags = TaskFlags(task="conll2003", long_text="mean", data_dir=str(tmp_path))
    with pytest.raises(InputError, match="--long_text=mean is not for tagging"):
        flags.find(flags.read_task(), True, False, False)
