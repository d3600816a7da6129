"""Traced functions whose graphs, with the weights that they hold, leave memory with their owner.

Keras and TensorFlow note at some tensors of a graph where they came from: the logits of a softmax
or a sigmoid, the assignment to a slice of a variable. Such a note leads from the graph back to the
graph through objects that Python's garbage collector cannot see. TensorFlow also registers each
gradient of `custom_gradient`, which holds tensors of the graph, until the process ends. Both keep
the graph in memory, with the weights, moments and gradients of a network that nobody uses.
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
    """Returns a `tf.function` without autograph, whose graphs leave memory with it.

    The function must take all its gradients itself, since its graphs have no others. So exported
    models, which others may train, are not such functions."""
    return tf.function(_releasing(function), autograph=False, **options)


def _releasing(function):
    """The function, whose tracing ends without the notes and the registered gradients."""
    @functools.wraps(function)
    def traced(*args: Any) -> Any:
        result = function(*args)
        if not tf.executing_eagerly():
            for op in tf.compat.v1.get_default_graph().get_operations():
                if op.type == "IdentityN":      # the outputs of a `custom_gradient`
                    ops.gradient_registry._registry.pop(_gradient_of(op), None)
                for tensor in op.outputs:
                    for name in _NOTES:
                        getattr(tensor, "__dict__", {}).pop(name, None)
        return result
    return traced


def _gradient_of(op):
    """The name of the gradient of a `custom_gradient`'s operation; None of other operations."""
    attribute = op.node_def.attr.get("_gradient_op_type")
    name = attribute.s.decode() if attribute else ""
    return name if name.startswith("CustomGradient-") else None
