"""Hugging Face's BERT checkpoints: `model.safetensors` beside a `config.json`."""

import dataclasses
import functools
import os

import numpy as np
from safetensors import SafetensorError, safe_open

from bert_tf.checkpoints.rules import Format, Tensor
from bert_tf.config import EncoderConfig, read_json
from bert_tf.errors import InputError

_SELF = (("", ""),)
_TABLE = (("", ".weight"),)
_DENSE = (("/kernel", ".weight", "transpose"), ("/bias", ".bias"))
_NORM = (("/gamma", ".weight"), ("/beta", ".bias"))

FORMAT = Format(
    rows=(
        ("embeddings/word_embeddings", "bert.embeddings.word_embeddings", _TABLE),
        ("embeddings/token_type_embeddings", "bert.embeddings.token_type_embeddings", _TABLE),
        ("embeddings/position_embeddings", "bert.embeddings.position_embeddings", _TABLE),
        ("embeddings/LayerNorm", "bert.embeddings.LayerNorm", _NORM),
        *((f"encoder/layer_{{i}}/{ours}", f"bert.encoder.layer.{{i}}.{theirs}", endings)
          for ours, theirs, endings in (
              ("attention/self/query", "attention.self.query", _DENSE),
              ("attention/self/key", "attention.self.key", _DENSE),
              ("attention/self/value", "attention.self.value", _DENSE),
              ("attention/output/dense", "attention.output.dense", _DENSE),
              ("attention/output/LayerNorm", "attention.output.LayerNorm", _NORM),
              ("intermediate/dense", "intermediate.dense", _DENSE),
              ("output/dense", "output.dense", _DENSE),
              ("output/LayerNorm", "output.LayerNorm", _NORM))),
        ("pooler/dense", "bert.pooler.dense", _DENSE),
        ("masked_lm/transform/dense", "cls.predictions.transform.dense", _DENSE),
        ("masked_lm/transform/LayerNorm", "cls.predictions.transform.LayerNorm", _NORM),
        ("masked_lm/output_bias", "cls.predictions.bias", _SELF),
        ("next_sentence/dense", "cls.seq_relationship", _DENSE),
    ),
    ignored=(
        (r"bert\.embeddings\.(position|token_type)_ids", "a constant, not a weight"),
        (r"(classifier|qa_outputs)\.(weight|bias)", "head of a fine-tuned task"),
        (r"cls\.predictions\.decoder\.(weight|bias)", "a copy of a tied tensor"),
    ),
)

_COPIES = {"cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
           "cls.predictions.decoder.bias": "cls.predictions.bias"}
_ACTIVATIONS = {"gelu": "gelu_erf", "gelu_python": "gelu_erf", "gelu_new": "gelu",
                "gelu_pytorch_tanh": "gelu", "relu": "relu", "tanh": "tanh", "linear": "linear"}
# Settings that would make another network of the same tensors.
_FIXED = {"model_type": "bert", "position_embedding_type": "absolute", "is_decoder": False,
          "add_cross_attention": False, "tie_word_embeddings": True}


def find(path):
    """The safetensors file that `path` (a folder or the file) stands for, or None."""
    file = os.path.join(path, "model.safetensors") if os.path.isdir(path) else path
    return file if file.endswith(".safetensors") and os.path.isfile(file) else None


def config_file(file):
    """Where Hugging Face keeps the configuration."""
    return os.path.join(os.path.dirname(file), "config.json")


def read_config(path):
    """The `EncoderConfig` in a Hugging Face `config.json`.

    Raises:
        InputError: it describes another network than BERT's encoder.
    """
    values = read_json(path)
    for key, only in _FIXED.items():
        if values.get(key, only) != only:
            raise InputError(f"{path}: {key} must be {only!r}, not {values[key]!r}.")
    names = [field.name for field in dataclasses.fields(EncoderConfig)]
    ours = {"type_vocab_size": 2, **{name: values[name] for name in names if name in values}}
    activation = values.get("hidden_act", "gelu")
    if activation not in _ACTIVATIONS:
        raise InputError(f"{path}: hidden_act must be one of {', '.join(_ACTIVATIONS)}, "
                         f"not {activation!r}.")
    try:
        return EncoderConfig.from_dict({**ours, "hidden_act": _ACTIVATIONS[activation]})
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _standard_name(name):
    """Today's name of a tensor of an old file, or of a file of the bare encoder."""
    name = name.replace("LayerNorm.gamma", "LayerNorm.weight")
    name = name.replace("LayerNorm.beta", "LayerNorm.bias")
    bare = name.startswith(("embeddings.", "encoder.", "pooler."))
    return f"bert.{name}" if bare else name


def tensors(file):
    """A dict of the file's `Tensor`s by today's names; copies of tied tensors are compared.

    Raises:
        InputError: the file is damaged, or a copy differs.
    """
    found = {}
    try:
        with safe_open(file, framework="numpy") as reader:
            for name in reader.keys():
                part = reader.get_slice(name)
                found[_standard_name(name)] = Tensor(
                    name, tuple(part.get_shape()), _dtype(part.get_dtype()),
                    functools.partial(_read, file, name))
    except (SafetensorError, OSError) as error:
        raise InputError(f"{file}: can't be read as safetensors ({error}).") from error
    for copy, original in _COPIES.items():
        if copy in found and original not in found:
            found[original] = found.pop(copy)
        elif copy in found and not np.array_equal(found[copy].read(), found[original].read()):
            raise InputError(f"{file}: tensor {copy!r} differs from {original!r}, "
                             "but this network ties them.")
    return found


def _dtype(name):
    """NumPy's name for a safetensors dtype such as F32 or BF16."""
    ours = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}
    return ours.get(name, name)


def _read(file, name):
    with safe_open(file, framework="numpy") as reader:
        return reader.get_tensor(name)
