"""Features of fine-tuning against those of google-research/albert and google-research/electra, and
words in the tokens of other tokenizers.
"""

import itertools

import numpy as np
import pytest

from bert_tf.errors import InputError
from bert_tf.tasks.named import find_task
from bert_tf.tasks.reading import read_examples
from bert_tf.tasks.split_records import Source
from bert_tf.tasks.task_flags import TaskFlags
from bert_tf.tokenization import open_tokenizer

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


@pytest.mark.parametrize("path, lower", [("roberta-base/vocab.json", False),
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
