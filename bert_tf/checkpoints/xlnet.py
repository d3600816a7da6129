"""XLNet's weights in three formats: checkpoints of zihangdai/xlnet, Hugging Face's files and
Keras's.
"""

import dataclasses
import os
import re
from collections.abc import Mapping

import lazy_loader
import numpy as np

from bert_tf.checkpoints import rules
from bert_tf.checkpoints.rules import Format, Source, Tensor
from bert_tf.checkpoints.weights import Weights
from bert_tf.config import XLNetConfig
from bert_tf.errors import InputError
from bert_tf.files import write_json
from bert_tf.options import read_json

tf = lazy_loader.load("tensorflow")

TYPE = "xlnet"
CONFIG, PREFIX = "xlnet_config.json", "xlnet_model.ckpt"
_SELF = (("", ""),)
_HEADS = ("query", "key", "value")
_BIASES = ("r_w", "r_r", "r_s")
# The heads on one vector of the sequence, but for multiple choice.
_SEQUENCE = ("classification", "multi_label", "regression")


# Keras

def keras_parts(config: XLNetConfig) -> list[tuple[str, str]]:
    """The parts in the order of the network's `layers`: (class, name in the table)."""
    return [("XLNetEmbeddings", "embeddings"),
            *(("TwoStreamLayer", f"layer_{i}") for i in range(config.n_layer)),
            *([] if config.untie_r else [("SharedBiases", "shared_biases")]),
            ("Summary", "pooler")]


_KERNEL = (("/kernel", "/vars/0"),)
_DENSE = (("/kernel", "/vars/0"), ("/bias", "/vars/1"))
_NORM = (("/gamma", "/vars/0"), ("/beta", "/vars/1"))
_LAYER = "encoder/layer_{i}"
_ATTENTION = f"{_LAYER}/attention"
KERAS = (
    ("embeddings", "encoder/embeddings/vars", (("/word_embeddings", "/0"), ("/mask_emb", "/1"))),
    *((f"encoder/{name}", f"encoder/shared_biases/vars/{i}", _SELF)
      for i, name in enumerate(_BIASES)),
    *((f"{_ATTENTION}/self/{part}", f"{_ATTENTION}/{part}", _KERNEL)
      for part in (*_HEADS, "position")),
    *((f"{_ATTENTION}/self/{name}", f"{_ATTENTION}/vars/{i}", _SELF)
      for i, name in enumerate(("seg_embed", *_BIASES))),
    (f"{_ATTENTION}/output/dense", f"{_LAYER}/attention_output/projection", _KERNEL),
    (f"{_ATTENTION}/output/LayerNorm", f"{_LAYER}/attention_output/norm", _NORM),
    (f"{_LAYER}/intermediate/dense", f"{_LAYER}/intermediate", _DENSE),
    (f"{_LAYER}/output/dense", f"{_LAYER}/output_/projection", _DENSE),
    (f"{_LAYER}/output/LayerNorm", f"{_LAYER}/output_/norm", _NORM),
    ("pooler/summary_bias", "encoder/pooler/vars/0", _SELF),
    *((f"pooler/attention/{part}", f"encoder/pooler/{part}", _KERNEL) for part in _HEADS),
    ("pooler/attention/output", "encoder/pooler/output_", _KERNEL),
    ("pooler/attention/LayerNorm", "encoder/pooler/norm", _NORM),
    ("pooler/dense", "encoder/pooler/projection", _DENSE),
)


# The original

_IN, _OUT = (("/kernel", "/kernel", "HND"),), (("/kernel", "/kernel", "transpose HND"),)
_WHOLE, _GAMMA = (("/kernel", "/kernel"), ("/bias", "/bias")), (("/gamma", "/gamma"),
                                                                ("/beta", "/beta"))
_BODY, _SUMMARY = "model/transformer", "model/sequnece_summary"
_STACKED = re.compile(rf"{_BODY}/(r_[wrs]_bias|seg_embed)")
_TASK = re.compile(r"model/(classification|regression)_[^/]+/logit/")


