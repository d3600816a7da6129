"""Hugging Face's BERT checkpoints: `model.safetensors` beside a `config.json`."""

import dataclasses
import os
import re

import numpy as np
from safetensors.numpy import save

from bert_tf.checkpoints import names, rules, safetensors_files
from bert_tf.checkpoints.rules import Format, Source, Tensor, encoder_rows
from bert_tf.checkpoints.weights import Weights
from bert_tf.config import EncoderConfig, read_json
from bert_tf.errors import InputError
from bert_tf.files import write_json
from bert_tf.heads import HEADS

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


@dataclasses.dataclass(frozen=True)
class _Model:
    """What `config.json` holds for a `model_type`.

    Attributes:
        classes: the beginning of the names of its classes.
        fixed: settings with the one value that they may have: any other makes another network of
            the same tensors.
        defaults: sizes that are these where the file doesn't give them.
    """

    classes: str
    fixed: dict
    defaults: dict


_MODELS = {"bert": _Model("Bert", {"position_embedding_type": "absolute", "is_decoder": False,
                                   "add_cross_attention": False}, {"type_vocab_size": 2})}
_ACTIVATIONS = {"gelu": "gelu_erf", "gelu_python": "gelu_erf", "gelu_new": "gelu",
                "gelu_pytorch_tanh": "gelu", "relu": "relu", "tanh": "tanh", "linear": "linear"}
_TASKS = [head for head in HEADS.values() if head.task and head.huggingface]
# Which classes have which heads; the first whose heads are all there is the one that is written.
_CLASSES = (
    *((f"For{head.huggingface}", {head.name})
      for head in sorted(_TASKS, key=lambda head: head.is_classifier)),
    ("ForPreTraining", {"masked_lm", "next_sentence"}),
    *((f"For{head.huggingface}", {head.name}) for head in HEADS.values() if not head.task),
    ("Model", set()),
)
# What a model for the classification of sequences is trained for; files may leave it open.
_PROBLEMS = {head.problem_type: head.name for head in HEADS.values() if head.problem_type}


def _table(task, prefix="bert."):
    return Format((*((ours, prefix + theirs, endings) for ours, theirs, endings in _ENCODER),
                   *_HEADS, (f"{task}/dense", "classifier", _DENSE)), _IGNORED)


def find(path: str) -> str | None:
    """The safetensors file at `path`, or the index of several, or None."""
    files = [path]
    if os.path.isdir(path):
        files = [os.path.join(path, f"model.safetensors{end}") for end in ("", ".index.json")]
    return next((file for file in files if os.path.isfile(file)
                 and file.endswith((".safetensors", ".safetensors.index.json"))
                 and not re.fullmatch(rules.OWN, os.path.basename(file))), None)


def _read_config(values, path):
    """The configuration in the `values` of a `config.json`.

    Raises:
        InputError: they describe another network than one of ours; names `path`.
    """
    kind = values.get("model_type", "bert")
    model = _MODELS.get(kind) if isinstance(kind, str) else None
    if model is None:
        raise InputError(f"{path}: model_type {kind!r} is not read; models of the type "
                         f"{' or '.join(map(repr, _MODELS))} are.")
    for key, only in model.fixed.items():
        if values.get(key, only) != only:
            raise InputError(f"{path}: {key} must be {only!r}, not {values[key]!r}.")
    keys = [field.name for field in dataclasses.fields(EncoderConfig)]
    ours = {**model.defaults, **{key: values[key] for key in keys if key in values}}
    activation = values.get("hidden_act", "gelu")
    if not isinstance(activation, str) or activation not in _ACTIVATIONS:
        raise InputError(f"{path}: hidden_act must be one of {', '.join(_ACTIVATIONS)}, "
                         f"not {activation!r}.")
    try:
        return EncoderConfig.from_dict({**ours, "hidden_act": _ACTIVATIONS[activation]})
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _labels(values):
    """The names of the classes, in the order of their numbers."""
    numbered = values.get("id2label")
    numbers = list(map(str, range(len(numbered)))) if isinstance(numbered, dict) else []
    found = tuple(numbered.get(number) for number in numbers)
    return found if all(isinstance(label, str) for label in found) else ()


