"""Hugging Face's files of ModernBERT (transformers, `ModernBertModel` and the classes on top)."""

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any

from bert_tf.checkpoints import huggingface_config as configs
from bert_tf.checkpoints import huggingface_tokenizer, names, rules, safetensors_files
from bert_tf.checkpoints.huggingface_models import DENSE, NORM, TABLE
from bert_tf.checkpoints.rules import SELF, Format, Source, Tensor
from bert_tf.checkpoints.weights import Weights, only_head
from bert_tf.config import ModernBertConfig
from bert_tf.errors import InputError, naming
from bert_tf.models.modernbert.config import GLOBAL, KINDS, LOCAL
from bert_tf.tokenization.library_settings import settings_beside

TYPE = "modernbert"
_ACTIVATIONS = {"hidden_act": "hidden_activation", "classifier_activation": "classifier_activation"}
# The keys of the two bases in files of transformers 4; those of transformers 5 have them by kind.
_THETAS = {GLOBAL: "global_rope_theta", LOCAL: "local_rope_theta"}
_RENAMED = {"layer_norm_eps": "norm_eps", "embedding_dropout_prob": "embedding_dropout",
            "hidden_dropout_prob": "mlp_dropout",
            "attention_probs_dropout_prob": "attention_dropout"}
# Our keys, and those of files, whose values are equal.
_KEYS = {field.name: _RENAMED.get(field.name, field.name)
         for field in dataclasses.fields(ModernBertConfig) if field.name not in (
             *_ACTIVATIONS, *_THETAS.values(), "attention_output_dropout_prob", "model_type",
             "quantisation")}
# The special tokens in files, and ours.
ROLES = {"pad": "pad", "cls": "cls", "sep": "sep", "bos": "cls", "eos": "sep"}
# Keys that say nothing of the network, and their values without a file that was read.
_OTHERS = {"classifier_dropout": 0.0, "initializer_cutoff_factor": 2.0, "sparse_prediction": False,
           "sparse_pred_ignore_index": -100, "deterministic_flash_attn": False}
_CLASSES = "ModernBert"
# The heads of a class that all have the same layers.
_TASKS = (*names.CLASSIFIERS, "answer_span")
_PREFIX, _WORDS, _HEAD = "model.", "embeddings.tok_embeddings.weight", "head."
# The head of the language model serves as the pooler of a task's model, as in transformers.
_POOLER = "pooler."
_TIES = "tie_word_embeddings"
_NOTES = {"multiple_choice": ("The pooling cls of transformers' choices takes the first token that "
                              "is not padding.",)}


def _table(prefix, task=None, notes=()):
    layer = "encoder/layer_{i}"
    block = f"{prefix}layers.{{i}}"
    rows = [
        ("embeddings/word_embeddings", f"{prefix}{_WORDS}", SELF),
        ("embeddings/LayerNorm", f"{prefix}embeddings.norm", NORM),
        (f"{layer}/attention/LayerNorm", f"{block}.attn_norm", NORM),
        (f"{layer}/attention/self/qkv", f"{block}.attn.Wqkv", DENSE),
        (f"{layer}/attention/output/dense", f"{block}.attn.Wo", DENSE),
        (f"{layer}/LayerNorm", f"{block}.mlp_norm", NORM),
        (f"{layer}/intermediate/dense", f"{block}.mlp.Wi", DENSE),
        (f"{layer}/output/dense", f"{block}.mlp.Wo", DENSE),
        ("encoder/final_norm", f"{prefix}final_norm", NORM),
        ("masked_lm/transform/dense", f"{_HEAD}dense", DENSE),
        ("masked_lm/transform/LayerNorm", f"{_HEAD}norm", NORM),
        ("masked_lm/output_bias", "decoder.bias", SELF),
        ("masked_lm/output_weights", "decoder", TABLE),
        ("pooler/dense", f"{_POOLER}{_HEAD}dense", DENSE),
        ("pooler/LayerNorm", f"{_POOLER}{_HEAD}norm", NORM)]
    if task:
        rows.append((f"{task}/dense", "classifier", DENSE))
    return Format(tuple(rows), (safetensors_files.COPIES,), notes=notes)


def _theta(values, kind):
    """The base of the rotary angles of a kind of layer."""
    key, by_kind = _THETAS[kind], values.get("rope_parameters") or {}
    settings = isinstance(by_kind, dict) and (by_kind.get(kind) or {})
    if not isinstance(settings, dict) or by_kind.keys() - set(KINDS):
        raise InputError(f"rope_parameters must have settings for {' and '.join(KINDS)}, not "
                         f"{by_kind!r}.")
    if "rope_theta" in settings:
        key = f"rope_theta of {kind}"
    elif kind == LOCAL and values.get(key, 0) is None:      # transformers 4: as in global layers
        return _theta(values, GLOBAL)
    return checked_theta(values, settings, key, getattr(ModernBertConfig, _THETAS[kind]))


def checked_theta(values: dict, settings: dict, key: str, default: float) -> float:
    """The base of rotary angles in the `settings` of a config.json, else in the value of `key`;
    InputError if the angles are of another form."""
    if values.get("rope_scaling"):
        raise InputError(f"rope_scaling must be null, not {values['rope_scaling']!r}.")
    form = settings.get("rope_type", settings.get("type", "default"))
    if form != "default":
        raise InputError(f"rope_type must be 'default', not {form!r}.")
    theta = settings.get("rope_theta", values.get(key, default))
    if not isinstance(theta, (int, float)) or isinstance(theta, bool) or not theta > 0:
        raise InputError(f"{key} must be a number above 0, not {theta!r}.")
    return theta


