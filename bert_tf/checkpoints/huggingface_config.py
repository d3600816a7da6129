"""`config.json` of Hugging Face's checkpoints: the configuration that it describes, and back."""

import os
from collections.abc import Iterable, Mapping, Sequence, Set
from types import MappingProxyType
from typing import Any

from bert_tf.checkpoints import names
from bert_tf.checkpoints.huggingface_models import KEYS, MODELS, Model, model_of
from bert_tf.checkpoints.huggingface_tokenizer import PADDING
from bert_tf.checkpoints.weights import Weights
from bert_tf.config import CONFIGS, EncoderConfig, Sizes, config_from_dict
from bert_tf.errors import InputError, naming
from bert_tf.files import read_json
from bert_tf.heads import HEADS
from bert_tf.models.albert.huggingface import check_groups
from bert_tf.tokenization import Vocabulary

_ACTIVATIONS = {"gelu": "gelu_erf", "gelu_python": "gelu_erf", "gelu_new": "gelu",
                "gelu_pytorch_tanh": "gelu", "gelu_python_tanh": "gelu", "gelu_fast": "gelu",
                "gelu_accurate": "gelu", "relu": "relu", "relu6": "relu6",
                "tanh": "tanh", "silu": "silu", "swish": "silu", "linear": "linear"}
_THEIR_ACTIVATIONS = {ours: theirs for theirs, ours in reversed(_ACTIVATIONS.items())}
# Fields whose values have other names in files.
_ACTIVATED = {"hidden_act", "conv_act", "pooler_hidden_act"}
_TASKS = sorted((head for head in HEADS.values() if head.task and head.huggingface),
                key=lambda head: head.is_classifier)
# Which classes have which heads; the first whose heads are all there is the one that is written.
TASK_CLASSES = tuple((f"For{head.huggingface}", {head.name}) for head in _TASKS)
# The key of `config.json` that names a kind of BERT, which transformers keeps and does not read.
_KIN = "kind_of_bert"
# The problems that a model for the classification of sequences is trained for; files may omit them.
PROBLEMS = {head.problem_type: head.name for head in HEADS.values() if head.problem_type}
# Keys that no network here has: a file that was read keeps them when it is written.
_KEPT = (*(f"{token}_token_id" for token in ("bos", "eos", "cls", "sep", "mask")),
         *(f"{part}_dropout" for part in ("classifier", "cls", "pooler", "qa", "seq_classif",
                                          "summary_last")), "classifier_dropout_prob",
         "summary_type", "summary_use_proj", "summary_activation")


def named_classifier(values: dict[str, Any], classes: str, candidates: Sequence[str],
                     is_single: bool, hint: str | None) -> str:
    """Returns the head of some `candidates` that `classifier` is: the one that the file's classes,
    whose names begin with `classes`, and its problem type name, then `hint`, then a regression if
    the classifier `is_single`, of one label."""
    architectures = values.get("architectures")
    if not isinstance(architectures, list):
        architectures = []
    named = [name for end, heads in TASK_CLASSES for name in candidates
             if name in heads and classes + end in architectures]
    problem = PROBLEMS.get(str(values.get("problem_type")))
    if problem in named:
        return problem
    if hint in (named or candidates):
        return hint
    if is_single and "regression" in named:
        return "regression"
    return (*named, *candidates)[0]


def find_type(values: dict[str, Any], tensors: dict, path: str, known: Iterable[str]) -> str:
    """The `model_type` of the files, which their tensors show without a `config.json`; InputError,
    which names `path`, if it is not one of the `known` types."""
    kind = values.get("model_type") or next(
        (kind for kind, model in MODELS.items()
         if any(name.startswith(model.prefix) for name in tensors)), "bert")
    if not isinstance(kind, str) or kind not in MODELS:
        raise InputError(f"{path}: model_type {kind!r} can't be read, since its network is not "
                         f"built here. Take a model whose type is {', '.join(known)}, or open this "
                         "one with transformers; the table \"Which models open\" in "
                         "docs/weights.md says what works with each type.")
    return kind


def unused_positions(model: Model, values: dict[str, Any]) -> int:
    """Returns the number of first rows of the table of positions that no token has."""
    if not model.positions_after_padding:
        return 0
    padding = values.get("pad_token_id")
    if type(padding) is not int or padding < 0:
        padding = model.pad_token_id
    return padding + 1