def _tf_table(head, layers):
    """The table of the original's checkpoints, of a task's `head` or None; the tensors that it
    stacks are taken apart, one of each layer, if `layers`."""
    block, biases = f"{_BODY}/layer_{{i}}", f"{_ATTENTION}/self" if layers else "encoder"
    numbered = "/{i}" if layers else ""
    return Format((
        ("embeddings/word_embeddings", f"{_BODY}/word_embedding/lookup_table", _SELF),
        ("embeddings/mask_emb", f"{_BODY}/mask_emb/mask_emb", (("", "", "11H"),)),
        *((f"{biases}/{name}", f"{_BODY}/{name}_bias{numbered}", _SELF) for name in _BIASES),
        (f"{_ATTENTION}/self/seg_embed", f"{_BODY}/seg_embed/{{i}}", _SELF),
        *((f"{_ATTENTION}/self/{part}", f"{block}/rel_attn/{part[0]}", _IN) for part in _HEADS),
        (f"{_ATTENTION}/self/position", f"{block}/rel_attn/r", _IN),
        (f"{_ATTENTION}/output/dense", f"{block}/rel_attn/o", _OUT),
        (f"{_ATTENTION}/output/LayerNorm", f"{block}/rel_attn/LayerNorm", _GAMMA),
        (f"{_LAYER}/intermediate/dense", f"{block}/ff/layer_1", _WHOLE),
        (f"{_LAYER}/output/dense", f"{block}/ff/layer_2", _WHOLE),
        (f"{_LAYER}/output/LayerNorm", f"{block}/ff/LayerNorm", _GAMMA),
        ("permutation_lm/output_bias", "model/lm_loss/bias", _SELF),
        ("pooler/dense", f"{_SUMMARY}/summary", _WHOLE),
        ("pooler/summary_bias", f"{_SUMMARY}/summary_bias", _SELF),
        *((f"pooler/attention/{part}", f"{_SUMMARY}/abs_attn/{part[0]}", _IN) for part in _HEADS),
        ("pooler/attention/output", f"{_SUMMARY}/abs_attn/o", _OUT),
        ("pooler/attention/LayerNorm", f"{_SUMMARY}/abs_attn/LayerNorm", _GAMMA),
        *_span_rows("/", _WHOLE, _GAMMA), ("multiple_choice/dense", "logits/dense", _WHOLE),
        *([(f"{head}/dense", _task_scope(head), _WHOLE)] if head else [])),
        ((r"global_step|beta[12]_power|.*/(adam_[mv]|Adam(_1)?)", "state of the optimizer"),))


def _task_scope(head):
    """Where the original has the classifier of a task, whose name it appends."""
    return f"model/{'regression' if head == 'regression' else 'classification'}_task/logit"


def _span_rows(dot, dense, norm):
    """The rows of the head of answers, with what parts names."""
    return (("conditional_span/start", f"start_logits{dot}dense", dense),
            ("conditional_span/end/hidden", f"end_logits{dot}dense_0", dense),
            ("conditional_span/end/LayerNorm", f"end_logits{dot}LayerNorm", norm),
            ("conditional_span/end/dense", f"end_logits{dot}dense_1", dense),
            ("conditional_span/answerable/hidden", f"answer_class{dot}dense_0", dense),
            ("conditional_span/answerable/dense", f"answer_class{dot}dense_1", dense))


def is_original(tensors: Mapping[str, Tensor]) -> bool:
    """Whether a checkpoint of TensorFlow 1 is one of XLNet."""
    return f"{_BODY}/word_embedding/lookup_table" in tensors


def _unstacked(tensors, layers):
    """The tensors with one for each layer in place of those that hold all layers'."""
    found = {}
    for name, tensor in tensors.items():
        if not _STACKED.fullmatch(name) or len(tensor.shape) < 3:
            found[name] = tensor
            continue
        for i in range(min(layers, tensor.shape[0])):
            found[f"{name}/{i}"] = dataclasses.replace(
                tensor, name=f"{tensor.name} (layer {i})", shape=tensor.shape[1:],
                read=lambda tensor=tensor, i=i: tensor.read()[i])
    return found


