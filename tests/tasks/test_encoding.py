"""Features of examples of every kind, against a slow packing; ALBERT's and ELECTRA's own."""

import itertools
import json
import random

import numpy as np
import pytest

from bert_tf.data.records.features import FINETUNING
from bert_tf.errors import InputError
from bert_tf.tasks.kinds.tagging import cut_windows
from bert_tf.tasks.named import TASKS, find_task
from bert_tf.tasks.reading import Example, read_examples
from bert_tf.tasks.split_records import Source
from bert_tf.tasks.task_flags import TaskFlags, own_task
from bert_tf.tokenization import open_tokenizer


def encode(task, examples, tokenizer, length, document_context=False):
    return task.kind.encode(task, examples, tokenizer, length,
                            {"document_context": document_context})


def truncate(tokens_a, tokens_b, max_length):
    while len(tokens_a) + len(tokens_b) > max_length:
        (tokens_a if len(tokens_a) > len(tokens_b) else tokens_b).pop()


def slow_features(texts, tokenizer, length):
    """input_ids, input_mask, segment_ids of one example (lists)."""
    vocabulary = tokenizer.vocabulary
    parts = [tokenizer.encode(text) for text in texts]
    if len(parts) == 2 and parts[1]:
        truncate(*parts, length - 3)
        parts = parts[:1 + bool(parts[1])]      # nothing left: no second [SEP]
    else:
        parts = [parts[0][:length - 2]]
    ids, segments = [vocabulary.cls_id], [0]
    for segment, part in enumerate(parts):
        ids += part + [vocabulary.sep_id]
        segments += [segment] * (len(part) + 1)
    padding = [0] * (length - len(ids))
    return ids + padding, [1] * len(ids) + padding, segments + padding


def random_texts(rng, count):
    return ["".join(rng.choices("abc ..", k=rng.choice([0, 1, 5, 12, 30]))) for _ in range(count)]


def check_shapes(features, kind, **sizes):
    """What is written is what readers are told."""
    assert set(features) == {feature.name for feature in FINETUNING[kind]}
    for feature in FINETUNING[kind]:
        array = features[feature.name]
        assert array.shape[1] == feature.length(**sizes)
        assert (array.dtype == np.float32) == (feature.dtype == "float32")


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("length", [4, 5, 16, 64])
def test_sentences_and_pairs(tokenizer, count, length):
    rng = random.Random(length)
    examples = [Example(random_texts(rng, count), rng.randrange(2)) for _ in range(300)]
    features, cut = encode(TASKS["mrpc"], examples, tokenizer, length)
    check_shapes(features, "classification", max_seq_length=length)
    expected = [slow_features(e.texts, tokenizer, length) for e in examples]
    for name, column in zip(("input_ids", "input_mask", "segment_ids"), zip(*expected)):
        assert features[name].tolist() == list(column)
    assert features["label_ids"].tolist() == [[e.label] for e in examples]
    assert features["is_real_example"].all()
    room = [length - 3 if count == 2 and tokenizer.encode(e.texts[1]) else length - 2
            for e in examples]
    whole = [sum(len(tokenizer.encode(text)) for text in e.texts) for e in examples]
    assert cut == sum(map(int.__gt__, whole, room))


def test_numbers_and_several_labels(tokenizer):
    features, _ = encode(TASKS["sts-b"], [Example(["a", "b"], 2.5)], tokenizer, 8)
    check_shapes(features, "regression", max_seq_length=8)
    assert features["label_ids"].tolist() == [[2.5]]
    task = own_task("multi_label", {"train": "a.tsv"}, ["t"], "l")
    features, _ = encode(task, [Example(["a"], [1, 0, 1]), Example(["b"], [0, 0, 0])], tokenizer, 8)
    check_shapes(features, "multi_label", max_seq_length=8, num_labels=3)
    assert features["label_ids"].tolist() == [[1, 0, 1], [0, 0, 0]]


@pytest.mark.parametrize("choices", [2, 4])
def test_choices_stand_one_after_the_other(tokenizer, choices):
    rng = random.Random(1)
    examples = [Example(random_texts(rng, 1 + choices), 1) for _ in range(50)]
    features, cut = encode(TASKS["swag"], examples, tokenizer, 12)
    check_shapes(features, "multiple_choice", max_seq_length=12, num_choices=choices)
    ids = features["input_ids"].reshape(50, choices, 12)
    for row, example in zip(ids.tolist(), examples):
        context, *endings = example.texts
        assert row == [slow_features([context, text], tokenizer, 12)[0] for text in endings]
    assert 0 < cut <= 50


