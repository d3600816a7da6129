"""Checkpoints of GPT: `params_0.npy` and on with `params_shapes.json`
(openai/finetune-transformer-lm), and the parts shared with Hugging Face's files.

Names are the names of Hugging Face's OpenAIGPTModel. The single matrix of query, key and value is
three here. These files lack the special tokens, so their embeddings are drawn at random.
"""

import io
import json
import math
import operator
import os

import numpy as np

from bert_tf.checkpoints import google, rules, safetensors_files
from bert_tf.checkpoints.huggingface_models import DENSE, NORM, TABLE
from bert_tf.checkpoints.rules import Format, Source, Tensor
from bert_tf.checkpoints.weights import Weights, check_heads
from bert_tf.config import GPTConfig
from bert_tf.errors import InputError
from bert_tf.files import match_names, open_file, staged, write_json

SPECIAL = 3                     # _start_, _delimiter_, _classify_
PARTS = ("query", "key", "value")
_SHAPES, _FILES = "params_shapes.json", 10
# Of a Conv1D, whose weight is [in, out] as our kernels are.
_CONV = (("/kernel", ".weight"), ("/bias", ".bias"))
_LAYER = {**{f"attention/self/{part}": (f"attn.{part}", _CONV) for part in PARTS},
          "attention/output/dense": ("attn.c_proj", _CONV),
          "attention/output/LayerNorm": ("ln_1", NORM),
          "intermediate/dense": ("mlp.c_fc", _CONV), "output/dense": ("mlp.c_proj", _CONV),
          "output/LayerNorm": ("ln_2", NORM)}
# A layer's tensors in the order of the original's file.
_ORDER = tuple(f"{module}.{end}" for module in (
    "attn.c_attn", "attn.c_proj", "ln_1", "mlp.c_fc", "mlp.c_proj", "ln_2")
    for end in ("weight", "bias"))


def _order(layers):
    """The names of all tensors in the order of the original's file."""
    return ["positions_embed.weight", "tokens_embed.weight",
            *(f"h.{i}.{name}" for i in range(layers) for name in _ORDER)]


def table(prefix: str = "", notes: tuple = ()) -> Format:
    """Returns the table of the network, whose names begin with `prefix`, and of its one head."""
    return Format((
        ("embeddings/word_embeddings", f"{prefix}tokens_embed", TABLE),
        ("embeddings/position_embeddings", f"{prefix}positions_embed", TABLE),
        *((f"encoder/layer_{{i}}/{ours}", f"{prefix}h.{{i}}.{name}", endings)
          for ours, (name, endings) in _LAYER.items()),
        ("multiple_choice/dense", "multiple_choice_head.summary", DENSE)),
        ((r".*\.attn\.bias|(\w+\.)?position_ids", "a constant, not a weight"),
         (r"score\.weight", "of a classifier without the layer that GPT's have here"),
         safetensors_files.COPIES), notes=notes)


