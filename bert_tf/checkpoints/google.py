"""Checkpoints of google-research/bert: TensorFlow 1 variables beside a `bert_config.json`."""

import os

import lazy_loader

from bert_tf.checkpoints import names, rules, tensor_bundle
from bert_tf.checkpoints.rules import Format, Source, Tensor, encoder_rows
from bert_tf.checkpoints.weights import Weights
from bert_tf.config import EncoderConfig
from bert_tf.errors import InputError

tf = lazy_loader.load("tensorflow")

PREFIX = "bert_model.ckpt"
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


def find(path: str) -> str | None:
    """The prefix of the checkpoint at `path`, or None."""
    return tensor_bundle.find(path, objects=False)


def read(prefix: str, task: str | None = None) -> Source:
    """The `Source` of a checkpoint.

    Args:
        prefix: what `find` gave.
        task: the head that `output_weights` is, which the file doesn't name.

    Raises:
        InputError: a file is damaged.
    """
    return Source(prefix, rules.config_beside(prefix), tensor_bundle.tensors(prefix),
                  _table(task if task in names.CLASSIFIERS else names.CLASSIFIERS[0]),
                  rules.vocabulary_beside(prefix))


def check_original(weights: Weights) -> None:
    """Raises InputError if Google's code couldn't build the network of `weights`."""
    config = weights.config
    if config.layer_norm_eps != EncoderConfig.layer_norm_eps:
        raise InputError(f"{weights.source}: layer_norm_eps is {config.layer_norm_eps}, but this "
                         f"format's own code always takes {EncoderConfig.layer_norm_eps}.")
    if config.hidden_act == "gelu_erf":
        raise InputError(f"{weights.source}: hidden_act is the exact GELU, but this format's own "
                         "code computes the tanh form; give --hidden_act=gelu to take that.")


def table_for(weights: Weights) -> Format:
    """The table to write `weights` with.

    Raises:
        InputError: the original's code would compute something else from them.
    """
    check_original(weights)
    tasks = [name for name in names.CLASSIFIERS if name in weights.heads]
    if len(tasks) > 1:
        raise InputError(f"{weights.source} has the heads {' and '.join(tasks)}, which Google's "
                         "checkpoints all call output_weights; take one out.")
    return _table(tasks[0] if tasks else names.CLASSIFIERS[0])


def write(folder: str, weights: Weights, tensors: dict[str, Tensor]) -> None:
    """Writes `bert_model.ckpt.*`, `bert_config.json` and the vocabulary into `folder`.

    Args:
        folder: where.
        weights: `Weights`.
        tensors: a dict of `Tensor` by Google's names.
    """
    tf.raw_ops.SaveV2(prefix=os.path.join(folder, PREFIX), tensor_names=list(tensors),
                      shape_and_slices=[""] * len(tensors),
                      tensors=[tensor.read() for tensor in tensors.values()])
    write_around(folder, weights)


def write_around(folder: str, weights: Weights) -> None:
    """Writes `bert_config.json` and the files of the vocabulary."""
    weights.config.to_json_file(os.path.join(folder, rules.CONFIG))
    if weights.tokenizer:
        weights.tokenizer.save(folder)