@pytest.mark.parametrize("width", [1, 2, 5, 8])
def test_windows_answer_for_each_token_once(width):
    for low, first, last, high in [(0, 0, 1, 1), (0, 0, 5, 5), (0, 0, 23, 23), (0, 7, 12, 40),
                                   (3, 3, 30, 33), (0, 38, 40, 40)]:
        windows = list(cut_windows(first, last, low, high, width))
        assert [i for *_, begin, stop in windows for i in range(begin, stop)] == list(
            range(first, last))
        for start, end, begin, stop in windows:
            assert low <= start <= begin < stop <= end <= high
            assert end - start == min(width, high - low)        # no room is wasted


@pytest.mark.parametrize("document_context", [False, True])
@pytest.mark.parametrize("length", [4, 7, 16, 64])
def test_every_word_is_tagged_once(tokenizer, length, document_context):
    rng = random.Random(length)
    words = ["a", "bcd", "e.", "x" * 9, "\x01", "f", "☃", "z" * 40]
    examples = [Example(rng.choices(words, k=rng.choice([1, 3, 20])), None, n // 4)
                for n in range(40)]
    examples = [e._replace(label=[rng.randrange(5) for _ in e.texts]) for e in examples]
    features, _ = encode(TASKS["conll2003"], examples, tokenizer, length, document_context)
    check_shapes(features, "tagging", max_seq_length=length)
    weighted = features["label_weights"].astype(bool)
    assert features["label_ids"][weighted].tolist() == [tag for e in examples for tag in e.label]
    unknown = tokenizer.vocabulary.unk_id
    assert features["input_ids"][weighted].tolist() == [
        (tokenizer.encode(word) or [unknown])[0] for e in examples for word in e.texts]
    assert not (features["input_mask"][weighted] == 0).any()
    assert not features["segment_ids"].any()


def test_context_comes_from_the_same_document(tokenizer):
    examples = [Example([letter], [0], 1 + (letter > "c")) for letter in "abcdef"]
    features, _ = encode(TASKS["conll2003"], examples, tokenizer, 8, True)
    text = [" ".join(tokenizer.tokens(row[row > 0])) for row in features["input_ids"]]
    assert text == ["[CLS] a b c [SEP]"] * 3 + ["[CLS] d e f [SEP]"] * 3
    assert features["label_weights"].argmax(1).tolist() == [1, 2, 3] * 2


def test_words_have_tags_where_no_token_is_for_unknown_ones(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("the\ncat\n</s>\n")
    features, _ = encode(TASKS["conll2003"], [Example(["The", "dog", ".", "cat"], [0, 1, 0, 2], 0)],
                         open_tokenizer(str(path)), 8)
    end = 2
    assert features["input_ids"][0][:5].tolist() == [0, end, end, 1, end]
    assert features["label_ids"][0][:4].tolist() == [0, 1, 0, 2]
    assert features["label_weights"][0].sum() == 4


# ALBERT and ELECTRA

NAMES = ("input_ids", "input_mask", "segment_ids")
SENTENCES = (
    "Straße D'Artagnan 1996-08-22 U.S. 1,234.5 naïve -- ( AC/DC ) ...", "a", "!",
    "O'Neill 's re-election ,", "SOCCER-JAPAN GET LUCKY WIN",
    "% 12 1/2 $100m cafe\u0301s Łódź 3-0", "\u4e2d\u6587 x\u4e2dy")


@pytest.mark.parametrize("task, folder, name", [("mrpc", "MRPC", "mrpc"), ("cola", "CoLA", "cola"),
                                                ("sts-b", "STS-B", "stsb")])
def test_texts_are_packed_as_by_albert(test_data, task, folder, name):
    tokenizer = open_tokenizer(str(test_data / "vocabs" / "albert" / "spiece.model"), True)
    task = find_task(task)
    golden = np.load(test_data / "golden" / "albert" / "glue_dev_features_s48.npz")
    first, count = int(golden[f"{name}_first"]), len(golden[f"{name}_input_ids"])
    path = str(test_data / "glue" / folder / "dev.tsv")
    examples = list(read_examples(task, "dev", path))[first:first + count]
    found, _ = task.kind.encode(task, examples, tokenizer, 48)
    for ours, theirs in (*zip(NAMES, NAMES), ("label_ids", "label_id")):
        expected = golden[f"{name}_{theirs}"]
        assert np.allclose(found[ours].reshape(expected.shape), expected, atol=1e-6), ours


def test_choices_are_packed_as_by_albert(test_data, tmp_path):
    folder = test_data / "golden" / "albert"
    articles = json.loads((folder / "race_like.json").read_text(encoding="utf-8"))
    for number, article in enumerate(articles):
        (tmp_path / f"{number:02}.txt").write_text(json.dumps(article), encoding="utf-8")
    tokenizer = open_tokenizer(str(test_data / "vocabs" / "albert" / "spiece.model"), True)
    task, golden = find_task("race"), np.load(folder / "race_like_features_s96_qa16.npz")
    examples = list(read_examples(task, "dev", str(tmp_path)))
    found, _ = task.kind.encode(task, examples, tokenizer, 96, {"max_qa_length": 16})
    for ours, theirs in (*zip(NAMES, NAMES), ("label_ids", "label_id")):
        assert np.array_equal(found[ours].reshape(golden[theirs].shape), golden[theirs]), ours


@pytest.mark.parametrize("task, name, length, both_orders", [
    ("mrpc", "mrpc", 64, True), ("cola", "cola", 32, False), ("sts-b", "sts", 48, True)])
def test_texts_are_packed_as_by_electra(test_data, task, name, length, both_orders):
    vocabulary = test_data / "vocabs" / "bert-base-uncased" / "vocab.txt"
    tokenizer, task = open_tokenizer(str(vocabulary), True), find_task(task)
    folder = test_data / "golden" / "electra"
    golden = np.load(folder / f"features_{name}_s{length}.npz")
    for split in ("train", "dev"):
        source = Source(task, split, str(folder / f"{name}_{split}.tsv"),
                        both_orders=both_orders and split == "train")
        found, _ = task.kind.encode(task, list(source.examples()), tokenizer, length)
        for feature in NAMES:
            assert np.array_equal(found[feature], golden[f"{split}/{feature}"]), feature
        scale, labels = (5, "sts_targets") if name == "sts" else (1, f"{name}_label_ids")
        assert np.allclose(found["label_ids"][:, 0] / scale, golden[f"{split}/{labels}"])


@pytest.mark.parametrize("path, lower", [("roberta-base", False),
                                         ("albert/spiece.model", True)])
def test_a_tag_stands_at_the_first_token_of_its_word(test_data, tmp_path, path, lower):
    tokenizer = open_tokenizer(str(test_data / "vocabs" / path), lower)
    task = find_task("conll2003")
    (tmp_path / "eng.testa").write_text("-DOCSTART- -X- O O\n\n" + "\n".join(
        "".join(f"{word} NN I-NP {tag}\n" for word, tag in zip(
            sentence.split(), itertools.cycle(("O", "I-ORG", "I-ORG", "B-ORG", "I-PER"))))
        for sentence in SENTENCES))
    examples = list(read_examples(task, "dev", str(tmp_path / "eng.testa")))
    assert len(examples) == len(SENTENCES)
    shift = len(tokenizer.word_prefix)
    for example in examples:
        ids, offsets = tokenizer.encode_with_offsets(tokenizer.word_prefix
                                                     + " ".join(example.texts))
        begins = np.cumsum([0, *(len(word) + 1 for word in example.texts)]) + shift
        # The first token that reaches each word; a blank of its own is one too.
        first = [next(place for place, (_, end) in enumerate(offsets) if end >= begin)
                 for begin in begins[:-1]]
        found, _ = task.kind.encode(task, [example], tokenizer, 128)
        length = int(found["input_mask"].sum())
        assert found["input_ids"][0, 1:length - 1].tolist() == ids
        assert np.flatnonzero(found["label_weights"][0]).tolist() == [1 + i for i in first]


@pytest.mark.parametrize("flags, task, message", [
    ({"both_orders": True}, "cola", "--both_orders is for pairs"),
    ({"label_scale": 5.0}, "mrpc", "--label_scale is for regression"),
    ({"label_scale": 0.0}, "sts-b", "--label_scale is 0.0")])
def test_flags_that_do_not_fit_the_task_are_refused(tmp_path, flags, task, message):
    for name in ("train.tsv", "dev.tsv"):
        (tmp_path / name).write_text("a\n", encoding="utf-8")
    with pytest.raises(InputError, match=message):
        TaskFlags(task=task, data_dir=str(tmp_path), **flags).find_sources(find_task(task), [])
