"""XLNet's weights in checkpoints of zihangdai/xlnet."""

import operator
import os
import re

import numpy as np

from bert_tf.checkpoints import google, rules
from bert_tf.checkpoints.rules import DENSE, NORM, SELF, Format, Source, Tensor
from bert_tf.checkpoints.weights import Weights, only_head
from bert_tf.config import XLNetConfig
from bert_tf.errors import InputError, naming
from bert_tf.files import read_json, write_json

CONFIG, PREFIX = "xlnet_config.json", "xlnet_model.ckpt"
HEADS = ("query", "key", "value")
BIASES = ("r_w", "r_r", "r_s")
# The heads on one vector of the sequence, without multiple choice.
SEQUENCE = ("classification", "multi_label", "regression")
LAYER = "encoder/layer_{i}"
ATTENTION = f"{LAYER}/attention"
_IN, _OUT = (("/kernel", "/kernel", "HND"),), (("/kernel", "/kernel", "transpose HND"),)
_BODY, _SUMMARY = "model/transformer", "model/sequnece_summary"
_STACKED = re.compile(rf"{_BODY}/(r_[wrs]_bias|seg_embed)")
_TASK = re.compile(r"model/(classification|regression)_[^/]+/logit/")


def _tf_table(head, layers):
    """The original's table, with a task's `head`; `layers`: whether stacked tensors are split."""
    block, biases, numbered, logits = f"{_BODY}/layer_{{i}}", "encoder", "", []
    if layers:
        biases, numbered = f"{ATTENTION}/self", "/{i}"
    if head:
        logits = [(f"{head}/dense", _task_scope(head), DENSE)]
    return Format((
        ("embeddings/word_embeddings", f"{_BODY}/word_embedding/lookup_table", SELF),
        ("embeddings/mask_emb", f"{_BODY}/mask_emb/mask_emb", (("", "", "11H"),)),
        *((f"{biases}/{name}", f"{_BODY}/{name}_bias{numbered}", SELF) for name in BIASES),
        (f"{ATTENTION}/self/seg_embed", f"{_BODY}/seg_embed/{{i}}", SELF),
        *((f"{ATTENTION}/self/{part}", f"{block}/rel_attn/{part[0]}", _IN) for part in HEADS),
        (f"{ATTENTION}/self/position", f"{block}/rel_attn/r", _IN),
        (f"{ATTENTION}/output/dense", f"{block}/rel_attn/o", _OUT),
        (f"{ATTENTION}/output/LayerNorm", f"{block}/rel_attn/LayerNorm", NORM),
        (f"{LAYER}/intermediate/dense", f"{block}/ff/layer_1", DENSE),
        (f"{LAYER}/output/dense", f"{block}/ff/layer_2", DENSE),
        (f"{LAYER}/output/LayerNorm", f"{block}/ff/LayerNorm", NORM),
        ("permutation_lm/output_bias", "model/lm_loss/bias", SELF),
        ("pooler/dense", f"{_SUMMARY}/summary", DENSE),
        ("pooler/summary_bias", f"{_SUMMARY}/summary_bias", SELF),
        *((f"pooler/attention/{part}", f"{_SUMMARY}/abs_attn/{part[0]}", _IN) for part in HEADS),
        ("pooler/attention/output", f"{_SUMMARY}/abs_attn/o", _OUT),
        ("pooler/attention/LayerNorm", f"{_SUMMARY}/abs_attn/LayerNorm", NORM),
        *rules.conditional_span_rows("/", DENSE, NORM),
        ("multiple_choice/dense", "logits/dense", DENSE), *logits),
        ((r"global_step|beta[12]_power|.*/(adam_[mv]|Adam(_1)?)", "state of the optimizer"),))


def _task_scope(head):
    """The original's scope of a task's classifier, whose name it appends."""
    return f"model/{'regression' if head == 'regression' else 'classification'}_task/logit"


def _unstacked(tensors, layers):
    """Splits tensors that hold all layers' values into one for each layer."""
    split = {}
    for name, tensor in tensors.items():
        if not _STACKED.fullmatch(name) or len(tensor.shape) < 3:
            split[name] = tensor
            continue
        for i in range(min(layers, tensor.shape[0])):
            split[f"{name}/{i}"] = tensor.changed(
                operator.itemgetter(i), name=f"{tensor.name} (layer {i})", shape=tensor.shape[1:])
    return split


