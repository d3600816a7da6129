"""Hugging Face's BERT checkpoints: `model.safetensors` beside a `config.json`."""

import dataclasses
import os

import numpy as np
from safetensors.numpy import save_file

from bert_tf.checkpoints import folders, safetensors_files, training_checkpoint
from bert_tf.checkpoints.rules import Format, Source
from bert_tf.config import EncoderConfig, read_json
from bert_tf.errors import InputError
from bert_tf.files import write_json

_SELF = (("", ""),)
_TABLE = (("", ".weight"),)
_DENSE = (("/kernel", ".weight", "transpose"), ("/bias", ".bias"))
_NORM = (("/gamma", ".weight"), ("/beta", ".bias"))

_ENCODER = (
    ("embeddings/word_embeddings", "embeddings.word_embeddings", _TABLE),
    ("embeddings/token_type_embeddings", "embeddings.token_type_embeddings", _TABLE),
    ("embeddings/position_embeddings", "embeddings.position_embeddings", _TABLE),
    ("embeddings/LayerNorm", "embeddings.LayerNorm", _NORM),
    *((f"encoder/layer_{{i}}/{ours}", f"encoder.layer.{{i}}.{theirs}", endings)
      for ours, theirs, endings in (
          ("attention/self/query", "attention.self.query", _DENSE),
          ("attention/self/key", "attention.self.key", _DENSE),
          ("attention/self/value", "attention.self.value", _DENSE),
          ("attention/output/dense", "attention.output.dense", _DENSE),
          ("attention/output/LayerNorm", "attention.output.LayerNorm", _NORM),
          ("intermediate/dense", "intermediate.dense", _DENSE),
          ("output/dense", "output.dense", _DENSE),
          ("output/LayerNorm", "output.LayerNorm", _NORM))),
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
# Which classes have which heads; the first whose heads are all there is the one that is written.
_CLASSES = (
    ("BertForQuestionAnswering", {"answer_span"}),
    ("BertForSequenceClassification", {"classification"}),
    ("BertForSequenceClassification", {"regression"}),
    ("BertForTokenClassification", {"tagging"}),
    ("BertForMultipleChoice", {"multiple_choice"}),
    ("BertForPreTraining", {"masked_lm", "next_sentence"}),
    ("BertForMaskedLM", {"masked_lm"}),
    ("BertForNextSentencePrediction", {"next_sentence"}),
    ("BertModel", set()),
)
# The heads that are all called `classifier`.
_TASKS = ("classification", "regression", "tagging", "multiple_choice")

# Two that are tied, each with its copy.
_WORDS, _DECODER = "bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"
_BIAS, _DECODER_BIAS = "cls.predictions.bias", "cls.predictions.decoder.bias"
_ACTIVATIONS = {"gelu": "gelu_erf", "gelu_python": "gelu_erf", "gelu_new": "gelu",
                "gelu_pytorch_tanh": "gelu", "relu": "relu", "tanh": "tanh", "linear": "linear"}
# Settings that would make another network of the same tensors.
_FIXED = {"model_type": "bert", "position_embedding_type": "absolute", "is_decoder": False,
          "add_cross_attention": False}


def _table(task, prefix="bert."):
    return Format((*((ours, prefix + theirs, endings) for ours, theirs, endings in _ENCODER),
                   *_HEADS, (f"{task}/dense", "classifier", _DENSE)), _IGNORED)


def find(path):
    """The safetensors file, or the index of several, that `path` stands for, or None."""
    names = ("model.safetensors", "model.safetensors.index.json")
    files = [os.path.join(path, name) for name in names] if os.path.isdir(path) else [path]
    return next((file for file in files if os.path.isfile(file)
                 and file.endswith((".safetensors", ".safetensors.index.json"))
                 and not training_checkpoint.find(file)), None)


def read_config(values, path):
    """The `EncoderConfig` that the `values` of a Hugging Face `config.json` describe.

    Raises:
        InputError: they describe another network than BERT's encoder; names `path`.
    """
    for key, only in _FIXED.items():
        if values.get(key, only) != only:
            raise InputError(f"{path}: {key} must be {only!r}, not {values[key]!r}.")
    names = [field.name for field in dataclasses.fields(EncoderConfig)]
    ours = {"type_vocab_size": 2, **{name: values[name] for name in names if name in values}}
    activation = values.get("hidden_act", "gelu")
    if not isinstance(activation, str) or activation not in _ACTIVATIONS:
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


def _labels(values):
    """The names of the classes, in the order of their numbers."""
    numbered = values.get("id2label")
    numbers = list(map(str, range(len(numbered)))) if isinstance(numbered, dict) else []
    labels = tuple(numbered.get(number) for number in numbers)
    return labels if all(isinstance(label, str) for label in labels) else ()


def _task(values, tensors):
    """The head that `classifier` is, as far as the files tell."""
    classes = values.get("architectures")
    heads = {head for name, heads in _CLASSES for head in heads
             if isinstance(classes, list) and name in classes} & set(_TASKS)
    if "classification" not in heads:
        return min(heads, default=None)
    single = "classifier.bias" in tensors and tensors["classifier.bias"].shape == (1,)
    return "regression" if single else "classification"


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
    tokenizer = folders.beside(file, "tokenizer_config.json")
    return Source(file, read_config(values, path) if path else None, tensors,
                  _table(_task(values, tensors) or (task if task in _TASKS else _TASKS[0])),
                  folders.vocabulary_beside(file),
                  read_json(tokenizer).get("do_lower_case") if tokenizer else None,
                  _labels(values))


def table_for(weights):
    """The table to write `weights` with."""
    tasks = [name for name in _TASKS if name in weights.heads]
    if len(tasks) > 1:
        raise InputError(f"{weights.source} has the heads {' and '.join(tasks)}, which Hugging "
                         "Face's checkpoints all call classifier; take one out.")
    return _table(tasks[0] if tasks else _TASKS[0],
                  "bert." if set(weights.heads) - {"pooler"} else "")


def _config(weights):
    """The values of `config.json`."""
    heads, config = set(weights.heads), weights.config
    back = {ours: theirs for theirs, ours in reversed(_ACTIVATIONS.items())}
    counts = [tensor.shape[0] for name, tensor in weights.tensors.items()
              if name in [f"{task}/dense/bias" for task in _TASKS]]
    labels = [f"LABEL_{i}" for i in range(*counts[:1] or [0])]
    labels = weights.labels if len(weights.labels) == len(labels) else labels
    dtypes = {tensor.dtype for tensor in weights.tensors.values()}
    return {
        "architectures": [next(name for name, needed in _CLASSES if needed <= heads)],
        "model_type": "bert",
        **dataclasses.asdict(config),
        "hidden_act": back[config.hidden_act],
        "pad_token_id": 0,
        "tie_word_embeddings": "masked_lm/output_weights" not in weights.tensors,
        **({"torch_dtype": dtypes.pop()} if len(dtypes) == 1 else {}),
        **({"id2label": {str(i): label for i, label in enumerate(labels)},
            "label2id": {label: i for i, label in enumerate(labels)}} if labels else {}),
        **({"problem_type": "regression"} if "regression" in heads else {}),
    }


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
    save_file(values, os.path.join(folder, "model.safetensors"), {"format": "pt"})
    write_json(os.path.join(folder, "config.json"), _config(weights))
    folders.copy_vocabulary(weights, os.path.join(folder, folders.VOCABULARY))
    if weights.vocab_file:
        write_json(os.path.join(folder, "tokenizer_config.json"), {
            "tokenizer_class": "BertTokenizer", "do_lower_case": weights.do_lower_case,
            "model_max_length": weights.config.max_position_embeddings})