def _classifier(values, hint, single):
    """The head that `classifier` is.

    Args:
        values: those of `config.json`.
        hint: the name of a head, which counts where the values leave a choice.
        single: whether it has one output, as for a number.
    """
    classes = values.get("architectures")
    classes = classes if isinstance(classes, list) else []
    named = [head for end, heads in _CLASSES for head in names.CLASSIFIERS
             if head in heads and any(model.classes + end in classes for model in _MODELS.values())]
    problem = values.get("problem_type")
    if isinstance(problem, str) and _PROBLEMS.get(problem) in named:
        return _PROBLEMS[problem]
    if hint in (named or names.CLASSIFIERS):
        return hint
    return "regression" if single and "regression" in named else (*named, *names.CLASSIFIERS)[0]


def _same(found, one, other):
    return np.array_equal(found[one].read(), found[other].read())


def _standard_name(name):
    """Today's name of a tensor of an old file, or of a file of the bare encoder."""
    name = name.replace("LayerNorm.gamma", "LayerNorm.weight")
    name = name.replace("LayerNorm.beta", "LayerNorm.bias")
    bare = name.startswith(("embeddings.", "encoder.", "pooler."))
    return f"bert.{name}" if bare else name


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


def read(file: str, task: str | None = None) -> Source:
    """The `Source` of a checkpoint.

    Args:
        file: what `find` gave.
        task: the head that `classifier` is, where the files leave it open.

    Raises:
        InputError: a file is damaged, or holds another network.
    """
    path = rules.beside(file, "config.json")
    values = read_json(path) if path else {}
    config = _read_config(values, path) if path else None
    tensors = _tensors(file, values.get("tie_word_embeddings", True))
    single = "classifier.bias" in tensors and tensors["classifier.bias"].shape == (1,)
    tokenizer = rules.beside(file, "tokenizer_config.json")
    return Source(file, config, tensors, _table(_classifier(values, task, single)),
                  rules.vocabulary_beside(file),
                  read_json(tokenizer).get("do_lower_case") if tokenizer else None,
                  _labels(values))


def table_for(weights: Weights) -> Format:
    """The table to write `weights` with.

    Raises:
        InputError: Hugging Face has no model with all of its heads.
    """
    tasks = [name for name in names.CLASSIFIERS if name in weights.heads]
    if len(tasks) > 1:
        raise InputError(f"{weights.source} has the heads {' and '.join(tasks)}, which Hugging "
                         "Face's checkpoints all call classifier; take one out.")
    has_head = any(head in HEADS and HEADS[head].huggingface for head in weights.heads)
    return _table(tasks[0] if tasks else names.CLASSIFIERS[0], "bert." if has_head else "")


def _describe(weights):
    """The values of `config.json`."""
    kind = "bert"
    heads, config = set(weights.heads), weights.config
    back = {ours: theirs for theirs, ours in reversed(_ACTIVATIONS.items())}
    count = next((tensor.shape[0] for name, tensor in weights.tensors.items()
                  if name in [f"{head}/dense/bias" for head in names.CLASSIFIERS]), 0)
    called = weights.labels if len(weights.labels) == count else [
        f"LABEL_{i}" for i in range(count)]
    dtypes = {tensor.dtype for tensor in weights.tensors.values()}
    end = next(end for end, needed in _CLASSES if needed <= heads)
    return {
        "architectures": [_MODELS[kind].classes + end],
        "model_type": kind,
        **dataclasses.asdict(config),
        "hidden_act": back[config.hidden_act],
        "pad_token_id": 0,
        "tie_word_embeddings": "masked_lm/output_weights" not in weights.tensors,
        **({"torch_dtype": dtypes.pop()} if len(dtypes) == 1 else {}),
        **({"id2label": {str(i): label for i, label in enumerate(called)},
            "label2id": {label: i for i, label in enumerate(called)}} if count else {}),
        **next(({"problem_type": theirs} for theirs, ours in _PROBLEMS.items()
                if ours in heads - {"classification"}), {}),
    }


def write(folder: str, weights: Weights, tensors: dict[str, Tensor]) -> None:
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
    write_json(os.path.join(folder, "config.json"), _describe(weights))
    weights.copy_vocabulary(os.path.join(folder, rules.VOCABULARY))
    if weights.vocab_file:
        write_json(os.path.join(folder, "tokenizer_config.json"), {
            "tokenizer_class": "BertTokenizer", "do_lower_case": weights.do_lower_case,
            "model_max_length": weights.config.max_position_embeddings})
