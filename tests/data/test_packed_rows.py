"""ModernBERT's packed rows and masks are those of its code (golden/modernbert/packing.npz of
$BERT_TF_TEST_DATA)."""

import json
import math
import types

import numpy as np
import pytest

from bert_tf.data import masking
from bert_tf.data.instances.pretraining import create_instances
from bert_tf.data.text.corpus import tokenize_documents, with_blanks
from bert_tf.errors import InputError
from bert_tf.models.modernbert.instances import best_fit
from bert_tf.models.modernbert.masks import mask_places
from bert_tf.recipes import find
from bert_tf.tokenization import open_tokenizer

SIZE, SLOTS = 24, 12


def rows_of(settings):
    """The rows of a batch, which grow with the tokens of those before, as schedules.json says."""
    micro = settings["micro_batch_size"]
    most = settings["batch_size"] // micro
    least = settings.get("batch_size_warmup_min_size", settings["batch_size"]) // micro
    unit = math.ceil(settings.get("batch_size_warmup_tokens", 0) / max(sum(range(least, most)), 1))
    return lambda tokens: next((rows for rows in range(least, most) if tokens < math.ceil(
        unit * sum(range(least, rows + 1)))), most)


@pytest.mark.parametrize("case, epochs, dropped", [(0, 2, 9), (1, 1, 5)])
def test_rows_and_masks_are_the_originals(case, epochs, dropped, test_data):
    golden = np.load(test_data / "golden/modernbert/packing.npz")
    settings = json.loads(str(golden[f"{case}/settings"]))
    lengths = golden[f"{case}/lengths"]
    texts = np.split(golden[f"{case}/tokens"], np.cumsum(lengths)[:-1])
    size = settings["micro_batch_size"] * settings["max_seq_len"]
    *batches, last = best_fit(lengths.tolist(), size, rows_of(settings), settings["buffer_size"],
                              settings["batch_size"])
    assert not all(last) and sum(map(len, last)) == dropped
    for epoch in range(epochs):
        rng = np.random.default_rng(settings["seed"] + epoch)
        for number, batch in enumerate(batches):
            at = f"{case}/epoch{epoch}/{number}"
            ids = np.full((len(batch), size), settings["pad_token_id"])
            for row, sequences in enumerate(batch):
                tokens = np.concatenate([texts[sequence] for sequence in sequences])
                ids[row, :len(tokens)] = tokens
                ends = np.append(np.cumsum(lengths[sequences]), size)
                assert {0, *ends} == {*golden[f"{at}/cu_seqlens/{row}"]}
            is_token = golden[f"{at}/attention_mask"] > 0
            assert np.array_equal(ids != settings["pad_token_id"], is_token)
            shown, chosen = mask_places(ids, is_token, rng, settings["mask_token_id"],
                                        settings["mask_prob"])
            assert np.array_equal(shown, golden[f"{at}/input_ids"])
            assert np.array_equal(np.where(chosen, ids, -100), golden[f"{at}/labels"])
        assert f"{case}/epoch{epoch}/{len(batches)}/input_ids" not in golden


@pytest.fixture(name="made", scope="module")
def fixture_made(test_data):
    tokenizer = open_tokenizer(str(test_data / "golden/modernbert/tokenizer"))
    lines = (test_data / "text/books_sent.txt").read_text().splitlines()[:16]
    documents = tokenize_documents(with_blanks([*lines[:9], "", *lines[9:], ""], " "), tokenizer)

    def make(**corruption):
        options = types.SimpleNamespace(max_seq_length=SIZE, max_predictions_per_seq=SLOTS,
                                        masked_lm_prob=0.3, dupe_factor=2)
        return create_instances(documents, tokenizer.vocabulary, 5,
                                find("modernbert").vary(corruption=corruption), options)
    return make, tokenizer, lines


def test_records_are_packed_rows_of_whole_documents(made):
    make, tokenizer, lines = made
    rows = make()
    found = rows.features(rows.order, SIZE, tokenizer.vocabulary)
    assert list(found) == ["input_ids", "input_mask", "sequence_ids"]
    assert found["input_mask"].mean() > 0.98
    ids, numbers, vocabulary = *(found[name] for name in ("input_ids", "sequence_ids")), \
        tokenizer.vocabulary
    starts = np.diff(numbers, prepend=0, axis=1) > 0
    assert np.array_equal(ids == vocabulary.cls_id, starts)
    assert np.array_equal(numbers > 0, found["input_mask"])
    # Each of two readings has all of the text, whose lines have a blank between them.
    sequences = [ids[row][numbers[row] == number] for row in range(len(ids))
                 for number in range(1, numbers[row].max() + 1)]
    text = " ".join(lines[9:])
    expected = tokenizer.encode_lines([text])[0].tolist()
    first = [vocabulary.cls_id, *expected[:SIZE - 2], vocabulary.sep_id]
    assert sum(each.tolist() == first for each in sequences) == 2
    assert sum(map(len, sequences)) == found["input_mask"].sum() == 2 * len(
        rows.documents.tokens) + 2 * len(sequences)


