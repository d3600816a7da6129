"""Masks whose positions are drawn with replacement: the original's draws, and a slow reference."""

import json

import numpy as np
import pytest
import tensorflow as tf

from bert_tf import recipes
from bert_tf.data.masking import find
from bert_tf.data.masking.dynamic import draw_uniforms
from bert_tf.models.electra.masks import RepeatedMasks, hide_with_repeats
from tests.goldens import at_hand

CLS, SEP, MASK, VOCAB = 2, 3, 4, 50
SIZE, PROB = 40, 0.15
MASKING = find(recipes.find("electra").corruption)
SLOTS = MASKING.most_predictions(SIZE, PROB)


def masks(**changes):
    return RepeatedMasks(**{"masking": MASKING, "max_seq_length": SIZE, "masked_lm_prob": PROB,
                           "max_predictions_per_seq": SLOTS, "vocab_size": VOCAB,
                           "mask_id": MASK, "special_ids": (CLS, SEP), **changes})


def batch(seed, rows=64):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(3, SIZE + 1, rows)
    mask = (np.arange(SIZE) < lengths[:, None]).astype(np.int32)
    ids = rng.integers(1, VOCAB, (rows, SIZE)) * mask       # some are special tokens
    ids[:, 0] = CLS
    ids[np.arange(rows), lengths - 1] = SEP
    return {"input_ids": ids.astype(np.int32), "input_mask": mask}


def reference(ids, length, uniforms):
    """Hidden ids, positions, labels of one record: the sheet's rules, one draw at a time."""
    places = [i for i in range(length) if ids[i] not in (CLS, SEP, MASK)]
    count = max(1, min(SLOTS, int(np.round(np.float32(PROB) * np.float32(length)))))
    positions, labels, hidden = [], [], list(ids)
    for slot in range(count if places else 0):
        place = places[int(np.float32(uniforms[slot]) * np.float32(len(places)))]
        positions.append(place)
        labels.append(ids[place])
        if uniforms[SLOTS + slot] < np.float32(0.85):
            hidden[place] = MASK
    return hidden, positions, labels


@pytest.mark.parametrize("seed", range(3))
def test_the_slow_reference(seed):
    found, numbers = batch(seed), np.arange(64) + 1000 * seed
    uniforms = draw_uniforms(seed, numbers, SIZE + 2 * SLOTS).numpy()
    after = {name: np.asarray(value) for name, value in masks()(found, seed, numbers).items()}
    for row in range(64):
        hidden, positions, labels = reference(
            found["input_ids"][row].tolist(), found["input_mask"][row].sum(), uniforms[row])
        rest = [0] * (SLOTS - len(positions))
        assert after["input_ids"][row].tolist() == hidden
        assert after["masked_lm_positions"][row].tolist() == positions + rest
        assert after["masked_lm_ids"][row].tolist() == labels + rest
        assert after["masked_lm_weights"][row].tolist() == [1] * len(positions) + rest
    part = masks()({name: value[7:9] for name, value in found.items()}, seed, numbers[7:9])
    assert all((np.asarray(part[name]) == after[name][7:9]).all() for name in after)


def test_positions_are_equally_likely_and_come_again():
    found = {name: np.repeat(value[3:4], 20_000, 0) for name, value in batch(5).items()}
    after = {name: np.asarray(value)
             for name, value in masks()(found, 1, np.arange(20_000)).items()}
    used = after["masked_lm_weights"] > 0
    candidates = np.isin(found["input_ids"][0], [CLS, SEP, MASK, 0], invert=True)
    counts = np.bincount(after["masked_lm_positions"][used], minlength=SIZE)
    expected = used.sum() / candidates.sum()
    assert not counts[~candidates].any()
    assert (np.abs(counts[candidates] - expected) < 5 * np.sqrt(expected)).all()
    first = after["masked_lm_positions"][:, :2]
    again = (first[:, 0] == first[:, 1]).mean()
    assert again == pytest.approx(1 / candidates.sum(), abs=0.006)


@pytest.mark.parametrize("size, prob, most", [(128, .15, 19), (512, .15, 79), (512, .25, 130)])
def test_the_number_of_slots(size, prob, most):
    assert MASKING.most_predictions(size, prob) == most
    assert find(recipes.find("bert").corruption).most_predictions(size, prob) is None


def test_a_blank_record_has_no_predictions():
    blank = np.zeros((2, SIZE), np.int32)
    after = masks()({"input_ids": blank, "input_mask": blank}, 1, np.arange(2))
    assert not any(np.asarray(value).any() for name, value in after.items() if name != "draws")


@pytest.mark.parametrize("name", at_hand("golden/electra/pretraining_{}.npz", [
    "small_generator", "embedding_is_generator_width", "no_projection_half_depth",
    "untied_embeddings", "all_tied", "uniform_generator", "masked_lm_only"]))
def test_the_original_masks(test_data, name):
    golden = np.load(test_data / f"golden/electra/pretraining_{name}.npz")
    options = json.loads(str(golden["options"]))
    ids, mask, positions, keep = (tf.constant(golden[key]) for key in (
        "batch/input_ids", "batch/input_mask", "draws/positions", "draws/keep"))
    found = hide_with_repeats(ids, mask, positions, keep, options.get("mask_prob", 0.15), 0.85,
                              int(golden["special/mask_id"]))
    assert (found.pop("input_ids").numpy() == golden["outputs/masked_input_ids"]).all()
    for key, value in found.items():
        assert (value.numpy() == golden[f"outputs/{key}"]).all()
