"""Hugging Face's BERT checkpoints: `model.safetensors` beside a `config.json`."""

import os

import numpy as np
from safetensors.numpy import save

from bert_tf.checkpoints import (config_json, folders, names, safetensors_files,
                                 training_checkpoint)
from bert_tf.checkpoints.rules import Format, Source, encoder_rows
from bert_tf.config import read_json
from bert_tf.errors import InputError
from bert_tf.files import write_json

_SELF = (("", ""),)
_TABLE = (("", ".weight"),)
_DENSE = (("/kernel", ".weight", "transpose"), ("/bias", ".bias"))
_NORM = (("/gamma", ".weight"), ("/beta", ".bias"))

_ENCODER = (
    *encoder_rows({"table": _TABLE, "norm": _NORM, "dense": _DENSE},
                  (f"embeddings.{name}" for name in names.EMBEDDINGS), "encoder.layer.{i}.",
                  (name.replace("/", ".") for name in names.LAYER)),
    ("pooler/dense", "pooler.dense", _DENSE),
)
_HEADS = (
    ("masked_lm/transform/dense", "cls.predictions.transform.dense", _DENSE),
    ("masked_lm/transform/LayerNorm", "cls.predictions.transform.LayerNorm", _NORM),
    ("masked_lm/output_bias", "cls.predictions.bias", _SELF),
    ("masked_lm/output_weights", "cls.predictions.decoder", _TABLE),
    ("next_sentence/dense", "cls.seq_relationship", _DENSE),
    ("answer_span/dense", "qa_outputs", _DENSE),
)
_IGNORED = (
    (r"(bert\.)?embeddings\.(position|token_type)_ids", "a constant, not a weight"),
    (r"copies\..*", "a copy of a tied tensor"),
    (r"unused\..*", "a bias that isn't used where the output matrix isn't the embedding table"),
)
# Two that are tied, each with its copy.
_WORDS, _DECODER = "bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"
_BIAS, _DECODER_BIAS = "cls.predictions.bias", "cls.predictions.decoder.bias"


def _table(task, prefix="bert."):
    return Format((*((ours, prefix + theirs, endings) for ours, theirs, endings in _ENCODER),
                   *_HEADS, (f"{task}/dense", "classifier", _DENSE)), _IGNORED)


def find(path):
    """The safetensors file, or the index of several, that `path` stands for, or None."""
    files = [path]
    if os.path.isdir(path):
        files = [os.path.join(path, f"model.safetensors{end}") for end in ("", ".index.json")]
    return next((file for file in files if os.path.isfile(file)
                 and file.endswith((".safetensors", ".safetensors.index.json"))
                 and not training_checkpoint.find(file)), None)


def _standard_name(name):
    """Today's name of a tensor of an old file, or of a file of the bare encoder."""
    name = name.replace("LayerNorm.gamma", "LayerNorm.weight")
    name = name.replace("LayerNorm.beta", "LayerNorm.bias")
    bare = name.startswith(("embeddings.", "encoder.", "pooler."))
    return f"bert.{name}" if bare else name


def _same(found, one, other):
    return np.array_equal(found[one].read(), found[other].read())


def _tensors(file, tied):
    """A dict of the file's `Tensor`s by today's names.

    Raises:
        InputError: the file is damaged, or a copy of a tied tensor differs from it.
    """
    found = {_standard_name(name): tensor
             for name, tensor in safetensors_files.tensors(file).items()}
    apart = not tied and {_DECODER, _WORDS} <= found.keys() and not _same(found, _DECODER, _WORDS)
    for copy, original in {_DECODER: _WORDS, _DECODER_BIAS: _BIAS}.items():
        if copy not in found or (apart and copy == _DECODER):
            continue
        if apart or original not in found:      # then the copy is the one that counts
            if original in found:
                found[f"unused.{original}"] = found[original]
            found[original] = found.pop(copy)
        elif _same(found, copy, original):
            found[f"copies.{copy}"] = found.pop(copy)
        else:
            raise InputError(f"{file}: tensor {copy!r} differs from {original!r}, but its "
                             "configuration ties them.")
    return found


def read(file, task=None):
    """The `Source` of a checkpoint.

    Args:
        file: what `find` gave.
        task: the head that `classifier` is, where the files don't tell.

    Raises:
        InputError: a file is damaged, or holds another network.
    """
    path = folders.beside(file, "config.json")
    values = read_json(path) if path else {}
    tensors = _tensors(file, values.get("tie_word_embeddings", True))
    single = "classifier.bias" in tensors and tensors["classifier.bias"].shape == (1,)
    tokenizer = folders.beside(file, "tokenizer_config.json")
    return Source(file, config_json.read(values, path) if path else None, tensors,
                  _table(config_json.task(values, task, single)),
                  folders.vocabulary_beside(file),
                  read_json(tokenizer).get("do_lower_case") if tokenizer else None,
                  config_json.labels(values))


def table_for(weights):
    """The table to write `weights` with."""
    tasks = [name for name in names.CLASSIFIERS if name in weights.heads]
    if len(tasks) > 1:
        raise InputError(f"{weights.source} has the heads {' and '.join(tasks)}, which Hugging "
                         "Face's checkpoints all call classifier; take one out.")
    return _table(tasks[0] if tasks else names.CLASSIFIERS[0],
                  "bert." if set(weights.heads) - {"pooler", "feature_tagging"} else "")


def write(folder, weights, tensors):
    """Writes `model.safetensors`, `config.json`, `vocab.txt` and `tokenizer_config.json` into
    `folder`.

    Args:
        folder: where.
        weights: `Weights`.
        tensors: a dict of `Tensor` by Hugging Face's names.
    """
    values = {name: np.ascontiguousarray(tensor.read()) for name, tensor in tensors.items()}
    if _DECODER in values:      # which then isn't tied, and neither is its bias
        values[_DECODER_BIAS] = values[_BIAS]
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(save(values, {"format": "pt"}))
    write_json(os.path.join(folder, "config.json"), config_json.describe(weights))
    folders.copy_vocabulary(weights, os.path.join(folder, folders.VOCABULARY))
    if weights.vocab_file:
        write_json(os.path.join(folder, "tokenizer_config.json"), {
            "tokenizer_class": "BertTokenizer", "do_lower_case": weights.do_lower_case,
            "model_max_length": weights.config.max_position_embeddings})
