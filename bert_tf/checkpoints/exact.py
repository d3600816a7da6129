"""Values in float32, if they are the same there."""

import numpy as np

from bert_tf.errors import InputError


def as_float32(tensor, source):
    """The values of a `Tensor` as float32, which is all that Keras's files of ours hold.

    Raises:
        InputError: a value would not be the same.
    """
    value = tensor.read()
    result = np.ascontiguousarray(value, "float32")
    if not np.array_equal(result.astype(value.dtype), value, equal_nan=True):
        raise InputError(f"{source}: tensor {tensor.name!r} is {tensor.dtype} and not the same in "
                         "float32, which is what this format holds; give --dtype=float32 to round "
                         "it.")
    return result
