"""Keeps quiet about XLA, which compiles parts of a training step, and about steps that are traced
again."""

import functools
import os

import lazy_loader

tf = lazy_loader.load("tensorflow")


@functools.cache
def silence_compiler() -> None:
    """Compiles something small with XLA while nothing is written to stderr.

    With the first thing that XLA compiles in a process, TensorFlow writes two lines, which only
    TF_CPP_MIN_LOG_LEVEL=0 should show.
    """
    if os.environ.get("TF_CPP_MIN_LOG_LEVEL") == "0":
        return
    try:
        stderr = os.dup(2)
    except OSError:     # it is closed
        return
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), 2)
    try:
        with tf.init_scope():
            tf.function(tf.identity, jit_compile=True, autograph=False)(tf.constant(0))
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)


def silence_tracing() -> None:
    """Leaves out TensorFlow's warnings of functions that are traced for several shapes."""
    tf.get_logger().addFilter(_is_of_use)


def _is_of_use(record):
    return "triggered tf.function retracing" not in record.getMessage()
