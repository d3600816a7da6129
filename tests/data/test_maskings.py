"""Maskings: their settings in manifests, coins for each word, n-grams."""

import dataclasses
import sys
import types

import numpy as np
import pytest
import tensorflow as tf

from bert_tf import recipes
from bert_tf.data import masking
from bert_tf.data.instances.pretraining import create_instances
from bert_tf.data.masking import base, find
from bert_tf.errors import InputError
from bert_tf.recipes.recipe import MaskTokens
from data_prep.pretraining_flags import PretrainingDataFlags, recipe_defaults
from tests.data import test_dynamic_masks as rooms
from tests.data.test_dynamic_masks import (
    PROB,
    SIZE,
    SLOTS,
    UNITS,
    VOCABULARY,
    groups_of,
    hidden,
    records,
)

_TOKENS = {"units": "subwords", "shares": [0.8, 0.1], "replace_from": "vocabulary",
           "dynamic": False, "settings": {}}
_WORDS = {**_TOKENS, "units": "words"}
WRITTEN = {
    "bert": {**_TOKENS, "masking": "bert"},
    "bert_wwm": {**_WORDS, "masking": "bert"},
    "roberta": {**_TOKENS, "masking": "roberta", "replace_from": "words", "dynamic": True},
    "electra": {**_TOKENS, "masking": "electra", "shares": [0.85, 0.0], "dynamic": True},
    "albert": {**_WORDS, "masking": "albert"},
    "spanbert": {**_WORDS, "masking": "spanbert", "replace_from": "corpus", "dynamic": True},
    "structbert": {**_TOKENS, "masking": "structbert"},
    "xlnet": {**_TOKENS, "masking": "xlnet", "dynamic": True},
}


@pytest.mark.parametrize("name", WRITTEN)
def test_manifests_have_all_fields_of_a_masking(name):
    corruption = recipes.find(name).corruption
    assert corruption.describe() == WRITTEN[name]
    assert MaskTokens.from_description(WRITTEN[name]) == corruption


def test_settings_of_one_masking_are_written():
    varied = recipes.find("spanbert").corruption.vary(
        {"schemes": ("random", "ner_span"), "span_upper": 5, "dynamic": False})
    written = {**WRITTEN["spanbert"], "dynamic": False, "settings": {
        "schemes": ["random", "ner_span"], "span_upper": 5}}
    assert varied.describe() == written and MaskTokens.from_description(written) == varied
    assert masking.find(varied).schemes == ("random", "ner_span")
    with pytest.raises(InputError, match="bert has no setting span_upper.*later version"):
        masking.find(MaskTokens.from_description({"settings": {"span_upper": 5}}))


@pytest.mark.parametrize("name", ["lamb", "os.path", "..bert"])
def test_a_masking_of_a_later_version_is_refused(name):
    with pytest.raises(InputError, match="no masking .*later version"):
        masking.find(MaskTokens.from_description({"masking": name}))


@pytest.fixture(name="last_words")
def fixture_last_words(monkeypatch):
    """A masking in a file of its own, which only records can hold."""
    @dataclasses.dataclass(frozen=True)
    class Masking(base.Masking):
        called = "last words"

        def static_masks(self, documents, vocabulary, stream, options, room):
            raise NotImplementedError

    module = types.ModuleType("bert_tf.last_words")
    module.Masking = Masking
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(masking.MASKINGS, "last_words", "last_words.Masking")
    return MaskTokens("last_words")


def test_masks_that_training_cannot_draw_are_refused(last_words):
    found = masking.find(last_words)
    found.check(recipes.Segments())
    assert not found.can_be_dynamic and last_words.describe()["masking"] == "last_words"
    assert MaskTokens.from_description(last_words.describe()) == last_words
    with pytest.raises(InputError, match="--masking=dynamic: the recipe masks last words"):
        masking.find(last_words.vary({"dynamic": True})).check(recipes.Segments())


def test_only_these_masks_are_drawn_while_training():
    drawn = {name for name, recipe in recipes.RECIPES.items()
             if masking.find(recipe.corruption).can_be_dynamic}
    assert drawn.isdisjoint({"structbert", "ltr", "t5"})
    assert drawn >= {"bert", "albert", "roberta", "electra", "spanbert", "ernie", "distilbert",
                     "xlnet"}


