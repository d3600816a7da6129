"""Checkpoints of google-research/bert: TensorFlow 1 variables beside a `bert_config.json`."""

import os

from bert_tf.checkpoints import folders, names, tensor_bundle
from bert_tf.checkpoints.rules import Format, Source, encoder_rows
from bert_tf.errors import InputError

_SELF = (("", ""),)
_DENSE = (("/kernel", "/kernel"), ("/bias", "/bias"))
_NORM = (("/gamma", "/gamma"), ("/beta", "/beta"))
# The original's own classifiers hold the kernel transposed, in two variables side by side.
_HEAD = (("/kernel", "weights", "transpose"), ("/bias", "bias"))

_ROWS = (
    *encoder_rows({"table": _SELF, "norm": _NORM, "dense": _DENSE},
                  (f"bert/embeddings/{name}" for name in names.EMBEDDINGS),
                  "bert/encoder/layer_{i}/", names.LAYER),
    ("pooler/dense", "bert/pooler/dense", _DENSE),
    ("masked_lm/transform/dense", "cls/predictions/transform/dense", _DENSE),
    ("masked_lm/transform/LayerNorm", "cls/predictions/transform/LayerNorm", _NORM),
    ("masked_lm/output_bias", "cls/predictions/output_bias", _SELF),
    ("next_sentence/dense", "cls/seq_relationship/output_", _HEAD),
    ("answer_span/dense", "cls/squad/output_", _HEAD),
)
_IGNORED = ((r"global_step|.*/adam_[mv]", "state of the optimizer"),)


def _table(task):
    return Format((*_ROWS, (f"{task}/dense", "output_", _HEAD)), _IGNORED)


def find(path):
    """The prefix of the checkpoint that `path` stands for, or None."""
    prefix = folders.find_index(path)
    return prefix if prefix and not folders.is_object_checkpoint(prefix) else None


def read(prefix, task=None):
    """The `Source` of a checkpoint.

    Args:
        prefix: what `find` gave.
        task: the head that `output_weights` is, which the file doesn't tell.

    Raises:
        InputError: a file is damaged.
    """
    return Source(prefix, folders.read_config(prefix), tensor_bundle.tensors(prefix),
                  _table(task if task in names.CLASSIFIERS else names.CLASSIFIERS[0]),
                  folders.vocabulary_beside(prefix))


def table_for(weights):
    """The table to write `weights` with.

    Raises:
        InputError: the original's code would compute something else from them.
    """
    folders.check_original(weights)
    tasks = [name for name in names.CLASSIFIERS if name in weights.heads]
    if len(tasks) > 1:
        raise InputError(f"{weights.source} has the heads {' and '.join(tasks)}, which Google's "
                         "checkpoints all call output_weights; take one out.")
    return _table(tasks[0] if tasks else names.CLASSIFIERS[0])


def write(folder, weights, tensors):
    """Writes `bert_model.ckpt.*`, `bert_config.json` and `vocab.txt` into `folder`.

    Args:
        folder: where.
        weights: `Weights`.
        tensors: a dict of `Tensor` by Google's names.
    """
    import tensorflow as tf  # pylint: disable=import-outside-toplevel

    tf.raw_ops.SaveV2(prefix=os.path.join(folder, folders.PREFIX), tensor_names=list(tensors),
                      shape_and_slices=[""] * len(tensors),
                      tensors=[tensor.read() for tensor in tensors.values()])
    folders.write_around(folder, weights)
