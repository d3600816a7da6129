"""BERT's masks with a coin for each token: numbers of predictions are binomial."""

import types

import numpy as np
import pytest

from bert_tf import recipes
from bert_tf.data.instances.pretraining import create_instances
from bert_tf.data.masking import find
from bert_tf.recipes.recipe import MaskTokens
from data_prep.pretraining_flags import PretrainingDataFlags, recipe_defaults
from tests.data import test_dynamic_masks as rooms

PROB, SLOTS = 0.3, 40


def make(seed, units, is_dynamic, slots=SLOTS):
    """Records of a text with masks, and how many predictions had no room."""
    recipe = recipes.find("bert").vary({}, {"masking": "coin", "units": units,
                                            "dynamic": is_dynamic})
    options = types.SimpleNamespace(
        max_seq_length=rooms.SIZE, max_predictions_per_seq=slots, dupe_factor=5,
        short_seq_prob=0.1, masked_lm_prob=PROB)
    made = create_instances(rooms.documents(seed), rooms.VOCABULARY, seed, recipe, options)
    found = {name: value if value.dtype == np.float32 else value.astype(np.int32)
             for name, value in made.features(np.arange(len(made.slices)), rooms.SIZE,
                                              rooms.VOCABULARY).items()}
    if is_dynamic:
        known = rooms.VOCABULARY
        masks = find(recipe.corruption).dynamic_masks({
            "vocabulary": {"size": known.size, "mask_id": known.mask_id, "cls_id": known.cls_id,
                           "sep_id": known.sep_id},
            "options": {"masked_lm_prob": PROB}}, rooms.SIZE, slots)
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
        excess.append(number - PROB * tokens)
        squares.append(excess[-1]**2 / (tokens * PROB * (1 - PROB)))
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
