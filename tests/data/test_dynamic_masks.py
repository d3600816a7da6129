"""Dynamic masks: other draws than static ones, by the same rules."""

import gc
import types

import numpy as np
import pytest
import tensorflow as tf

from bert_tf import recipes
from bert_tf.data.instances.pretraining import create_instances
from bert_tf.data.masking.bert import choose_units
from bert_tf.data.masking.dynamic import DynamicMasks
from bert_tf.data.text.corpus import Documents
from bert_tf.recipes.recipe import MaskTokens
from bert_tf.tokenization.vocabulary import Vocabulary

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORD, SUFFIX = 200, 100
VOCABULARY = Vocabulary([*SPECIAL, *(f"w{i}" for i in range(WORD)),
                         *(f"##{i}" for i in range(SUFFIX))])
SIZE, SLOTS, PROB = 64, 8, 0.15
UNITS = ("subwords", "words")


def dynamic(units="subwords", **changes):
    values = {"masking": MaskTokens(units=units, dynamic=True), "max_seq_length": SIZE,
              "max_predictions_per_seq": SLOTS, "masked_lm_prob": PROB,
              "vocab_size": VOCABULARY.size, "mask_id": VOCABULARY.mask_id,
              "special_ids": (VOCABULARY.cls_id, VOCABULARY.sep_id), **changes}
    return DynamicMasks(**values)


def documents(seed):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 30, 60)
    starts = np.concatenate([[0], np.cumsum(lengths)]).tolist()
    edges = list(range(0, 61, 6))
    tokens = rng.integers(len(SPECIAL), VOCABULARY.size, starts[-1]).astype(np.int32)
    return Documents(tokens, starts, list(zip(edges, edges[1:])),
                     (tokens >= len(SPECIAL) + WORD).astype(np.uint8))


def records(seed, units, is_dynamic, dupe_factor=5, recipe="bert"):
    recipe = recipes.find(recipe).vary({}, {"units": units, "dynamic": is_dynamic})
    options = types.SimpleNamespace(
        max_seq_length=SIZE, max_predictions_per_seq=SLOTS, dupe_factor=dupe_factor,
        short_seq_prob=0.1, masked_lm_prob=PROB)
    made = create_instances(documents(seed), VOCABULARY, seed, recipe, options)
    found = made.features(np.arange(len(made.slices)), SIZE, VOCABULARY)
    return {name: value if value.dtype == np.float32 else value.astype(np.int32)
            for name, value in found.items()}


def hidden(masks, found, seed=3, first=0):
    numbers = np.arange(first, first + len(found["input_ids"]))
    return {name: np.asarray(value) for name, value in masks(found, seed, numbers).items()}


@pytest.mark.parametrize("units", UNITS)
def test_records_hold_the_text_and_the_model_sees_the_masks(units):
    found = records(1, units, True)
    assert set(found) == {"input_ids", "input_mask", "segment_ids", "next_sentence_labels"} | (
        {"token_boundary"} if units == "words" else set())
    assert not (found["input_ids"] == VOCABULARY.mask_id).any()
    after = hidden(dynamic(units), found)
    assert set(after) == {*found, "masked_lm_positions", "masked_lm_ids", "masked_lm_weights"}
    restored, used = after["input_ids"].copy(), after["masked_lm_weights"] > 0
    row = np.nonzero(used)[0]
    restored[row, after["masked_lm_positions"][used]] = after["masked_lm_ids"][used]
    assert (restored == found["input_ids"]).all()
    assert (np.sort(~used, 1) == ~used).all()
    assert (np.diff(after["masked_lm_positions"], axis=1)[used[:, 1:]] > 0).all()
    assert not after["masked_lm_positions"][~used].any() and not after["masked_lm_ids"][~used].any()


def test_boundaries_are_where_words_begin():
    found = records(1, "words", True)
    ids, mask = found["input_ids"], found["input_mask"] > 0
    assert (found["token_boundary"] == (mask & (ids < len(SPECIAL) + WORD))).all()


class Order:
    """Stands for a random stream: its shuffle sorts units by given numbers."""

    def __init__(self, keys):
        self._keys = keys

    def shuffle(self, units):
        units[:] = [units[index] for index in np.argsort(self._keys[:len(units)])]