def read_config(values: dict[str, Any], kind: str, path: str, model: Model | None = None
                ) -> Sizes:
    """The configuration in the `values` of a `config.json`; InputError, which names `path`, if they
    describe another network than one of ours. `model`: the row of the files, if not the type's."""
    model = model or MODELS[kind]
    _check_values(values, model, path)
    kin = values.get(_KIN)
    theirs = {ours: name for ours, name in model.other_names.items()
              if name in values and ours not in values}
    theirs |= {ours: name for ours, name in model.names.items() if name in values}
    values = {**values, **{ours: values[name] for ours, name in theirs.items()}}
    # A key that files of this type do not have says nothing, as in transformers.
    known = [key for key in (*KEYS, *model.keys) if key in values and model.names.get(key, key)]
    for key in known:
        if values[key] is None and model.defaults.get(key):     # which transformers refuses, too
            raise InputError(f"{path}: {theirs.get(key, key)} is null; write its value.")
    ours = {**model.defaults, **{key: values[key] for key in known}, "model_type": kind}
    if kin in model.kin:
        ours["model_type"] = kin
    if values.get("is_decoder"):
        ours["directionality"] = "left_to_right"
    if model.exact_gelu:        # unless the file is ours
        ours["prediction_act"] = values.get("prediction_act", "gelu_erf")
    if values.get("pruned_heads"):      # transformers 4 writes it, 5 knows no such thing
        ours["pruned_heads"] = values["pruned_heads"]
    positions = ours.get("max_position_embeddings", EncoderConfig.max_position_embeddings)
    if type(positions) is int:
        ours["max_position_embeddings"] = positions - unused_positions(model, values)
    activations = {"hidden_act": "gelu", **ours}
    with naming(path, theirs):
        acts = {key: our_activation(key, activations[key])
                for key in _ACTIVATED if key in activations}
    with naming(path, theirs | {act: activations[key] for key, act in acts.items()}):
        config = config_from_dict(ours | acts)
    if "num_hidden_groups" in model.keys:
        check_groups(config, path)
    return config


def read_config_file(values: dict[str, Any], path: str) -> Sizes:
    """The configuration in a `config.json` that is read without its weights; InputError if the
    weights have to show the network, or see `read_config`."""
    kind = values.get("model_type")
    if isinstance(kind, str) and kind not in MODELS and kind in CONFIGS:
        raise InputError(f"{path}: the configuration of {kind} is read together with its "
                         "weights; name the folder with --init_checkpoint, and leave out "
                         "--bert_config_file.")
    return read_config(values, find_type(values, {}, path, MODELS), path)


def _check_values(values, model, path):
    """Raises InputError for settings with which transformers builds another network."""
    for key, only in model.fixed.items():
        # A padding token of null says nothing.
        if values.get(key, only) != only and (key, values[key]) != ("pad_token_id", None):
            raise InputError(f"{path}: {key} must be {only!r}, not {values[key]!r}, with which "
                             "the network is another one; take another model.")
    is_decoder, padding = values.get("is_decoder", False), values.get("pad_token_id")
    if is_decoder not in (False, bool(model.causal)):
        raise InputError(f"{path}: is_decoder must be False, not {is_decoder!r}.")
    if model.positions_after_padding and padding is not None and not (
            type(padding) is int and padding >= 0):
        raise InputError(f"{path}: pad_token_id must be a whole number from 0, not {padding!r}.")


def our_activation(key: str, value: Any, known: Mapping[str, str] = MappingProxyType(_ACTIVATIONS)
                   ) -> str:
    """Our name of an activation, the value of `key` in a `config.json`; InputError if unknown."""
    if not isinstance(value, str) or value not in known:
        raise InputError(f"{key} must be one of {', '.join(known)}, not {value!r}.")
    return known[value]


def their_activation(activation: str, read: Any) -> str:
    """The name of our activation in a `config.json`: `read`, that of the file that was read, if it
    is one of the several."""
    if _ACTIVATIONS.get(str(read)) == activation:
        return read
    return _THEIR_ACTIVATIONS[activation]


def as_read(weights: Weights) -> dict[str, Any]:
    """The values of the config.json beside the file that the weights were read from; {} without
    one."""
    if not weights.origin:
        return {}
    return read_json(os.path.join(os.path.dirname(weights.origin.file), "config.json"), {})


def has_padding(vocabulary: Vocabulary) -> bool:
    """Returns whether a token is padding. WordPiece's vocabularies give padding no role."""
    return "pad" in vocabulary.special or not vocabulary.ids.keys().isdisjoint(PADDING)