def _config_of(prefix, tensors):
    """The configuration next to a checkpoint, or from the shapes of its tensors; and notes."""
    summary = {"use_summ_proj": f"{_SUMMARY}/summary/kernel" in tensors, "summary_type":
               "attn" if f"{_SUMMARY}/summary_bias" in tensors else "last"}
    if not any(name.startswith(_SUMMARY) for name in tensors) and not any(
            _TASK.match(name) for name in tensors):
        summary = {}        # which a checkpoint of pre-training has not
    path = rules.beside(prefix, CONFIG) or rules.beside(prefix, rules.CONFIG)
    if path:
        values, keys = read_json(path), {}
        if "n_token" in values:
            keys = {"vocab_size": "n_token"}
        with naming(path, keys):
            return XLNetConfig.from_dict({**summary, **values}), ()
    try:
        query, inner = (tensors[f"{_BODY}/layer_0/{name}/kernel"].shape
                        for name in ("rel_attn/q", "ff/layer_1"))
        return XLNetConfig(
            vocab_size=tensors[f"{_BODY}/word_embedding/lookup_table"].shape[0],
            d_model=query[0], n_head=query[1], d_head=query[2], d_inner=inner[1],
            n_layer=tensors[f"{_BODY}/seg_embed"].shape[0],
            untie_r=len(tensors[f"{_BODY}/r_w_bias"].shape) == 3, **summary), (
                "The configuration is that of the shapes.",)
    except (InputError, KeyError, IndexError) as error:
        raise InputError(f"{prefix} does not describe an XLNet ({error}); name another "
                         "checkpoint.") from None


def read(prefix: str, tensors: dict[str, Tensor]) -> Source:
    config, notes = _config_of(prefix, tensors)
    head = next((match[1] for match in map(_TASK.match, tensors) if match), None)
    renamed = {_TASK.sub(f"{_task_scope(head)}/", name): tensor for name, tensor in tensors.items()}

    def table_of(task):
        if head != "classification" or task not in SEQUENCE[:2]:
            task = head
        return _tf_table(task, config.untie_r)

    return Source(prefix, config, _unstacked(renamed, config.n_layer), table_of(None),
                  rules.vocabulary_beside(prefix), notes=notes, table_of=table_of)


def check_sees_both_sides(weights: Weights) -> None:
    """Raises InputError if the network is Transformer-XL, which no format of XLNet describes."""
    if weights.config.is_causal:
        raise InputError(f"{weights.source}: directionality is left_to_right, but the code of this "
                         "format sees both sides of a token; choose another format.")


def table_for(weights: Weights) -> Format:
    check_sees_both_sides(weights)
    config = weights.config
    task = only_head(weights, SEQUENCE, "the original has one head")
    if config.ff_activation == "gelu_erf":
        raise InputError(f"{weights.source}: ff_activation is the exact GELU, but the code of this "
                         "format computes the tanh form; give --hidden_act=gelu to change the "
                         "model to it.")
    if config.layer_norm_eps != XLNetConfig.layer_norm_eps:
        raise InputError(f"{weights.source}: layer_norm_eps is {config.layer_norm_eps}, but the "
                         f"code of this format always uses {XLNetConfig.layer_norm_eps}; choose "
                         "another format.")
    return _tf_table(task, config.untie_r)


def write(folder: str, weights: Weights, tensors: dict[str, Tensor]) -> None:
    """Writes the original's stacked tensors, which `tensors` has one a layer."""
    config, values = weights.config, {}
    for name, tensor in tensors.items():
        stack, _, number = name.rpartition("/")
        if not _STACKED.fullmatch(stack):
            values[name] = tensor.read()
        elif number == "0":
            values[stack] = np.stack([tensors[f"{stack}/{i}"].read()
                                      for i in range(config.n_layer)])
    google.save(folder, PREFIX, values)
    write_json(os.path.join(folder, CONFIG), {
        **{key: getattr(config, key) for key in ("d_head", "d_inner", "d_model", "ff_activation",
                                                 "n_head", "n_layer")},
        "n_token": config.vocab_size, "untie_r": config.untie_r})
    if weights.tokenizer:
        weights.tokenizer.save(folder)
