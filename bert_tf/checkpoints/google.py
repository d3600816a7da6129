"""Checkpoints of google-research/bert: TensorFlow 1 variables beside a `bert_config.json`."""

import contextlib
import functools
import os

from bert_tf.checkpoints.rules import Format, Tensor
from bert_tf.errors import InputError

_SELF = (("", ""),)
_DENSE = (("/kernel", "/kernel"), ("/bias", "/bias"))
_NORM = (("/gamma", "/gamma"), ("/beta", "/beta"))

FORMAT = Format(
    rows=(
        ("embeddings/word_embeddings", "bert/embeddings/word_embeddings", _SELF),
        ("embeddings/token_type_embeddings", "bert/embeddings/token_type_embeddings", _SELF),
        ("embeddings/position_embeddings", "bert/embeddings/position_embeddings", _SELF),
        ("embeddings/LayerNorm", "bert/embeddings/LayerNorm", _NORM),
        *((f"encoder/layer_{{i}}/{name}", f"bert/encoder/layer_{{i}}/{name}", endings)
          for name, endings in (
              ("attention/self/query", _DENSE),
              ("attention/self/key", _DENSE),
              ("attention/self/value", _DENSE),
              ("attention/output/dense", _DENSE),
              ("attention/output/LayerNorm", _NORM),
              ("intermediate/dense", _DENSE),
              ("output/dense", _DENSE),
              ("output/LayerNorm", _NORM))),
        ("pooler/dense", "bert/pooler/dense", _DENSE),
        ("masked_lm/transform/dense", "cls/predictions/transform/dense", _DENSE),
        ("masked_lm/transform/LayerNorm", "cls/predictions/transform/LayerNorm", _NORM),
        ("masked_lm/output_bias", "cls/predictions/output_bias", _SELF),
        ("next_sentence/dense", "cls/seq_relationship",
         (("/kernel", "/output_weights", "transpose"), ("/bias", "/output_bias"))),
    ),
    ignored=(
        (r"global_step|.*/adam_[mv]", "state of the optimizer"),
        (r"(cls/squad/)?output_(weights|bias)", "head of a fine-tuned task"),
    ),
)


def find(path):
    """The prefix of the checkpoint that `path` (a folder, a prefix, an index file) stands for, or
    None if there is none.

    In a folder the one index file counts, not the file `checkpoint`, which often names the path
    of another machine.

    Raises:
        InputError: the folder holds several checkpoints.
    """
    prefix = path.removesuffix(".index")
    if os.path.isfile(f"{prefix}.index"):
        return prefix
    if not os.path.isdir(path):
        return None
    names = sorted(name for name in os.listdir(path) if name.endswith(".index"))
    if len(names) > 1:
        raise InputError(f"{path} holds several checkpoints ({', '.join(names)}); name one.")
    return os.path.join(path, names[0].removesuffix(".index")) if names else None


def config_file(prefix):
    """Where Google keeps the configuration."""
    return os.path.join(os.path.dirname(prefix), "bert_config.json")


@contextlib.contextmanager
def _naming(prefix):
    """Turns what TensorFlow raises on a damaged file into an InputError that names the file."""
    try:
        yield
    except Exception as error:  # an OpError, ValueError, IndexError ..., as the damage has it
        raise InputError(f"{prefix}: can't be read as a checkpoint ({error}).") from error


def tensors(prefix):
    """A dict of the checkpoint's `Tensor`s by name.

    Raises:
        InputError: the checkpoint is damaged.
    """
    import tensorflow as tf  # pylint: disable=import-outside-toplevel

    with _naming(prefix):
        reader = tf.train.load_checkpoint(prefix)
        shapes, dtypes = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()

    def read(name):
        with _naming(prefix):
            return reader.get_tensor(name)

    return {name: Tensor(name, tuple(shape), dtypes[name].name, functools.partial(read, name))
            for name, shape in sorted(shapes.items())}
