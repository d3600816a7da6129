"""Dropout: a pure function of its seed, and different for different seeds."""

import itertools

import numpy as np
import pytest
from keras import ops

from bert_tf.layers.seeds import dropout, split_seed

ONES = np.ones((200, 500), "float32")


def mask(seed, rate=0.5):
    return np.array(dropout(ONES, rate, ops.convert_to_tensor(seed, "int32"))) > 0


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_rate_and_scale_over_many_draws(rate, dtype):
    ones = ops.convert_to_tensor(ONES, dtype)
    x = np.stack([ops.cast(dropout(ones, rate, ops.convert_to_tensor([7, step], "int32")),
                           "float32") for step in range(10)])
    assert np.mean(x == 0) == pytest.approx(rate, abs=4 * np.sqrt(rate * (1 - rate) / x.size))
    assert np.allclose(x[x > 0], 1 / (1 - rate), rtol=1e-6 if dtype == "float32" else 4e-3)


def test_same_seed_same_mask():
    assert np.array_equal(mask([3, 5]), mask([3, 5]))


def test_no_seed_or_no_rate_is_the_identity():
    assert dropout(ONES, 0.5, None) is ONES
    assert dropout(ONES, 0.0, ops.convert_to_tensor([1, 2], "int32")) is ONES
    assert split_seed(None, 2) == [None, None]


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_split_seeds_differ_between_layers_and_steps(dtype):
    seeds = {tuple(np.array(seed).tolist())
             for run, step in itertools.product(range(10), range(10))
             for seed in split_seed(ops.convert_to_tensor([run, step], dtype), 40)}
    assert len(seeds) == 10 * 10 * 40


def test_masks_of_neighbouring_layers_and_steps_are_unrelated():
    masks = [mask(seed) for step in range(2)
             for seed in split_seed(ops.convert_to_tensor([1, step], "int32"), 3)]
    for one, other in itertools.combinations(masks, 2):
        assert np.mean(one == other) == pytest.approx(0.5, abs=4 * 0.5 / np.sqrt(one.size))
