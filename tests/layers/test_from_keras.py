"""What layers take from Keras, in other words."""

import keras
import numpy as np
import pytest

from bert_tf.layers.from_keras import argmax


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("shape", [(5, 1), (40, 7), (3, 4, 2000)])
def test_argmax_is_numpys_also_of_equal_elements(shape, dtype):
    values = np.random.default_rng(1).integers(-2, 3, shape).astype("float32")
    values[..., :1][values[..., :1] == 0] = -0.0        # negative zeros equal zeros
    found = argmax(keras.ops.cast(values, dtype))
    assert keras.backend.standardize_dtype(found.dtype) == "int32"
    np.testing.assert_array_equal(found, values.argmax(-1))