def _read_config(values):
    """The configuration in a config.json."""
    ours = {key: values[theirs] for key, theirs in _KEYS.items() if theirs in values}
    if ours.get("layer_types", ()) is None:
        del ours["layer_types"]
    elif isinstance(ours.get("layer_types"), list):
        ours.setdefault("num_hidden_layers", ModernBertConfig.num_hidden_layers)
    ours |= {key: configs.our_activation(theirs, values.get(theirs, "gelu"))
             for key, theirs in _ACTIVATIONS.items()}
    ours |= {key: _theta(values, kind) for kind, key in _THETAS.items()}
    return ModernBertConfig.from_dict(
        {**ours, "attention_output_dropout_prob": values.get("attention_dropout", 0.0)})


def read(file: str, values: dict, tensors: dict[str, Tensor]) -> Source:
    """The `Source` of Hugging Face's files; InputError if their configuration describes another
    network, or a copy differs from its tensor."""
    with naming(rules.beside(file, "config.json"), {**_KEYS, **_ACTIVATIONS}):
        config = _read_config(values)
    prefix = _PREFIX * any(name.startswith(_PREFIX) for name in tensors)
    tensors, words = dict(tensors), f"{prefix}{_WORDS}"
    if values.get(_TIES, True) and {"decoder.weight", words} <= tensors.keys():
        safetensors_files.set_copy_aside(tensors, "decoder.weight", words, file)
    # The pooler's, and the language model's too unless there is a task's classifier.
    bias = tensors.get("classifier.bias")
    for name in [name for name in tensors if name.startswith(_HEAD)]:
        tensors[f"{_POOLER}{name}"] = tensors[name]
        if bias:
            del tensors[name]

    def table_of(task=None):
        return _table(prefix, bias and configs.named_classifier(
            values, _CLASSES, _TASKS, bias.shape == (1,), task))

    return Source(file, config, tensors, table_of(), rules.vocabulary_beside(file),
                  settings_beside(file).get("do_lower_case"),
                  safetensors_files.labels(values, file), table_of=table_of)


def task_of(weights: Weights, tasks: Collection[str] = _TASKS) -> str | None:
    """The head of one of some tasks that a file of `weights` holds; InputError if no class in
    Hugging Face's format has all of its heads."""
    task = only_head(weights, tasks, "Hugging Face's checkpoints call each of them classifier")
    if task and "masked_lm" in weights.heads:
        raise InputError(f"{weights.source} has the heads masked_lm and {task}, but a Hugging "
                         "Face class has one head; give --leave_out=masked_lm.")
    return task


def token_ids(weights: Weights, before: Mapping[str, Any], roles: Mapping[str, str]
              ) -> dict[str, int | None]:
    """The ids of special tokens as config.json has them, by `roles`: the tokenizer's, else those of
    the file that was read; None for no token, since transformers has ids of its own then."""
    keys = {f"{theirs}_token_id": ours for theirs, ours in roles.items()}
    if not weights.tokenizer:
        return {key: before.get(key) for key in keys}
    return {key: getattr(weights.tokenizer.vocabulary, f"{ours}_id") for key, ours in keys.items()}


def table_for(weights: Weights) -> Format:
    """The table to write `weights` with; InputError if no model there has all of its heads."""
    task = task_of(weights)
    return _table(_PREFIX * bool(task or "masked_lm" in weights.heads), task, (
        *_NOTES.get(task, ()), *huggingface_tokenizer.notes(weights)))


def write(folder: str, weights: Weights, tensors: dict[str, Tensor]) -> None:
    """Writes `model.safetensors`, `config.json` and the tokenizer's files into `folder`."""
    config, heads = weights.config, set(weights.heads)
    # Only a model with a task's head has the pooler's tensors, as `head`.
    values = {name.removeprefix(_POOLER): tensor.read() for name, tensor in tensors.items()
              if not heads.isdisjoint(_TASKS) or not name.startswith(_POOLER)}
    before = configs.as_read(weights)
    others = _OTHERS | {key: value for key, value in before.items() if key in _OTHERS}
    safetensors_files.write(folder, values, {
        "model_type": TYPE,
        **{theirs: getattr(config, ours) for ours, theirs in _KEYS.items()},
        "layer_types": list(config.kinds),
        **{theirs: configs.their_activation(getattr(config, ours), before.get(theirs))
           for ours, theirs in _ACTIVATIONS.items()},
        **{key: getattr(config, key) for key in _THETAS.values()},
        "rope_parameters": {kind: {"rope_type": "default", "rope_theta": getattr(config, key)}
                            for kind, key in _THETAS.items()},
        **others, **token_ids(weights, before, ROLES),
        _TIES: "decoder.weight" not in values if "masked_lm" in heads else before.get(_TIES, True),
        **configs.describe_heads(weights, heads, _CLASSES, (("ForMaskedLM", {"masked_lm"}),))})
    huggingface_tokenizer.write(folder, weights.tokenizer, False, config.max_position_embeddings,
                                "tagging" in heads)
