"""Checkpoints of PaddlePaddle/ERNIE: a folder `params` with a file for each variable, next to
`ernie_config.json` and `vocab.txt`.

A file is a serialised LoDTensor of Paddle: version and levels, then the tensor's version, its
description (a protocol buffer with type and axes) and its numbers, all little-endian
(paddle/fluid/framework/lod_tensor.cc, tensor_util.cc).
"""

import os
import re
import struct

import numpy as np

from bert_tf import files
from bert_tf.checkpoints import names, rules
from bert_tf.checkpoints.rules import SELF, Format, Source, Tensor, encoder_rows
from bert_tf.checkpoints.weights import Weights, check_parts, only_head
from bert_tf.config import EncoderConfig
from bert_tf.errors import InputError, naming
from bert_tf.protobuf import fields, unpack_ints, varint

_WORDS = "word_embedding"
_CONFIG = "ernie_config.json"
_DENSE = (("/kernel", ".w_0"), ("/bias", ".b_0"))
_NORM = (("/gamma", "_scale"), ("/beta", "_bias"))
_CLASSIFIER = (("/kernel", "_w"), ("/bias", "_b"))
# Pre-training tasks with names of their own, and a head for each.
_TASKS = ("sentence_reordering", "sentence_distance", "capitalization", "token_document",
          "discourse_relation", "ir_relevance")
_TASK = re.compile(r"(?!pooled_|mask_lm_|next_sent_|encoder_)(\w+)_fc\.w_0")
_ROWS = (
    *encoder_rows({"table": SELF, "norm": _NORM, "dense": _DENSE},
                  (_WORDS, "sent_embedding", "pos_embedding", "pre_encoder_layer_norm"),
                  "encoder_layer_{i}_", (
                      "multi_head_att_query_fc", "multi_head_att_key_fc",
                      "multi_head_att_value_fc", "multi_head_att_output_fc", "post_att_layer_norm",
                      "ffn_fc_0", "ffn_fc_1", "post_ffn_layer_norm")),
    ("embeddings/task_type_embeddings", "task_embedding", SELF),
    ("pooler/dense", "pooled_fc", _DENSE),
    ("masked_lm/transform/dense", "mask_lm_trans_fc", _DENSE),
    ("masked_lm/transform/LayerNorm", "mask_lm_trans_layer_norm", _NORM),
    ("masked_lm/output_bias", "mask_lm_out_fc.b_0", SELF),
    ("next_sentence/dense", "next_sent_fc", _DENSE),
    ("answer_span/dense", "cls_mrc_out", _CLASSIFIER),
    ("tagging/dense", "cls_seq_label_out", _CLASSIFIER),
    *((f"{task}/dense", f"{task}_fc", _DENSE) for task in _TASKS))
_IGNORED = ((r".*(_moment[12]?|_beta[12]_pow_acc|_velocity)_\d+", "of the optimizer"),
            (r"(learning_rate|scheduled_learning_rate).*|@.*|loss_scaling.*|.*(good|bad)_steps.*",
             "of the schedule"),
            (r"task_embedding", "a table of tasks that use_task_id leaves unused"))
_DTYPES = {4: "float16", 5: "float32", 6: "float64", 3: "int64", 2: "int32"}
_CODES = {dtype: code for code, dtype in _DTYPES.items()}
_GELU = {"gelu": "gelu_erf"}        # its code computes the exact GELU
_EPSILON = 1e-5


def _table(task, heads=()):
    """Returns the table, where `cls_out` is the head `task`."""
    rows = [*_ROWS]
    if task:
        rows.append((f"{task}/dense", "cls_out", _CLASSIFIER))
    rows += [(f"{head}/dense", f"{head}_fc", _DENSE) for head in heads]
    return Format(tuple(rows), _IGNORED, heads=dict.fromkeys(heads, "sentence_reordering"))


def find(path: str) -> str | None:
    """The file of the word embeddings in the folder or its `params`, or None."""
    places = [os.path.join(path, _WORDS), os.path.join(path, "params", _WORDS)]
    if os.path.basename(path) == _WORDS:
        places = [path]
    return next((file for file in places if files.is_file(file)), None)


def _head(file):
    """The type and the shape of the tensor in a file, which is left at its numbers."""
    version, levels = struct.unpack("<IQ", file.read(12))
    for _ in range(levels):
        file.seek(struct.unpack("<Q", file.read(8))[0], os.SEEK_CUR)
    tensor_version, size = struct.unpack("<Ii", file.read(8))
    if version or tensor_version or not 0 < size < 1 << 12:
        raise ValueError(f"versions {version}, {tensor_version}")
    code, shape = 0, []
    for number, kind, value in fields(file.read(size)):     # of a `VarType.TensorDesc`
        if number == 1:
            code = value
        elif number == 2 and kind == 2:     # packed
            shape += unpack_ints(value).tolist()
        elif number == 2:
            shape.append(value)
        else:
            raise ValueError(f"field {number}")
    return _DTYPES[code], tuple(shape)


