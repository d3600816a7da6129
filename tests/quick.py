"""What of TensorFlow, Keras and Python takes long and decides no test, for the process of the tests
(conftest.py) and those that it starts (preload.py)."""

import functools
import math
import types
import typing

import keras
import tensorflow as tf
from keras.src.backend.common import global_state
from keras.src.saving import saving_lib
from keras.src.utils import traceback_utils as keras_tracebacks
from tensorflow.python import pywrap_tfe
from tensorflow.python.framework import ops
from tensorflow.python.ops import gen_resource_variable_ops
from tensorflow.python.util import traceback_utils as tf_tracebacks


def save_time():
    """Leaves it out of this process."""
    # Seeds and sessions that begin anew forget the kernels of all operations, whose making takes
    # longer than what a test computes with them.
    pywrap_tfe.TFE_ContextClearCaches = lambda context: None
    # A cleared session looks through all that the tests before have made, too.
    global_state.gc = types.SimpleNamespace(collect=lambda: 0)
    # It forgets what no layer saves, too, which is then looked for by making one.
    saving_lib.get_attr_skipset = functools.cache(saving_lib.get_attr_skipset)
    if keras.backend.backend() == "tensorflow":
        # Tests are seeded alike: the weights of a model are mostly those of models before it.
        for kind in ("TruncatedNormal", "RandomNormal", "RandomUniform", "VarianceScaling", "Zeros",
                     "Ones"):
            initializer = getattr(keras.initializers, kind)
            initializer.__call__ = _draw_once(initializer.__call__)
    # With the name of each variable, its operation would be another, whose kernel is made anew.
    make_handle = gen_resource_variable_ops.var_handle_op
    gen_resource_variable_ops.var_handle_op = (
        lambda *args, debug_name="", **options: make_handle(*args, **options))
    # What a protocol asks for is gathered for each tensor; Python 3.12 does it once.
    typing._get_protocol_attrs = functools.cache(typing._get_protocol_attrs)
    # Whether tracebacks leave out lines of TensorFlow and Keras is asked at each operation.
    tf_tracebacks.is_traceback_filtering_enabled = lambda: False
    keras_tracebacks.is_traceback_filtering_enabled = lambda: False
    # An operation of a graph remembers the lines that made it, which nobody asks for here.
    ops._create_c_op.__wrapped__.__defaults__ = None, False


def _draw_once(draw):
    """What an initializer does, which draws the weights of a seed and a shape once."""
    drawn = {}

    def take(self, shape, dtype=None):
        if not (isinstance(getattr(self, "seed", 0), int) and math.prod(shape) < 100_000
                and tf.executing_eagerly()):
            return draw(self, shape, dtype)
        key = repr((vars(self), tuple(shape), dtype))
        if key not in drawn:
            drawn[key] = draw(self, shape, dtype)
        return drawn[key]
    return take