# Coins

COIN_PROB, COIN_SLOTS = 0.3, 40


def make(seed, units, is_dynamic, slots=COIN_SLOTS):
    """Records of a text with masks, and how many predictions had no room."""
    recipe = recipes.find("bert").vary({}, {"masking": "coin", "units": units,
                                            "dynamic": is_dynamic})
    options = types.SimpleNamespace(
        max_seq_length=rooms.SIZE, max_predictions_per_seq=slots, dupe_factor=5,
        short_seq_prob=0.1, masked_lm_prob=COIN_PROB)
    made = create_instances(rooms.documents(seed), rooms.VOCABULARY, seed, recipe, options)
    found = {name: value if value.dtype == np.float32 else value.astype(np.int32)
             for name, value in made.features(np.arange(len(made.slices)), rooms.SIZE,
                                              rooms.VOCABULARY).items()}
    if is_dynamic:
        known = rooms.VOCABULARY
        masks = find(recipe.corruption).dynamic_masks({
            "vocabulary": {"size": known.size, "mask_id": known.mask_id, "cls_id": known.cls_id,
                           "sep_id": known.sep_id},
            "options": {"masked_lm_prob": COIN_PROB}}, rooms.SIZE, slots)
        found = rooms.hidden(masks, found, seed)
    return found, made.cut


@pytest.mark.parametrize("is_dynamic", [False, True])
def test_numbers_of_predictions_are_binomial(is_dynamic):
    """Their means and their variances, within three standard errors; the throws are BERT's."""
    excess, squares, counts = [], [], np.zeros(3)
    for seed in range(12):
        found, cut = make(seed, "subwords", is_dynamic)
        assert not cut
        tokens = found["input_mask"].sum(1) - 3
        number = found["masked_lm_weights"].sum(1)
        excess.append(number - COIN_PROB * tokens)
        squares.append(excess[-1]**2 / (tokens * COIN_PROB * (1 - COIN_PROB)))
        counts += rooms.counts(found)[:3]
    for values, wanted in ((np.concatenate(excess), 0.0), (np.concatenate(squares), 1.0)):
        assert abs(values.mean() - wanted) < 3 * values.std(ddof=1) / len(values) ** 0.5
    assert counts[1:] / counts[0] == pytest.approx([0.8, 0.1], abs=0.01)


def test_all_of_a_word_or_none():
    found, _ = make(1, "words", False)
    used = found["masked_lm_weights"] > 0
    chosen = np.zeros(found["input_ids"].shape, bool)
    chosen[np.nonzero(used)[0], found["masked_lm_positions"][used]] = True
    ids = found["input_ids"].copy()
    ids[np.nonzero(used)[0], found["masked_lm_positions"][used]] = found["masked_lm_ids"][used]
    goes_on = ids[:, 1:] >= len(rooms.SPECIAL) + rooms.WORD
    follows = goes_on & (ids[:, :-1] >= len(rooms.SPECIAL))
    assert follows.sum() > 500
    assert (chosen[:, 1:] == chosen[:, :-1])[follows].all()


def test_predictions_without_room_are_counted():
    found, cut = make(1, "subwords", False, slots=10)
    whole, none = make(1, "subwords", False)
    assert none == 0 < cut and found["masked_lm_weights"].sum(1).max() == 10
    assert whole["masked_lm_weights"].sum(1).max() > 10


def test_flags_give_room_and_refuse_other_maskings():
    job = PretrainingDataFlags(input_file=["t"], output_file=["r"], vocab_file="v", mask_by="coin")
    recipe = job.resolve()
    assert recipe.corruption.masking == "coin"
    assert MaskTokens.from_description(recipe.corruption.describe()) == recipe.corruption
    given = {"recipe": "bert", "max_seq_length": 128}
    assert recipe_defaults({**given, "mask_by": "coin"})[1]["max_predictions_per_seq"] == 43
    assert "max_predictions_per_seq" not in recipe_defaults(given)[1]


# N-grams

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
