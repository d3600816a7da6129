"""Pooling, beside one text at a time without padding."""

import numpy as np
import pytest

from bert_tf.layers.functions import pool

RNG = np.random.default_rng(0)
VECTORS = RNG.normal(-3, 1, (5, 7, 4)).astype("float32")
LENGTHS = [7, 1, 3, 6, 2]
MASK = np.array([[1] * n + [0] * (7 - n) for n in LENGTHS], "int32")


@pytest.mark.parametrize("pooling, of_one", [
    ("cls", lambda tokens: tokens[0]), ("mean", lambda tokens: tokens.mean(0)),
    ("max", lambda tokens: tokens.max(0))])
@pytest.mark.parametrize("padding", [0, 100, np.nan])
def test_padding_has_no_part_in_it(pooling, of_one, padding):
    padded = np.where(MASK[:, :, None] == 1, VECTORS, np.float32(padding))
    expected = [of_one(text[:length]) for text, length in zip(VECTORS, LENGTHS)]
    np.testing.assert_allclose(np.array(pool(padded, MASK, pooling)), expected, rtol=1e-5)
    unit = expected / np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(np.array(pool(padded, MASK, pooling, True)), unit, rtol=1e-5)


def test_tokens_as_they_are():
    np.testing.assert_array_equal(np.array(pool(VECTORS, MASK, "none")), VECTORS)
    norms = np.linalg.norm(np.array(pool(VECTORS, MASK, "none", True)), axis=-1)
    np.testing.assert_allclose(norms, 1, rtol=1e-5)


def test_the_mean_of_bfloat16_is_taken_in_float32():
    ones = np.ones((1, 512, 2), "float32")
    ones[0, 0] = 2
    from keras import ops
    mean = pool(ops.cast(ones, "bfloat16"), np.ones((1, 512), "int32"), "mean")
    np.testing.assert_allclose(np.array(mean), 513 / 512, rtol=1e-6)