def _config_of(prefix, tensors):
    """The configuration beside a checkpoint, or that of the shapes of its tensors; and notes.

    Raises:
        InputError: it describes no XLNet.
    """
    summary = {"use_summ_proj": f"{_SUMMARY}/summary/kernel" in tensors, "summary_type":
               "attn" if f"{_SUMMARY}/summary_bias" in tensors else "last"}
    if not any(name.startswith(_SUMMARY) for name in tensors) and not any(
            _TASK.match(name) for name in tensors):
        summary = {}        # which a checkpoint of pre-training has not
    path = rules.beside(prefix, CONFIG) or rules.beside(prefix, rules.CONFIG)
    try:
        if path:
            return XLNetConfig.from_dict({**summary, **read_json(path)}), ()
        query, inner = (tensors[f"{_BODY}/layer_0/{name}/kernel"].shape
                        for name in ("rel_attn/q", "ff/layer_1"))
        return XLNetConfig(
            vocab_size=tensors[f"{_BODY}/word_embedding/lookup_table"].shape[0],
            d_model=query[0], n_head=query[1], d_head=query[2], d_inner=inner[1],
            n_layer=tensors[f"{_BODY}/seg_embed"].shape[0],
            untie_r=len(tensors[f"{_BODY}/r_w_bias"].shape) == 3, **summary), (
                "The configuration is that of the shapes.",)
    except (InputError, KeyError, IndexError) as error:
        raise InputError(f"{path or prefix}: describes no XLNet ({error})") from None


def read_original(prefix: str, tensors: dict[str, Tensor], task: str | None) -> Source:
    """The `Source` of a checkpoint of the original.

    Args:
        prefix: what `google.find` gave.
        tensors: those of the file.
        task: the head that a classifier is, where the file leaves it open.

    Raises:
        InputError: they are not those of an XLNet.
    """
    config, notes = _config_of(prefix, tensors)
    kinds = [match[1] for match in map(_TASK.match, tensors) if match]
    head = kinds[0] if kinds else None
    if head == "classification" and task in _SEQUENCE[:2]:
        head = task
    found = {_TASK.sub(f"{_task_scope(head)}/", name): tensor for name, tensor in tensors.items()}
    return Source(prefix, config, _unstacked(found, config.n_layer),
                  _tf_table(head, config.untie_r), rules.vocabulary_beside(prefix), notes=notes)


def original_table_for(weights: Weights) -> Format:
    """The table to write `weights` with, as the original's.

    Raises:
        InputError: they have several classifiers, or compute what its code would not.
    """
    config, tasks = weights.config, [name for name in _SEQUENCE if name in weights.heads]
    if len(tasks) > 1:
        raise InputError(f"{weights.source} has the heads {' and '.join(tasks)}; the original has "
                         "one of them; take one out.")
    if config.ff_activation == "gelu_erf":
        raise InputError(f"{weights.source}: ff_activation is the exact GELU, but this format's "
                         "own code computes the tanh form; give --hidden_act=gelu to take that.")
    if config.layer_norm_eps != XLNetConfig.layer_norm_eps:
        raise InputError(f"{weights.source}: layer_norm_eps is {config.layer_norm_eps}, but this "
                         f"format's own code always takes {XLNetConfig.layer_norm_eps}.")
    return _tf_table(tasks[0] if tasks else None, config.untie_r)


def write_original(folder: str, weights: Weights, tensors: dict[str, Tensor]) -> None:
    """Writes `xlnet_model.ckpt.*`, `xlnet_config.json` and the vocabulary into `folder`.

    Args:
        folder: where.
        weights: `Weights`.
        tensors: a dict of `Tensor` by the original's names, one for each layer of what it stacks.
    """
    config, values = weights.config, {}
    for name, tensor in tensors.items():
        stack, _, number = name.rpartition("/")
        if not _STACKED.fullmatch(stack):
            values[name] = tensor.read()
        elif number == "0":
            values[stack] = np.stack([tensors[f"{stack}/{i}"].read()
                                      for i in range(config.n_layer)])
    tf.raw_ops.SaveV2(prefix=os.path.join(folder, PREFIX), tensor_names=list(values),
                      shape_and_slices=[""] * len(values), tensors=list(values.values()))
    write_json(os.path.join(folder, CONFIG), {
        **{key: getattr(config, key) for key in ("d_head", "d_inner", "d_model", "ff_activation",
                                                 "n_head", "n_layer")},
        "n_token": config.vocab_size, "untie_r": config.untie_r})
    if weights.tokenizer:
        weights.tokenizer.save(folder)


# Hugging Face

_KEYS = {"vocab_size": "vocab_size", "d_model": "d_model", "n_layer": "n_layer",
         "n_head": "n_head", "d_inner": "d_inner", "untie_r": "untie_r", "reuse_len": "reuse_len",
         "mem_len": "mem_len", "clamp_len": "clamp_len", "dropout": "dropout",
         "initializer_range": "initializer_range", "layer_norm_eps": "layer_norm_eps",
         "summary_type": "summary_type", "summary_use_proj": "use_summ_proj"}
