"""ALBERT's n-grams that are drawn while training: the rules and the distribution of static ones."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf import recipes
from bert_tf.data import masking
from bert_tf.errors import InputError
from tests.data.test_dynamic_masks import (
    PROB,
    SIZE,
    SLOTS,
    UNITS,
    VOCABULARY,
    counts,
    groups_of,
    hidden,
    records,
)


def albert(units="words", **settings):
    return recipes.find("albert").vary({}, {"units": units, "dynamic": True, **settings})


def masks_of(recipe, slots=SLOTS, prob=PROB):
    return masking.find(recipe.corruption).dynamic_masks({
        "options": {"masked_lm_prob": prob}, "vocabulary": {
            "size": VOCABULARY.size, "mask_id": VOCABULARY.mask_id,
            "cls_id": VOCABULARY.cls_id, "sep_id": VOCABULARY.sep_id}}, SIZE, slots)


def cover(groups, quota, order, lengths):
    """The loop of create_masked_lm_predictions, with the draws given."""
    chosen, covered = [], set()
    for first in order:
        if len(chosen) >= quota:
            break
        for length in range(lengths[first], 0, -1):
            tokens = sum(groups[first:first + length], [])
            if len(chosen) + len(tokens) <= quota:
                if not covered & set(tokens):
                    chosen += tokens
                    covered |= set(tokens)
                break
    return sorted(chosen)


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("prob, ngram, short", [
    (0.15, 3, True), (0.7, 3, False), (0.3, 1, True), (0.5, 12, False)])
def test_the_choice_is_the_loop_of_the_original(units, prob, ngram, short):
    slots = 40
    recipe = albert(units, ngram=ngram, favor_shorter_ngram=short)
    found, masks = records(2, units, True, 2, "albert"), masks_of(recipe, slots, prob)
    assert ("token_boundary" in found) == (units == "words")
    uniforms = np.random.default_rng(1).random((len(found["input_ids"]), masks.columns), np.float32)
    after = masks.hide(found["input_ids"], found["input_mask"], uniforms,
                       found.get("token_boundary"))
    shares = [1 / n for n in range(1, ngram + 1)][::1 if short else -1]
    limits = np.cumsum(shares) / sum(shares)
    for row, ids in enumerate(found["input_ids"]):
        length = int(found["input_mask"][row].sum())
        groups = groups_of(ids, length, units)
        keys, drawn = uniforms[row][:SIZE], uniforms[row][SIZE:2 * SIZE]
        lengths = 1 + np.searchsorted(limits[:-1], drawn, "right")
        chosen = cover(groups, min(slots, max(1, round(length * prob))),
                       np.argsort(keys[:len(groups)]), lengths)
        used = np.asarray(after["masked_lm_weights"])[row] > 0
        assert np.asarray(after["masked_lm_positions"])[row][used].tolist() == chosen


def test_masks_in_a_graph():
    recipe = albert()
    found, masks = records(1, "words", True, recipe="albert"), masks_of(recipe)
    graph = tf.function(lambda batch, numbers: masks(batch, 3, numbers), autograph=False,
                        input_signature=[{
                            name: tf.TensorSpec([None, *value.shape[1:]], value.dtype)
                            for name, value in found.items()}, tf.TensorSpec([None], tf.int64)])
    after = graph(found, tf.range(len(found["input_ids"]), dtype=tf.int64))
    for name, value in hidden(masks, found).items():
        assert np.array_equal(after[name], value)


def runs(found):
    """How many predictions have a predicted neighbour at their left, of all."""
    chosen = np.zeros((len(found["input_ids"]), SIZE + 1), bool)
    row, slot = np.nonzero(found["masked_lm_weights"])
    chosen[row, found["masked_lm_positions"][row, slot]] = True
    return (chosen[:, 1:] & chosen[:, :-1]).sum() / chosen.sum()


@pytest.mark.parametrize("units", UNITS)
def test_dynamic_ngrams_are_distributed_as_static_ones(units):
    """Over 20 seeds, within three standard errors of the difference."""
    figures = np.zeros((2, 20, 12))
    for seed in range(20):
        dynamic = albert(units)
        for kind, found in enumerate((
                records(seed, units, False, recipe="albert"),
                hidden(masks_of(dynamic), records(seed, units, True, recipe="albert"), seed))):
            total, *others = counts(found)
            figures[kind, seed] = [total / found["input_mask"].sum(), *np.divide(others, total),
                                   runs(found)]
    difference = figures[0].mean(0) - figures[1].mean(0)
    error = np.sqrt((figures.var(1, ddof=1) / 20).sum(0))
    assert (np.abs(difference) < 3 * error).all(), difference / error
    assert figures[1, :, -1].mean() > 0.3       # single tokens: about 0.15


def test_a_permutation_is_made_with_the_records():
    recipe = albert(do_permutation=True)
    with pytest.raises(InputError, match="leave out --do_permutation or --masking=dynamic"):
        masking.find(recipe.corruption).check(recipe.segments)