def groups_of(ids, length, units):
    groups = []
    for position in range(1, length):
        if ids[position] == VOCABULARY.sep_id:
            continue
        if units == "words" and groups and ids[position] >= len(SPECIAL) + WORD:
            groups[-1].append(position)
        else:
            groups.append([position])
    return groups


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("prob", [0.15, 0.7])
def test_the_choice_is_that_of_one_sequence_at_a_time(units, prob):
    slots = 40
    masks = dynamic(units, masked_lm_prob=prob, max_predictions_per_seq=slots)
    found = records(2, units, True, dupe_factor=2)
    uniforms = np.random.default_rng(1).random(
        (len(found["input_ids"]), SIZE + 2 * slots), np.float32)
    after = masks.hide(found["input_ids"], found["input_mask"], uniforms,
                       found.get("token_boundary"))
    for row, ids in enumerate(found["input_ids"]):
        length = found["input_mask"][row].sum()
        groups = groups_of(ids, length, units)
        quota = min(slots, max(1, round(int(length) * prob)))
        # Where every token is a unit, the keys are those of positions.
        firsts = [group[0] for group in groups]
        keys = uniforms[row][firsts] if units == "subwords" else uniforms[row]
        chosen = sorted(choose_units(groups, quota, Order(keys)))
        used = np.asarray(after["masked_lm_weights"])[row] > 0
        assert np.asarray(after["masked_lm_positions"])[row][used].tolist() == chosen


@pytest.mark.parametrize("units", UNITS)
def test_a_record_has_its_mask_in_any_batch(units):
    found, masks = records(1, units, True), dynamic(units)
    whole = hidden(masks, found)
    part = hidden(masks, {name: value[5:9] for name, value in found.items()}, first=5)
    assert all((part[name] == whole[name][5:9]).all() for name in whole)
    graph = tf.function(masks, autograph=False)(
        found, 3, tf.range(len(found["input_ids"]), dtype=tf.int64))
    assert all((np.asarray(graph[name]) == whole[name]).all() for name in whole)
    alone = tf.data.Dataset.from_tensors({name: value[5:6] for name, value in found.items()}).map(
        lambda batch: masks(batch, 3, tf.constant([5], tf.int64)))
    assert all((values == whole[name][5:6]).all()
               for name, values in next(alone.as_numpy_iterator()).items())
    for other in (hidden(masks, found, seed=4), hidden(masks, found, first=1)):
        assert (other["masked_lm_positions"] != whole["masked_lm_positions"]).mean() > 0.5


def counts(found):
    """Sums over records: candidates, predictions, the three kinds, and predictions by place."""
    used = found["masked_lm_weights"] > 0
    row, position = np.nonzero(used)[0], found["masked_lm_positions"][used]
    label, shown = found["masked_lm_ids"][used], found["input_ids"][row, position]
    length = found["input_mask"].sum(1)[row]
    place = position * 8 // length
    return np.array([len(label), (shown == VOCABULARY.mask_id).sum(), (shown == label).sum(),
                     *np.bincount(place, minlength=8)])


@pytest.mark.parametrize("shares", [(1.0, 0.0), (0.0, 1.0), (0.0, 0.0), (0.5, 0.25), (0.8, 0.2)])
def test_shares_of_static_and_dynamic_masks(shares):
    recipe = recipes.find("bert").vary({}, {"shares": shares})
    options = types.SimpleNamespace(max_seq_length=SIZE, max_predictions_per_seq=SLOTS,
                                    dupe_factor=20, short_seq_prob=0.1, masked_lm_prob=PROB)
    made = create_instances(documents(1), VOCABULARY, 1, recipe, options)
    static = made.features(np.arange(len(made.slices)), SIZE, VOCABULARY)
    found = hidden(dynamic(masking=recipe.corruption), records(1, "subwords", True, 20))
    for features in (static, found):
        total, masked, kept, *_ = counts(features)
        # A random token is [MASK] or the token itself once in VOCABULARY.size times.
        expected = np.array([shares[0], 1 - sum(shares)]) + shares[1] / VOCABULARY.size
        error = np.sqrt(expected * (1 - expected) / total)
        assert (np.abs(np.array([masked, kept]) / total - expected) <= 4 * error).all()


def test_a_blank_record_has_no_predictions():
    blank = np.zeros((2, SIZE), np.int32)
    after = hidden(dynamic(), {"input_ids": blank, "input_mask": blank})
    assert not any(value.any() for value in after.values())


def test_more_slots_than_positions():
    slots = SIZE + 10
    found = records(1, "subwords", True)
    after = hidden(dynamic(max_predictions_per_seq=slots, masked_lm_prob=1.0), found)
    assert after["masked_lm_weights"].shape[1] == slots
    specials = 3
    assert (after["masked_lm_weights"].sum(1) == found["input_mask"].sum(1) - specials).all()


def test_nothing_of_a_piece_outlives_it():
    # What only the garbage collector frees would be in memory beside the next piece.
    gc.freeze()     # what other tests left: to look through it takes minutes
    records(0, "subwords", False)
    gc.collect()
    gc.disable()
    try:
        records(0, "subwords", False)
        assert gc.collect() == 0
    finally:
        gc.enable()