_FIXED = {"attn_type": "bi", "same_length": False, "summary_activation": "tanh"}
_ACTIVATIONS = {"gelu": "gelu_erf", "gelu_new": "gelu", "gelu_pytorch_tanh": "gelu",
                "relu": "relu"}
_TURNED = (("/kernel", ".weight", "transpose"), ("/bias", ".bias"))
_SCALED = (("/gamma", ".weight"), ("/beta", ".bias"))
_HF_IN, _HF_OUT = (("/kernel", "", "HND"),), (("/kernel", "", "transpose HND"),)
# The end of a class's name, and the head it has.
_CLASSES = {"classification": "ForSequenceClassification", "multi_label":
            "ForSequenceClassification", "regression": "ForSequenceClassification",
            "multiple_choice": "ForMultipleChoice", "tagging": "ForTokenClassification",
            "answer_span": "ForQuestionAnsweringSimple",
            "conditional_span": "ForQuestionAnswering", "permutation_lm": "LMHeadModel"}
_LOGITS = {"tagging": "classifier", "answer_span": "qa_outputs"}
_PROBLEMS = {"multi_label_classification": "multi_label", "regression": "regression"}
_ERF_NOTE = ("transformers computes the exact GELU where its file has \"gelu\", but XLNet was "
             "trained with the tanh form; give --hidden_act=gelu to take that.")


def _hf_table(prefix, head, notes=()):
    """The table of Hugging Face's classes, with a `head` or None."""
    block = f"{prefix}layer.{{i}}"
    logits = [(f"{head}/dense", _LOGITS.get(head, "logits_proj"), _TURNED)] if head in (
        *_SEQUENCE, "multiple_choice", *_LOGITS) else []
    return Format((
        ("embeddings/word_embeddings", f"{prefix}word_embedding.weight", _SELF),
        ("embeddings/mask_emb", f"{prefix}mask_emb", (("", "", "11H"),)),
        *((f"{_ATTENTION}/self/{name}", f"{block}.rel_attn.{name}_bias", _SELF)
          for name in _BIASES),
        (f"{_ATTENTION}/self/seg_embed", f"{block}.rel_attn.seg_embed", _SELF),
        *((f"{_ATTENTION}/self/{part}", f"{block}.rel_attn.{part[0]}", _HF_IN)
          for part in _HEADS),
        (f"{_ATTENTION}/self/position", f"{block}.rel_attn.r", _HF_IN),
        (f"{_ATTENTION}/output/dense", f"{block}.rel_attn.o", _HF_OUT),
        (f"{_ATTENTION}/output/LayerNorm", f"{block}.rel_attn.layer_norm", _SCALED),
        (f"{_LAYER}/intermediate/dense", f"{block}.ff.layer_1", _TURNED),
        (f"{_LAYER}/output/dense", f"{block}.ff.layer_2", _TURNED),
        (f"{_LAYER}/output/LayerNorm", f"{block}.ff.layer_norm", _SCALED),
        ("permutation_lm/output_bias", "lm_loss.bias", _SELF),
        ("pooler/dense", "sequence_summary.summary", _TURNED),
        *_span_rows(".", _TURNED, _SCALED), *logits),
        ((r"copies\..*", "a copy of a tied tensor"),), notes=notes)


def _head_of(values, found):
    """The head that the files hold, or None."""
    classes = values.get("architectures")
    heads = [head for head, end in _CLASSES.items()
             if isinstance(classes, list) and f"XLNet{end}" in classes]
    problem = _PROBLEMS.get(str(values.get("problem_type")))
    if problem in heads:
        return problem
    if heads:
        single = getattr(found.get("logits_proj.bias"), "shape", ()) == (1,)
        return "regression" if single and "regression" in heads else heads[0]
    return next((head for head, layer in (*_LOGITS.items(), ("classification", "logits_proj"))
                 if f"{layer}.bias" in found), None)


