"""Traced functions whose graphs, with the weights that they hold, leave memory with their owner.

Keras and TensorFlow note at some tensors where they came from (the logits of a softmax, a slice's
assignment), which leads back to the graph through objects that Python's garbage collector cannot
see. TensorFlow also registers each `custom_gradient`, with its tensors, until the process ends.
"""

import functools
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf
from tensorflow.python.framework import ops

from bert_tf.errors import InputError

if keras.config.backend() != "tensorflow":
    raise InputError("prediction and the commands that train a model compute with TensorFlow, but "
                     f"KERAS_BACKEND is {keras.config.backend()}; set it to tensorflow.")

_NOTES = ("_keras_logits", "assign")


def compiled(function: Callable, **options: Any) -> Any:
    """Returns a `tf.function` without autograph, whose graphs leave memory with it. Others can't
    take gradients of these graphs, as they may of exported models."""
    @functools.wraps(function)
    def traced(*args: Any) -> Any:
        result = function(*args)
        if not tf.executing_eagerly():
            for op in tf.compat.v1.get_default_graph().get_operations():
                if op.type == "IdentityN":      # the outputs of a `custom_gradient`
                    attribute = op.node_def.attr.get("_gradient_op_type")
                    if attribute and attribute.s.startswith(b"CustomGradient-"):
                        ops.gradient_registry._registry.pop(attribute.s.decode(), None)
                for tensor in op.outputs:
                    for name in _NOTES:
                        getattr(tensor, "__dict__", {}).pop(name, None)
        return result
    return tf.function(traced, autograph=False, **options)