def _tensor(path):
    try:
        with files.open_file(path, "rb") as file:
            dtype, shape = _head(file)
            start = file.tell()
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        if files.file_size(path) != start + size:
            raise ValueError(f"{files.file_size(path) - start} bytes of values, not {size}")
    except (OSError, ValueError, KeyError, TypeError, struct.error) as error:
        raise InputError(f"{path} is not a variable of Paddle, or it is damaged ({error}); copy it "
                         "again.") from error
    return Tensor(os.path.basename(path), shape, dtype,
                  lambda: np.memmap(files.staged(path), dtype, "r", start, shape) if size
                  else np.zeros(shape, dtype))


def _read_config(path):
    values, keys = dict(files.read_json(path)), {}
    if types := values.pop("sent_type_vocab_size", None):
        values["type_vocab_size"], keys = types, {"type_vocab_size": "sent_type_vocab_size"}
    values.setdefault("type_vocab_size", 2)
    act = values.get("hidden_act")
    values["hidden_act"] = _GELU.get(act, act)
    values.setdefault("intermediate_size", 4 * values.get("hidden_size", 0))
    with naming(path, keys):
        return EncoderConfig.from_dict({"layer_norm_eps": _EPSILON, **values,
                                        "model_type": "ernie"})


def read(file: str) -> Source:
    folder = os.path.dirname(file) or os.curdir
    places = [os.path.join(folder, ""), os.path.join(os.path.dirname(files.absolute(folder)), "")]
    config = next(filter(None, (rules.beside(place, _CONFIG) for place in places)), None)
    names_of = (name for name in files.list_folder(folder) if not name.endswith((".json", ".txt")))
    tensors = {name: _tensor(os.path.join(folder, name)) for name in sorted(names_of)}
    known = {prefix for _, prefix, _ in _ROWS}
    heads = [match[1] for name in tensors
             if (match := _TASK.fullmatch(name)) and f"{match[1]}_fc" not in known]
    return Source(file, _read_config(config) if config else None, tensors,
                  _table(names.CLASSIFIERS[0], heads),
                  next(filter(None, map(rules.vocabulary_beside, places)), None),
                  table_of=lambda task: _table(task, heads))


def table_for(weights: Weights) -> Format:
    config = weights.config
    check_parts(weights, ("use_task_id",))
    for key, only in (("model_type", "ernie"), ("layer_norm_eps", _EPSILON),
                        ("intermediate_size", 4 * config.hidden_size)):
        if getattr(config, key) != only:
            raise InputError(f"{weights.source}: {key} is {getattr(config, key)}, but the networks "
                             f"of this format have {only}; choose another format.")
    if config.hidden_act not in ("relu", "gelu_erf"):
        raise InputError(f"{weights.source}: hidden_act is {config.hidden_act}, but networks of "
                         "this format use relu or the exact GELU; give --hidden_act=gelu_erf to "
                         "change the model to it.")
    task = only_head(weights, [name for name in names.CLASSIFIERS if name != "tagging"],
                     "ERNIE's checkpoints call each of them cls_out")
    return _table(task, [head for head in weights.heads if head not in names.HEADS])


def write(folder: str, weights: Weights, tensors: dict[str, Tensor]) -> None:
    os.mkdir(os.path.join(folder, "params"))
    for name, tensor in tensors.items():
        value = tensor.read()
        if value.dtype.name not in _CODES:
            raise InputError(f"{weights.source}: {tensor.name} is {tensor.dtype}, a type that "
                             "Paddle does not have; give --dtype=float32.")
        description = bytes([0x08, _CODES[value.dtype.name]])
        description += b"".join(b"\x10" + varint(size) for size in value.shape)
        with open(os.path.join(folder, "params", name), "wb") as file:
            file.write(struct.pack("<IQIi", 0, 0, 0, len(description)) + description)
            file.write(np.ascontiguousarray(value).tobytes())
    values = weights.config.to_dict()
    for key in ("model_type", "layer_norm_eps", "intermediate_size"):
        values.pop(key, None)
    for name, ours in _GELU.items():
        if values["hidden_act"] == ours:
            values["hidden_act"] = name
    if weights.config.task_types:
        values["task_type_vocab_size"] = weights.config.task_types
    files.write_json(os.path.join(folder, _CONFIG), values)
    if weights.tokenizer:
        weights.tokenizer.save(folder)