def padding_id(weights: Weights, model: Model) -> int:
    """The id of padding; without a vocabulary that of the file that was read; without one, the
    class's default if positions depend on it. InputError if the vocabulary has another one than
    models of this type."""
    vocabulary = weights.tokenizer and weights.tokenizer.vocabulary
    if not vocabulary and weights.origin:
        padding = as_read(weights).get("pad_token_id")
        return padding if type(padding) is int else model.pad_token_id
    if not vocabulary or (model.positions_after_padding and not has_padding(vocabulary)):
        return model.pad_token_id
    ids = next((vocabulary.ids[token] for token in (vocabulary.special.get("pad"), *PADDING)
                if token in vocabulary.ids), vocabulary.pad_id)
    if (only := model.fixed.get("pad_token_id", ids)) != ids:
        raise InputError(f"{weights.source}: padding is token {ids} of the vocabulary, but in "
                         f"Hugging Face's {weights.config.model_type} it is always token {only}; "
                         "choose another format.")
    return ids


def describe_labels(weights: Weights, heads: Iterable[str]) -> dict[str, dict]:
    """The names of the labels as config.json has them, of the first of `heads`; {} without one."""
    biases = {f"{head}/dense/bias" for head in heads}
    count = next((tensor.shape[0] for name, tensor in weights.tensors.items() if name in biases), 0)
    if not count:
        return {}
    labels = weights.labels
    if len(labels) != count:
        labels = tuple(f"LABEL_{i}" for i in range(count))
    return {"id2label": {str(i): label for i, label in enumerate(labels)},
            "label2id": {label: i for i, label in enumerate(labels)}}


def describe_heads(weights: Weights, heads: Set[str], classes: str,
                   others: Iterable[tuple[str, Set[str]]]) -> dict[str, Any]:
    """The class, the labels and the problem of `heads`, as config.json has them. `classes` begins
    the classes' names; `others` are the ends of names without a task, and their heads."""
    end = next(end for end, needed in (*TASK_CLASSES, *others, ("Model", set())) if needed <= heads)
    problem = next((problem for problem, head in PROBLEMS.items()
                    if head in heads - {"classification"}), None)
    if "classification" in heads:       # which files may leave out
        problem = as_read(weights).get("problem_type")
    return {"architectures": [classes + end], **describe_labels(weights, names.CLASSIFIERS),
            **({"problem_type": problem} if problem else {})}


def describe(weights: Weights) -> dict[str, Any]:
    """The values of `config.json`."""
    heads, config = set(weights.heads), weights.config
    if getattr(weights.tensors.get("next_sentence/dense/bias"), "shape", (2,)) != (2,):
        heads.remove("next_sentence")       # of three classes, which no class has
    model = model_of(weights)
    causal = ((model.causal, {"masked_lm"}),) if config.is_causal else ()
    special, read = {"pad_token_id": padding_id(weights, model)}, as_read(weights)
    activations = {
        key: their_activation(getattr(config, key), read.get(model.names.get(key, key)))
        for key in {*KEYS, *model.keys} & _ACTIVATED}
    predicting = config.prediction_act or config.hidden_act
    kept = _KEPT
    if "masked_lm" not in heads:
        kept += ("legacy", "tie_word_embeddings")
    described = {
        **describe_heads(weights, heads, model.classes, (*causal, *model.pretraining)),
        "model_type": next(kind for kind, row in MODELS.items() if row.classes == model.classes),
        **({_KIN: config.model_type} if config.model_type in model.kin else {}),
        **{key: getattr(config.filled(), key) for key in (*KEYS, *model.keys)},
        **activations,
        "max_position_embeddings":
            config.max_position_embeddings + unused_positions(model, special),
        **special,
        **({"is_decoder": True} if config.is_causal else {}),
        **({"prediction_act": predicting} if model.exact_gelu and predicting != "gelu_erf" else {}),
        "tie_word_embeddings": "masked_lm/output_weights" not in weights.tensors,
        # transformers 5 writes only what differs from its defaults; CTranslate2 4.8 needs this key.
        **{key: model.fixed[key] for key in ("position_embedding_type",) if key in model.fixed},
        **model.written,
    }
    return {**{model.names.get(key, key): value for key, value in described.items()
               if model.names.get(key, key) and value is not None},
            **{theirs: described[ours] for ours, theirs in model.other_names.items()},
            **{key: read[key] for key in kept if key in read}}
