"""Hugging Face's files of EuroBERT (transformers, `EuroBertModel` and the classes on top), and what
NeoBERT's files have in common with them."""

from collections.abc import Iterable, Mapping

import numpy as np

from bert_tf.checkpoints import huggingface_config as configs
from bert_tf.checkpoints import huggingface_tokenizer, names, rules, safetensors_files
from bert_tf.checkpoints.huggingface_models import DENSE, TABLE
from bert_tf.checkpoints.rules import SELF, Format, Source, Tensor
from bert_tf.checkpoints.weights import Weights
from bert_tf.config import EuroBertConfig, Sizes
from bert_tf.errors import InputError, naming
from bert_tf.heads import HEADS
from bert_tf.models.eurobert.weights import GATED, QKV, join, split
from bert_tf.models.modernbert.huggingface import ROLES, checked_theta, task_of, token_ids
from bert_tf.tokenization.library_settings import settings_beside

TYPE = "eurobert"
_SCALE = (("/scale", ".weight"),)
# The heads of tasks that there are classes for.
_TASKS = tuple(name for name in names.CLASSIFIERS if HEADS[name].huggingface != "MultipleChoice")
_TIES, _PREFIX = "tie_word_embeddings", "model."
# Our keys, and those of files, whose values are equal.
_KEYS = {**{key: key for key in (
    "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
    "intermediate_size", "max_position_embeddings", "initializer_range", "attention_bias",
    "mlp_bias", "classifier_pooling")},
    "attention_probs_dropout_prob": "attention_dropout", "layer_norm_eps": "rms_norm_eps"}
_THETA = 10_000.0       # where a file has none; the released files have 250,000
_BLOCK = f"{_PREFIX}layers.{{i}}."
NAMES = {"words": f"{_PREFIX}embed_tokens", "attention/layer_norm": f"{_BLOCK}input_layernorm",
         "attention/self/qkv": _BLOCK + QKV, "attention/output/dense": f"{_BLOCK}self_attn.o_proj",
         "layer_norm": f"{_BLOCK}post_attention_layernorm", "intermediate/dense": _BLOCK + GATED,
         "output/dense": f"{_BLOCK}mlp.down_proj", "final": f"{_PREFIX}norm", "decoder": "lm_head"}


def table(theirs: Mapping[str, str], task: str | None, is_bare: bool, notes: Iterable[str] = ()
          ) -> Format:
    """The table of a type of files with its own names of `NAMES`, with the classifier `task`, if
    any; without their prefix in files of the encoder alone."""
    layer = "encoder/layer_{i}"
    encoder = [("embeddings/word_embeddings", theirs["words"], TABLE),
               *((f"{layer}/{ours}", name, _SCALE if "norm" in ours else DENSE)
                 for ours, name in theirs.items() if "{i}" in name),
               ("encoder/final_layer_norm", theirs["final"], _SCALE)]
    if is_bare:
        encoder = [(ours, name.removeprefix(_PREFIX), endings) for ours, name, endings in encoder]
    rows = [*encoder, ("masked_lm/output_weights", theirs["decoder"], TABLE),
            ("masked_lm/output_bias", f"{theirs['decoder']}.bias", SELF)]
    if not task or HEADS[task].is_pooled:       # others read no such layer
        rows.append(("pooler/dense", "dense", DENSE))
    if task:
        rows.append((f"{task}/dense", "classifier", DENSE))
    return Format(tuple(rows), notes=tuple(notes))


def source(file: str, values: dict, tensors: dict[str, Tensor], config: Sizes,
           theirs: Mapping[str, str], classes: str) -> Source:
    """The `Source` of the `tensors` of a file; `classes` begins its classes' names."""
    is_bare = not any(name.startswith(_PREFIX) for name in tensors)
    bias = tensors.get("classifier.bias")

    def table_of(task=None):
        return table(theirs, bias and configs.named_classifier(
            values, classes, _TASKS, bias.shape == (1,), task), is_bare)

    return Source(file, config, tensors, table_of(), rules.vocabulary_beside(file),
                  settings_beside(file).get("do_lower_case"),
                  safetensors_files.labels(values, file), table_of=table_of)


