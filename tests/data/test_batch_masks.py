"""DistilBERT's sequences and masks are those of its code (golden/distillation of
$BERT_TF_TEST_DATA)."""

import math
import types

import numpy as np
import pytest

from bert_tf.data.text.corpus import tokenize_documents
from bert_tf.models.distilbert.masks import BatchMasks, token_weights
from bert_tf.models.roberta.segments import lines
from bert_tf.recipes import find
from bert_tf.tokenization import open_tokenizer

SIZE, SLOTS, VOCAB, MASK = 40, 20, 90, 4


def test_sequences_and_weights_are_the_originals(test_data):
    golden = np.load(test_data / "golden/distillation/distilbert_data_seed1.npz")
    tokenizer = open_tokenizer(str(test_data / "vocabs/bert-base-uncased"))
    vocabulary = tokenizer.vocabulary
    documents = tokenize_documents([*map(str, golden["texts"]), ""], tokenizer)
    drawn = lines(documents, None, int(golden["max_model_input_size"]) - 2,
                  types.SimpleNamespace(dupe_factor=1), None)
    found = [[vocabulary.cls_id, *documents.tokens[start:start + length], vocabulary.sep_id]
             for start, length, *_ in drawn]
    rows = zip(golden["kept_rows"], golden["kept_lengths"], strict=True)
    assert [list(map(int, row)) for row in found] == [row[:length].tolist() for row, length in rows]
    counts = np.bincount(documents.tokens, minlength=vocabulary.size)
    special = {*vocabulary.special_ids, vocabulary.mask_id}
    ids, expected = golden["counts_nonzero"]
    assert np.flatnonzero(counts).tolist() == sorted(set(ids.tolist()) - special)
    weights = token_weights(counts, special)
    assert np.array_equal(weights[ids], golden["token_probs_nonzero"])


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_share_of_the_batch_is_predicted_and_rare_words_more_often(seed):
    rng = np.random.default_rng(seed)
    mask = np.arange(SIZE) < rng.integers(15, SIZE + 1, (64, 1))
    ids = np.where(mask, rng.integers(5, VOCAB, (64, SIZE)), 0)
    ids[:, 0] = 2
    counts = np.where(np.arange(VOCAB) < 45, 1, 500)
    masks = BatchMasks(find("distilbert").corruption, SIZE, SLOTS, 0.15, VOCAB, MASK, (0, 2, 3),
                       token_weights(counts, (0, 2, 3, MASK)))
    batch = {"input_ids": ids.astype("int32"), "input_mask": mask.astype("int32")}
    drawn = {name: np.array(value) for name, value in masks(batch, seed, np.arange(64)).items()}
    used = drawn["masked_lm_weights"] > 0
    assert used.sum() == math.ceil(0.15 * mask.sum()) and used.sum(1).max() < SLOTS
    rows, labels = np.nonzero(used)[0], drawn["masked_lm_ids"][used]
    assert np.array_equal(labels, ids[rows, drawn["masked_lm_positions"][used]])
    assert not set(labels.tolist()) & {0, 2, 3}
    shown = drawn["input_ids"][rows, drawn["masked_lm_positions"][used]]
    assert 0.7 < np.mean(shown == MASK) < 0.9
    # 500 ** -0.7 is 1 / 77: nearly all predictions are of the rare half.
    assert np.mean(labels < 45) > 0.9