def test_masks_in_records_are_drawn_by_batches(made):
    make, tokenizer, _ = made
    vocabulary, plain = tokenizer.vocabulary, make()
    rows = make(dynamic=False)
    half = len(rows.order) // 2
    assert half <= 64       # one batch
    shown = rows.features(rows.order, SIZE, vocabulary)
    ids, numbers = plain.pack(plain.order, SIZE, vocabulary)
    for epoch in range(2):
        part = slice(epoch * half, (epoch + 1) * half)
        expected, chosen = mask_places(ids[part], numbers[part] > 0,
                                       np.random.default_rng(5 + epoch), vocabulary.mask_id)
        is_token = numbers[part] > 0
        used = shown["masked_lm_weights"][part] > 0
        at = np.nonzero(used)[0], shown["masked_lm_positions"][part][used]
        if chosen.sum(1).max() <= SLOTS:
            assert np.array_equal(shown["input_ids"][part][is_token], expected[is_token])
            assert used.sum() == chosen.sum()
        assert np.array_equal(shown["masked_lm_ids"][part][used], ids[part][at])
        assert chosen[at].all()
    labels = shown["masked_lm_ids"][shown["masked_lm_weights"] > 0]
    assert vocabulary.cls_id in labels and rows.cut == 0
    spared = make(dynamic=False, mask_special_tokens=False)
    hidden = spared.features(rows.order, SIZE, vocabulary)
    labels = hidden["masked_lm_ids"][hidden["masked_lm_weights"] > 0]
    assert not {vocabulary.cls_id, vocabulary.sep_id} & {*labels.tolist()}


@pytest.mark.parametrize("specials", [True, False])
def test_training_draws_masks_of_the_same_kind(specials):
    vocab_size, mask_id = 500, 4
    corruption = find("modernbert").corruption.vary({"mask_special_tokens": specials})
    masks = masking.find(corruption).dynamic_masks(
        {"vocabulary": {"size": vocab_size, "cls_id": 1, "sep_id": 2, "mask_id": mask_id},
         "options": {"masked_lm_prob": 0.3}}, 128, 80)
    rng = np.random.default_rng(0)
    lengths = rng.integers(40, 129, (64, 1))
    is_token = np.arange(128) < lengths
    ids = np.where(is_token, rng.integers(5, 400, (64, 128)), 3).astype("int32")
    ids[:, 0] = 1
    drawn = {name: np.array(value) for name, value in masks(
        {"input_ids": ids, "input_mask": is_token.astype("int32")}, 7, np.arange(64)).items()}
    used = drawn["masked_lm_weights"] > 0
    at = np.nonzero(used)[0], drawn["masked_lm_positions"][used]
    assert np.array_equal(drawn["masked_lm_ids"][used], ids[at]) and is_token[at].all()
    shown = drawn["input_ids"][at]
    assert np.array_equal(np.argwhere(drawn["input_ids"] != ids),
                          np.argwhere((drawn["input_ids"] != ids) & is_token))
    assert 0.28 < used.sum() / is_token.sum() < 0.32
    is_random = (shown != ids[at]) & (shown != mask_id)
    assert 0.77 < np.mean(shown == mask_id) < 0.83 and 0.08 < np.mean(is_random) < 0.12
    # Up to the largest id of the batch, or of the whole vocabulary.
    assert (1 in drawn["masked_lm_ids"][used]) == specials
    assert (shown[is_random].max() < 400) == specials


@pytest.mark.parametrize("units, pairing, problem", [
    ("words", "document_runs", "--masking_units=words .* draws single tokens"),
    ("subwords", "segment_pairs", "--segments=segment_pairs makes pairs, but")])
def test_what_packed_rows_do_not_hold_is_refused(units, pairing, problem):
    recipe = find("modernbert").vary({"pairing": pairing}, {"units": units})
    with pytest.raises(InputError, match=problem):
        masking.find(recipe.corruption).check(recipe.segments)
