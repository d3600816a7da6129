"""The files of NeoBERT (chandar-lab/NeoBERT, model.py), whose network is EuroBERT's."""

import numpy as np

from bert_tf.checkpoints import huggingface_config as configs
from bert_tf.checkpoints import huggingface_tokenizer, rules, safetensors_files
from bert_tf.checkpoints.rules import Format, Source, Tensor
from bert_tf.checkpoints.weights import Weights
from bert_tf.config import NeoBertConfig
from bert_tf.errors import InputError, naming
from bert_tf.models.eurobert import huggingface as eurobert

TYPE = "neobert"
_BLOCK = "model.transformer_encoder.{i}."
_NAMES = {"words": "model.encoder", "attention/layer_norm": f"{_BLOCK}attention_norm",
          "attention/self/qkv": f"{_BLOCK}qkv", "attention/output/dense": f"{_BLOCK}wo",
          "layer_norm": f"{_BLOCK}ffn_norm", "intermediate/dense": f"{_BLOCK}ffn.w12",
          "output/dense": f"{_BLOCK}ffn.w3", "final": "model.layer_norm", "decoder": "decoder"}
# Our keys, and those of files, whose values are equal.
_KEYS = {**{key: key for key in ("vocab_size", "hidden_size", "num_hidden_layers",
                                 "num_attention_heads")},
         "max_position_embeddings": "max_length", "layer_norm_eps": "norm_eps",
         "initializer_range": "decoder_init_range"}
# Values of the network that is built here, where files have the keys.
_FIXED = {"rms_norm": True, "rope": True, "hidden_act": "SwiGLU", "ngpt": False}
_QKV = ".qkv.weight"


def _rows(config):
    """The rows of a file's matrix of queries, keys and values in our order. There, those of a head
    are together, and rotary positions turn neighbours; here, a row and the one D / 2 after it."""
    rows = np.arange(3 * config.hidden_size).reshape(config.num_attention_heads, 3, -1)
    rows[:, :2] = np.concatenate([rows[:, :2, ::2], rows[:, :2, 1::2]], axis=-1)
    return rows.swapaxes(0, 1).ravel()


def _inner_width(width):
    """The width of the gate for the `intermediate_size` of a file."""
    return 8 * -(-int(2 * width / 3) // 8)


def _read_config(values):
    """The configuration in a config.json."""
    for key, only in _FIXED.items():
        if str(values.get(key, only)).lower() != str(only).lower():
            raise InputError(f"{key} must be {only!r}, not {values[key]!r}.")
    ours = {key: values[theirs] for key, theirs in _KEYS.items() if theirs in values}
    width = values.get("intermediate_size", 3072)
    ours["intermediate_size"] = _inner_width(width) if isinstance(width, int) else width
    return NeoBertConfig.from_dict(ours)


def read(file: str, values: dict, tensors: dict[str, Tensor]) -> Source:
    """The `Source` of the original's files; InputError if their configuration describes another
    network."""
    with naming(rules.beside(file, "config.json"), _KEYS):
        config = _read_config(values)
    rows = _rows(config)
    tensors = {name: tensor.changed(lambda matrix: matrix[rows]) if name.endswith(_QKV) else tensor
               for name, tensor in tensors.items()}
    return eurobert.source(file, values, tensors, config, _NAMES, "NeoBERT")


def table_for(weights: Weights) -> Format:
    """The table to write `weights` with; InputError if the original has no class with their heads.
    """
    if "tagging" in weights.heads:
        raise InputError(f"{weights.source}: NeoBERT's code has no class with the head tagging; "
                         "choose another format, or give --leave_out=tagging.")
    return eurobert.table_for(weights, _NAMES)


def write(folder: str, weights: Weights, tensors: dict[str, Tensor]) -> None:
    """Writes `model.safetensors`, `config.json` and the tokenizer's files into `folder`."""
    config, before = weights.config, configs.as_read(weights)
    width = before.get("intermediate_size")
    if width is None or _inner_width(width) != config.intermediate_size:
        width = next(n for n in range(config.intermediate_size, 2 * config.intermediate_size)
                     if _inner_width(n) == config.intermediate_size)
    order, values = np.argsort(_rows(config)), eurobert.written(weights, tensors)
    safetensors_files.write(folder, {
        name: value[order] if name.endswith(_QKV) else value for name, value in values.items()}, {
        "model_type": TYPE, **{theirs: getattr(config, ours) for ours, theirs in _KEYS.items()},
        "intermediate_size": width, "embedding_init_range": config.initializer_range,
        **eurobert.token_ids(weights, before, {"pad": "pad"}),
        **configs.describe_heads(weights, eurobert.heads_of(weights), "NeoBERT",
                                 (("LMHead", {"masked_lm"}), ("", set())))})
    huggingface_tokenizer.write(folder, weights.tokenizer, False, config.max_position_embeddings)
