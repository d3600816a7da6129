"""ALBERT's additions to its row of `MODELS`."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from bert_tf.checkpoints.huggingface_models import Model
from bert_tf.checkpoints.rules import Tensor
from bert_tf.config import EncoderConfig
from bert_tf.errors import InputError


def check_groups(config: EncoderConfig, source: str) -> None:
    """Raises InputError unless transformers would let the same layers share weights."""
    config = config.filled()
    layers, groups, inner = (
        config.num_hidden_layers, config.num_hidden_groups or 1, config.inner_group_num)
    numbers = [int(i / (layers / groups)) * inner + j for i in range(layers) for j in range(inner)]
    if config.layer_weights != [(i, i) for i in numbers]:
        raise InputError(f"{source}: transformers and google-research/albert distribute {layers} "
                         f"layers over {groups} groups differently, because they round "
                         "differently; this model can't be converted.")


def _names(model, prefix):
    return [f"{prefix}{model.projection}.{end}" for end in ("weight", "bias")]


def take_projection(tensors: dict[str, Tensor], model: Model, config: EncoderConfig | None
                    ) -> EncoderConfig | None:
    """Sets a layer that only copies the embeddings aside. Returns the configuration, which says
    whether a layer projects them to their own width."""
    kernel, bias = _names(model, model.prefix)
    if not model.projection or config is None or config.projects or kernel not in tensors:
        return config
    if not np.array_equal(tensors[kernel].read(), np.eye(config.hidden_size)) or (
            bias in tensors and tensors[bias].read().any()):
        return dataclasses.replace(config, project_embeddings=True)
    for name in {kernel, bias} & tensors.keys():
        tensors[f"identity.{name}"] = tensors.pop(name)
    return config


def identity(model: Model, config: EncoderConfig, values: Mapping[str, np.ndarray]
             ) -> dict[str, np.ndarray]:
    """The tensors of a layer that only copies the embeddings, where files hold one."""
    if not model.projection or config.projects:
        return {}
    prefix = model.prefix if any(name.startswith(model.prefix) for name in values) else ""
    dtype, width = next(iter(values.values())).dtype, config.hidden_size
    return dict(zip(_names(model, prefix), (np.eye(width).astype(dtype), np.zeros(width, dtype))))