def split(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Splits the joint tensors of query, key and value into three."""
    result = {}
    for name, tensor in tensors.items():
        if ".c_attn." not in name:
            result[name] = tensor
            continue
        width = tensor.shape[-1] // 3
        for number, part in enumerate(PARTS):
            columns = slice(number * width, (number + 1) * width)
            result[name.replace("c_attn", part)] = tensor.changed(
                operator.itemgetter((..., columns)), name=f"{tensor.name} ({part})",
                shape=(*tensor.shape[:-1], width))
    return result


def join(tensors: dict[str, Tensor]) -> dict[str, np.ndarray]:
    """Returns the tensors' values, with query, key and value joined."""
    result: dict[str, np.ndarray] = {}
    for name, tensor in tensors.items():
        if ".attn.query." in name:
            result[name.replace("query", "c_attn")] = np.concatenate(
                [tensors[name.replace("query", part)].read() for part in PARTS], -1)
        elif not any(f".attn.{part}." in name for part in PARTS):
            result[name] = np.ascontiguousarray(tensor.read())
    return result


def add_special(words: Tensor) -> Tensor:
    """Adds rows for the special tokens to a table of words, drawn as in the original."""
    def add(values):
        drawn = np.random.default_rng(0).normal(0, 0.02, (SPECIAL, words.shape[-1]))
        return np.concatenate([values, drawn.astype(values.dtype)])
    return words.changed(add, shape=(words.shape[0] + SPECIAL, words.shape[-1]))


SPECIAL_NOTE = f"{SPECIAL} rows of words are reinitialised: the special tokens'."


def find(path: str) -> str | None:
    return rules.named(path, "params_0.npy")


def read(file: str) -> Source:
    folder = os.path.dirname(file)
    try:
        with open_file(os.path.join(folder, _SHAPES)) as text:
            shapes = [tuple(map(int, shape)) for shape in json.load(text)]
        count = len(match_names(folder, "params_[0-9]*.npy"))
        names = [os.path.join(folder, f"params_{n}.npy") for n in range(count)]
        flat = np.concatenate([np.load(staged(name), allow_pickle=False) for name in names])
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"{folder}: {_SHAPES} and the params_*.npy beside it can't be read "
                         f"({error}); copy them again.") from error
    layers, rest = divmod(len(shapes) - 2, len(_ORDER))
    if rest or layers < 1 or sum(map(math.prod, shapes)) != len(flat):
        raise InputError(f"{folder}: {_SHAPES} does not fit the {len(flat):,} values of the other "
                         "files; take all files from one model.")
    values = np.split(flat, np.cumsum([math.prod(shape) for shape in shapes])[:-1])
    tensors = {}
    for name, shape, value in zip(_order(layers), shapes, values):
        if len(shape) == 3:     # [1, in, out]
            shape = shape[1:]
        tensors[name] = Tensor(name, shape, str(value.dtype),
                             lambda value=value, shape=shape: value.reshape(shape))
    width = tensors["tokens_embed.weight"].shape[1]
    tensors["tokens_embed.weight"] = add_special(tensors["tokens_embed.weight"])
    config = rules.config_beside(file) or GPTConfig(
        vocab_size=tensors["tokens_embed.weight"].shape[0], hidden_size=width,
        num_hidden_layers=layers, num_attention_heads=max(1, width // 64),
        intermediate_size=4 * width, max_position_embeddings=shapes[0][0])
    return Source(file, config, split(tensors), table(), rules.vocabulary_beside(file),
                  notes=(SPECIAL_NOTE,))


def table_for(weights: Weights) -> Format:
    check(weights, "openai")
    return table(notes=(f"{SPECIAL} rows of words, those of the special tokens, are left out: the "
                        "original draws them anew.",))


def check(weights: Weights, form: str, heads: frozenset[str] = frozenset()) -> None:
    """Raises InputError unless a format of GPT with a place for `heads` can hold `weights`."""
    config = weights.config
    if not isinstance(config, GPTConfig):
        raise InputError(f"{weights.source}: the format {form} holds only GPT, not the model_type "
                         f"{config.model_type}; choose another format.")
    if config.hidden_act != "gelu" or config.intermediate_size != 4 * config.hidden_size:
        raise InputError(f"{weights.source}: the code of this format always uses the tanh form of "
                         "GELU and an intermediate_size of 4 * hidden_size; choose the format "
                         "keras.")
    check_heads(weights, form, heads)


def write(folder: str, weights: Weights, tensors: dict[str, Tensor]) -> None:
    values = join(tensors)
    values["tokens_embed.weight"] = values["tokens_embed.weight"][:-SPECIAL]
    ordered = [values[name] for name in _order(weights.config.num_hidden_layers)]
    shapes = [[1, *value.shape] if value.ndim == 2 and number > 1 else list(value.shape)
              for number, value in enumerate(ordered)]
    flat = np.concatenate([np.ravel(value).astype(np.float32) for value in ordered])
    for number, part in enumerate(np.array_split(flat, _FILES)):
        content = io.BytesIO()      # to a file, its error on a full disk is a count of items
        np.save(content, part)
        with open(os.path.join(folder, f"params_{number}.npy"), "wb") as file:
            file.write(content.getbuffer())
    write_json(os.path.join(folder, _SHAPES), shapes)
    google.write_around(folder, weights)
