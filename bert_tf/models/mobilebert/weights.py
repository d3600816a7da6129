"""MobileBERT's weights in Google's checkpoints and in Hugging Face's files."""

import dataclasses
from collections.abc import Callable, Mapping

import numpy as np

from bert_tf.checkpoints.rules import Tensor
from bert_tf.checkpoints.weights import Weights, check_parts
from bert_tf.config import Sizes
from bert_tf.errors import InputError
from bert_tf.models.mobilebert.config import MOST_FEED_FORWARDS

LAYER = "encoder/layer_{i}/"
# Parts with a dense layer and a norm.
NORMED = ("bottleneck/input", "bottleneck/attention", "attention/output", "output",
          "output/bottleneck", *(f"ffn_layer_{i}/output" for i in range(MOST_FEED_FORWARDS - 1)))
# Parts with a dense layer alone.
PLAIN = ("attention/self/query", "attention/self/key", "attention/self/value",
         "intermediate/dense",
         *(f"ffn_layer_{i}/intermediate/dense" for i in range(MOST_FEED_FORWARDS - 1)))
# Of transformers' masked LM: the output matrix [V, E], and its further columns turned, [H - E, V].
_DECODER, _FURTHER = "cls.predictions.decoder.weight", "cls.predictions.dense.weight"
_TABLES = ("word_embeddings", "token_type_embeddings", "position_embeddings")


def encoder_rows(rename: Callable[[str], str], kinds: Mapping[str, tuple]) -> tuple:
    """The rows of a `Format`. `rename` maps our names, with "{i}" for a layer's number, to the
    format's; `kinds` has the endings of "table", "dense" and "norm"."""
    rows = [*((f"embeddings/{name}", "table") for name in _TABLES),
            ("embeddings/embedding_transformation", "dense"), ("embeddings/LayerNorm", "norm"),
            ("pooler/dense", "dense"), *((LAYER + part, "dense") for part in PLAIN)]
    for part in NORMED:
        rows += [(f"{LAYER}{part}/dense", "dense"), (f"{LAYER}{part}/LayerNorm", "norm")]
    return tuple((name, rename(name), kinds[kind]) for name, kind in rows)


def check_huggingface(weights: Weights) -> None:
    """Raises InputError if transformers couldn't build the network of `weights`."""
    config = weights.config
    check_parts(weights, ("pooler_type",))
    if config.normalization_type == "manual_layer_norm":
        raise InputError(f"{weights.source}: normalization_type is manual_layer_norm, which "
                         "transformers does not have; choose another format.")
    if config.query_size != config.inner_size:
        raise InputError(f"{weights.source}: queries read vectors of width {config.query_size}, "
                         f"but in transformers always of width {config.inner_size}, the width "
                         "inside a layer; choose another format.")


def notes(config: Sizes) -> tuple[str, ...]:
    """Returns sentences on norms that transformers computes with another epsilon."""
    if getattr(config, "normalization_type", "") != "layer_norm" or config.layer_norm_eps == 1e-5:
        return ()
    return ("The norms of the embeddings, and of the output of each layer, have an epsilon of 1e-5 "
            f"in transformers, and here layer_norm_eps, {config.layer_norm_eps}; outputs differ.",)


def join_output(tensors: dict[str, Tensor]) -> None:
    """Joins an output matrix, which is not the embedding table, with its further columns."""
    if _DECODER not in tensors or _FURTHER not in tensors:
        return
    table, further = tensors[_DECODER], tensors.pop(_FURTHER)
    tensors[_DECODER] = dataclasses.replace(
        table, name=f"{table.name} and {further.name}",
        shape=(table.shape[0], sum(table.shape[1:]) + further.shape[0]),
        read=lambda: np.concatenate([table.read(), further.read().T], 1))


def split_output(values: dict[str, np.ndarray], width: int) -> None:
    """Undoes `join_output` in the values of a file; `width` is E."""
    if _DECODER in values:
        table = values[_DECODER]
        values[_DECODER], values[_FURTHER] = table[:, :width], table[:, width:].T