def heads_of(weights: Weights) -> set[str]:
    """The heads of `weights` that a file holds."""
    return {"masked_lm", *_TASKS}.intersection(weights.heads)


def written(weights: Weights, tensors: dict[str, Tensor]) -> dict[str, np.ndarray]:
    """The values of the `tensors` of a file, without the pooler's where no classifier reads it."""
    task = task_of(weights, _TASKS)
    is_read = task and HEADS[task].is_pooled
    return {name: tensor.read() for name, tensor in tensors.items()
            if is_read or not name.startswith("dense.")}


def _read_config(values):
    """The configuration in a config.json."""
    rotary = values.get("rope_parameters") or {}
    if not isinstance(rotary, dict) or any(isinstance(value, dict) for value in rotary.values()):
        raise InputError(f"rope_parameters must have one rope_theta of all layers, not "
                         f"{rotary!r}.")
    if values.get("is_decoder"):
        raise InputError("is_decoder must be False: a eurobert reads texts in both directions.")
    # The original's own code calls it clf_pooling.
    values = {"classifier_pooling": values.get("clf_pooling", "late"), **values}
    config = EuroBertConfig.from_dict({
        **{ours: values[theirs] for ours, theirs in _KEYS.items() if theirs in values},
        "hidden_act": configs.our_activation("hidden_act", values.get("hidden_act", "silu")),
        "rope_theta": checked_theta(values, rotary, "rope_theta", _THETA)})
    if values.get("head_dim") not in (None, config.head_size):
        raise InputError(f"head_dim must be hidden_size / num_attention_heads "
                         f"({config.head_size}), not {values['head_dim']!r}.")
    return config


def read(file: str, values: dict, tensors: dict[str, Tensor]) -> Source:
    """The `Source` of Hugging Face's files; InputError if their configuration describes another
    network."""
    with naming(rules.beside(file, "config.json"), _KEYS):
        config = _read_config(values)
    tensors, words = join(tensors, file), f"{NAMES['words']}.weight"
    if values.get(_TIES) and words in tensors and "classifier.bias" not in tensors:
        tensors["lm_head.weight"] = tensors[words]      # which files then leave out
    return source(file, values, tensors, config, NAMES, "EuroBert")


def table_for(weights: Weights, theirs: Mapping[str, str] = NAMES) -> Format:
    """The table to write `weights` with; InputError if no model there has all of its heads."""
    return table(theirs, task_of(weights, _TASKS), not heads_of(weights),
                 huggingface_tokenizer.notes(weights))


def write(folder: str, weights: Weights, tensors: dict[str, Tensor]) -> None:
    """Writes `model.safetensors`, `config.json` and the tokenizer's files into `folder`."""
    config, before = weights.config, configs.as_read(weights)
    special = token_ids(weights, before, {role: ROLES[role] for role in ("bos", "eos", "pad")})
    mask = token_ids(weights, before, {"mask": "mask"})     # which transformers wants as a number
    special |= {key: value for key, value in mask.items() if value is not None}
    safetensors_files.write(folder, split(written(weights, tensors), config), {
        "model_type": TYPE, **{theirs: getattr(config, ours) for ours, theirs in _KEYS.items()},
        "num_key_value_heads": config.key_value_heads, "head_dim": config.head_size,
        "hidden_act": configs.their_activation(config.hidden_act, before.get("hidden_act")),
        "rope_parameters": {"rope_type": "default", "rope_theta": config.rope_theta},
        "rope_theta": config.rope_theta, **special, _TIES: False,
        **configs.describe_heads(weights, heads_of(weights), "EuroBert",
                                 (("ForMaskedLM", {"masked_lm"}),))})
    huggingface_tokenizer.write(folder, weights.tokenizer, False, config.max_position_embeddings,
                                "tagging" in weights.heads)