def read(file: str, values: dict, found: dict[str, Tensor]) -> Source:
    """The `Source` of Hugging Face's files.

    Args:
        file: the safetensors file.
        values: those of `config.json`.
        found: the tensors of the file.

    Raises:
        InputError: the configuration describes another network, or a copy differs from its tensor.
    """
    path, act = rules.beside(file, "config.json"), values.get("ff_activation", "gelu")
    ours = {mine: values[theirs] for theirs, mine in _KEYS.items()
            if values.get(theirs) is not None}
    try:
        if act not in _ACTIVATIONS:
            raise InputError(f"ff_activation must be one of {', '.join(_ACTIVATIONS)}, not {act!r}")
        for key, only in _FIXED.items():
            if values.get(key, only) != only:
                raise InputError(f"{key} must be {only!r}, not {values[key]!r}")
        ours["dropatt"] = ours.get("dropout", XLNetConfig.dropout)
        width, heads = (ours.get(key, getattr(XLNetConfig, key)) for key in ("d_model", "n_head"))
        config = XLNetConfig.from_dict({**ours, "ff_activation": _ACTIVATIONS[act],
                                        "d_head": width // heads})
    except (InputError, TypeError, ZeroDivisionError) as error:
        raise InputError(f"{path}: {str(error).rstrip('.')}.") from None
    prefix = "transformer." if any(name.startswith("transformer.") for name in found) else ""
    words, found = f"{prefix}word_embedding.weight", dict(found)
    if "lm_loss.weight" in found:
        copy = found.pop("lm_loss.weight")
        if not np.array_equal(copy.read(), found[words].read()):
            raise InputError(f"{file}: tensor 'lm_loss.weight' differs from {words!r}, but the "
                             "network ties them.")
        found["copies.lm_loss.weight"] = copy
    from bert_tf.checkpoints import safetensors_files  # Google's format needs none
    return Source(file, config, found, _hf_table(prefix, _head_of(values, found)),
                  rules.vocabulary_beside(file), labels=safetensors_files.labels(values),
                  notes=(_ERF_NOTE,) if config.ff_activation == "gelu_erf" else ())


def table_for(weights: Weights) -> Format:
    """The table to write `weights` with, as Hugging Face's files.

    Raises:
        InputError: Hugging Face has no such model.
    """
    config, heads = weights.config, [name for name in _CLASSES if name in weights.heads]
    if config.attention_width != config.d_model or not config.untie_r:
        raise InputError(f"{weights.source}: Hugging Face's XLNet has heads that are d_model / "
                         "n_head wide, and biases of each layer; choose another format.")
    if config.summary_type == "attn" and {"pooler", *heads} & set(weights.heads):
        raise InputError(f"{weights.source}: summary_type is attn, which Hugging Face's XLNet has "
                         "not; choose another format.")
    if len(heads) > 1:
        raise InputError(f"{weights.source} has the heads {' and '.join(heads)}; classes of "
                         f"Hugging Face's have one; give --leave_out={','.join(heads[1:])}.")
    return _hf_table("transformer." if heads else "", heads[0] if heads else None)


def write(folder: str, weights: Weights, tensors: dict[str, Tensor]) -> None:
    """Writes `model.safetensors`, `config.json` and the files of the vocabulary into `folder`.

    Args:
        folder: where.
        weights: `Weights`.
        tensors: a dict of `Tensor` by Hugging Face's names.
    """
    config = weights.config
    values = {name: np.ascontiguousarray(tensor.read()) for name, tensor in tensors.items()}
    from safetensors.numpy import save
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(save(values, {"format": "pt"}))
    head = next((name for name in _CLASSES if name in weights.heads), None)
    labels = weights.labels or [f"LABEL_{i}" for i in range(next(
        (tensor.shape[0] for name, tensor in weights.tensors.items()
         if head and name == f"{head}/dense/bias"), 0))]
    write_json(os.path.join(folder, "config.json"), {
        "architectures": [f"XLNet{_CLASSES[head] if head else 'Model'}"], "model_type": TYPE,
        **{theirs: getattr(config, ours) for theirs, ours in _KEYS.items()},
        "mem_len": config.mem_len or None, "reuse_len": config.reuse_len or None,
        "ff_activation": next(theirs for theirs, ours in _ACTIVATIONS.items()
                              if ours == config.ff_activation), **_FIXED,
        "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 5,
        **({"id2label": {str(i): label for i, label in enumerate(labels)},
            "label2id": {label: i for i, label in enumerate(labels)}} if labels else {}),
        **next(({"problem_type": theirs} for theirs, ours in _PROBLEMS.items() if ours == head),
               {})})
    if weights.tokenizer:
        weights.tokenizer.save(folder)
        write_json(os.path.join(folder, "tokenizer_config.json"), {
            "tokenizer_class": "XLNetTokenizer",
            "do_lower_case": weights.tokenizer.do_lower_case})
