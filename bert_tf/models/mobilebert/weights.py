"""MobileBERT's weights in Google's checkpoints and in Hugging Face's files."""

import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import Any

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
_DECODER, _FURTHER, _BIAS = (f"cls.predictions.{name}" for name in (
    "decoder.weight", "dense.weight", "bias"))
# Patterns of tensors that every class of transformers has, and why a network doesn't use them.
UNUSED = {r"(mobilebert\.)?encoder\.layer\.\d+\.bottleneck\.attention\..*":
          "a bottleneck that use_bottleneck_attention leaves unused",
          r"(mobilebert\.)?embeddings\.embedding_transformation\..*":
          "a layer that is for trigrams or narrow embeddings"}
EMPTY = r"empty\..*", "a matrix without a row, since embedding_size is hidden_size"
# A note on what Google's code computes with weights of transformers.
ORIGINAL = ("The original gives padding some weight in attention, and its norms have one epsilon; "
            "outputs differ from those of transformers.")
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
    """Returns sentences on what transformers computes differently."""
    if getattr(config, "as_in_transformers", True):
        return ()
    told = ["transformers gives padding no weight in attention; the original and this library give "
            "it some, so that rows with padding differ."]
    if config.normalization_type == "layer_norm" and config.layer_norm_eps != 1e-5:
        told.append(
            "The norms of the embeddings, and of the output of each layer, have an epsilon of 1e-5 "
            f"in transformers, and here layer_norm_eps, {config.layer_norm_eps}; outputs differ.")
    return tuple(told)


def _unused(weights, values):
    """The tensors of `UNUSED` in the file that was read, under the names beside `values`."""
    if not weights.origin:
        return {}
    prefix = "mobilebert." * any(name.startswith("mobilebert.") for name in values)
    kept = {f"{prefix}{name.removeprefix('mobilebert.')}": tensor.read()
            for name, tensor in weights.origin.tensors.items()
            if re.fullmatch("|".join(UNUSED), name)}
    return {name: value for name, value in kept.items() if name not in values}


def join_output(tensors: dict[str, Tensor]) -> None:
    """Joins an output matrix, which is not the embedding table, with its further columns."""
    if _FURTHER in tensors and 0 in tensors[_FURTHER].shape and _DECODER not in tensors:
        tensors[f"empty.{_FURTHER}"] = tensors.pop(_FURTHER)
    if _DECODER not in tensors or _FURTHER not in tensors:
        return
    table, further = tensors[_DECODER], tensors.pop(_FURTHER)
    tensors[_DECODER] = dataclasses.replace(
        table, name=f"{table.name} and {further.name}",
        shape=(table.shape[0], sum(table.shape[1:]) + further.shape[0]),
        read=lambda: np.concatenate([table.read(), further.read().T], 1))


def give(values: dict[str, np.ndarray], described: dict[str, Any], weights: Weights
         ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Undoes `join_output` in the values of a file, and adds those that no network uses."""
    if _BIAS in values:
        values.setdefault(_FURTHER, np.zeros((0, len(values[_BIAS])), values[_BIAS].dtype))
    if _DECODER in values:
        table, width = values[_DECODER], weights.config.embedding_width
        values[_DECODER], values[_FURTHER] = table[:, :width], table[:, width:].T
    return values | _unused(weights, values), described
