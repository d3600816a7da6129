"""Hugging Face's files of XLNet (transformers, `XLNetModel` and the classes on top of it)."""

import dataclasses

from bert_tf.checkpoints import huggingface_config, huggingface_tokenizer, rules, safetensors_files
from bert_tf.checkpoints.huggingface_models import DENSE, NORM
from bert_tf.checkpoints.rules import SELF, Format, Source, Tensor
from bert_tf.checkpoints.weights import Weights
from bert_tf.config import XLNetConfig
from bert_tf.errors import InputError, naming
from bert_tf.models.xlnet import weights as original

TYPE = "xlnet"
_KEYS = {"vocab_size": "vocab_size", "d_model": "d_model", "n_layer": "n_layer",
         "n_head": "n_head", "d_inner": "d_inner", "untie_r": "untie_r", "reuse_len": "reuse_len",
         "mem_len": "mem_len", "clamp_len": "clamp_len", "dropout": "dropout",
         "initializer_range": "initializer_range", "layer_norm_eps": "layer_norm_eps",
         "summary_type": "summary_type", "summary_use_proj": "use_summ_proj"}
_FIXED = {"attn_type": "bi", "same_length": False, "bi_data": False}
_HF_IN, _HF_OUT = (("/kernel", "", "HND"),), (("/kernel", "", "transpose HND"),)
# The end of a class's name, and the head it has.
_CLASSES = {**dict.fromkeys(original.SEQUENCE, "ForSequenceClassification"),
            "multiple_choice": "ForMultipleChoice", "tagging": "ForTokenClassification",
            "answer_span": "ForQuestionAnsweringSimple", "conditional_span": "ForQuestionAnswering",
            "permutation_lm": "LMHeadModel"}
# The widths of the beams of a head for questions: their name and ours. Their default is 5.
_BEAMS = {"start_n_top": "num_starts", "end_n_top": "num_ends"}
# Keys that say nothing of the network, and their values without a file that was read.
_KEPT = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 5, "summary_last_dropout": 0.1,
         **dict.fromkeys(_BEAMS, 5)}
_LOGITS = {"tagging": "classifier", "answer_span": "qa_outputs"}
_PROBLEMS = {"multi_label_classification": "multi_label", "regression": "regression"}
_ERF_NOTE = ("transformers computes the exact GELU where its file has \"gelu\", but XLNet was "
             "trained with the tanh form; bert-convert-checkpoint --hidden_act=gelu changes it.")
_SPAN_NOTE = ("transformers gives XLNet the passage before the question; a head that was trained "
              "with --squad_style=bert expects it behind.")


def _hf_table(prefix, head, notes=()):
    block, logits = f"{prefix}layer.{{i}}", []
    if head in (*original.SEQUENCE, "multiple_choice", *_LOGITS):
        logits = [(f"{head}/dense", _LOGITS.get(head, "logits_proj"), DENSE)]
    return Format((
        ("embeddings/word_embeddings", f"{prefix}word_embedding.weight", SELF),
        ("embeddings/mask_emb", f"{prefix}mask_emb", (("", "", "11H"),)),
        *((f"{original.ATTENTION}/self/{name}", f"{block}.rel_attn.{name}_bias", SELF)
          for name in original.BIASES),
        (f"{original.ATTENTION}/self/seg_embed", f"{block}.rel_attn.seg_embed", SELF),
        *((f"{original.ATTENTION}/self/{part}", f"{block}.rel_attn.{part[0]}", _HF_IN)
          for part in original.HEADS),
        (f"{original.ATTENTION}/self/position", f"{block}.rel_attn.r", _HF_IN),
        (f"{original.ATTENTION}/output/dense", f"{block}.rel_attn.o", _HF_OUT),
        (f"{original.ATTENTION}/output/LayerNorm", f"{block}.rel_attn.layer_norm", NORM),
        (f"{original.LAYER}/intermediate/dense", f"{block}.ff.layer_1", DENSE),
        (f"{original.LAYER}/output/dense", f"{block}.ff.layer_2", DENSE),
        (f"{original.LAYER}/output/LayerNorm", f"{block}.ff.layer_norm", NORM),
        ("permutation_lm/output_bias", "lm_loss.bias", SELF),
        ("pooler/dense", "sequence_summary.summary", DENSE),
        *rules.conditional_span_rows(".", DENSE, NORM), *logits),
        (safetensors_files.COPIES,), notes=notes)


def _head_of(values, tensors, hint=None):
    """The head whose logits the file has; of several that it may be, `hint`, if it is one."""
    layers = {layer: (head,) for head, layer in _LOGITS.items()} | {
        "logits_proj": (*original.SEQUENCE, "multiple_choice")}
    for layer, heads in layers.items():
        if bias := tensors.get(f"{layer}.bias"):
            return huggingface_config.named_classifier(values, "XLNet", heads, bias.shape == (1,),
                                                       hint)
    return None


def _read_config(values, tensors, beams):
    act = huggingface_config.our_activation("ff_activation", values.get("ff_activation", "gelu"))
    for key, only in _FIXED.items():
        if values.get(key, only) != only:
            raise InputError(f"{key} must be {only!r}, not {values[key]!r}.")
    for key, width in beams.items():
        if type(width) is not int or width < 1:
            raise InputError(f"{key} must be a number from 1, not {width!r}.")
    # The activation counts without a projection too, but only before these logits.
    summary, projects = values.get("summary_activation", "tanh"), values.get(
        "summary_use_proj", True)
    only = "tanh"
    if not projects:
        only = ""
    if "logits_proj.weight" in tensors and (summary or "") != only:
        raise InputError(f"summary_activation must be {only!r} where summary_use_proj is "
                         f"{projects}, but is {summary!r}, which is another network; take another "
                         "model.")
    ours = {name: values[key] for key, name in _KEYS.items() if key in values
            and (values[key] is not None or key not in ("mem_len", "reuse_len"))}
    ours["dropatt"] = ours.get("dropout", XLNetConfig.dropout)
    # Its layers never share biases, whatever untie_r says.
    config = XLNetConfig.from_dict({**ours, "ff_activation": act, "untie_r": True})
    if config.d_model % config.n_head:
        raise InputError(f"d_model ({config.d_model}) must be a multiple of n_head "
                         f"({config.n_head}).")
    return dataclasses.replace(config, d_head=config.d_model // config.n_head)


def read(file: str, values: dict, tensors: dict[str, Tensor]) -> Source:
    has_beams = "start_logits.dense.bias" in tensors
    beams = {key: values.get(key, 5) for key in _BEAMS if has_beams}
    with naming(rules.beside(file, "config.json"), {ours: key for key, ours in _KEYS.items()}):
        config = _read_config(values, tensors, beams)
    has_prefix = any(name.startswith("transformer.") for name in tensors)
    prefix = "transformer." if has_prefix else ""
    words, tensors = f"{prefix}word_embedding.weight", dict(tensors)
    if {"lm_loss.weight", words} <= tensors.keys():
        safetensors_files.set_copy_aside(tensors, "lm_loss.weight", words, file)

    def table_of(task=None):
        return _hf_table(prefix, _head_of(values, tensors, task))

    return Source(file, config, tensors, table_of(),
                  rules.vocabulary_beside(file), labels=safetensors_files.labels(values, file),
                  options=beams, notes=(_ERF_NOTE,) * (config.ff_activation == "gelu_erf"),
                  table_of=table_of)


def table_for(weights: Weights) -> Format:
    original.check_sees_both_sides(weights)
    config, heads = weights.config, [name for name in _CLASSES if name in weights.heads]
    if config.attention_width != config.d_model or not config.untie_r:
        raise InputError(f"{weights.source}: in Hugging Face's XLNet heads are d_model / n_head "
                         "wide, and each layer has separate biases; choose another format.")
    if config.summary_type == "attn" and {"pooler", *heads} & set(weights.heads):
        raise InputError(f"{weights.source}: summary_type is attn, which Hugging Face's XLNet does "
                         "not have; choose another format.")
    if len(heads) > 1:
        raise InputError(f"{weights.source} has the heads {' and '.join(heads)}, but a Hugging "
                         f"Face class has one head; give --leave_out={','.join(heads[1:])}.")
    return _hf_table("transformer." if heads else "", next(iter(heads), None),
                     (_SPAN_NOTE,) if "answer_span" in heads else ())


def write(folder: str, weights: Weights, tensors: dict[str, Tensor]) -> None:
    config, before = weights.config, huggingface_config.as_read(weights)
    heads = [name for name in _CLASSES if name in weights.heads]
    end = next(map(_CLASSES.get, heads), "Model")
    beams = {}
    if made := weights.origin:
        beams = {**made.options, **{key: options[ours] for name, options in made.objectives
                                    if name == "ConditionalSpan" for key, ours in _BEAMS.items()}}
    problem = next((key for key, head in _PROBLEMS.items() if head in heads), None)
    if "classification" in heads:       # which files may leave out
        problem = before.get("problem_type")
    summary = "tanh" * config.use_summ_proj
    if {*original.SEQUENCE, "multiple_choice"}.isdisjoint(heads):
        summary = before.get("summary_activation", summary)
    safetensors_files.write(folder, {name: tensor.read() for name, tensor in tensors.items()}, {
        "architectures": [f"XLNet{end}"], "model_type": TYPE,
        **{key: getattr(config, ours) for key, ours in _KEYS.items()},
        "mem_len": config.mem_len or None, "reuse_len": config.reuse_len or None,
        "ff_activation": huggingface_config.their_activation(
            config.ff_activation, before.get("ff_activation")), **_FIXED,
        "summary_activation": summary,
        **{key: before.get(key, value) for key, value in _KEPT.items()},
        **huggingface_config.describe_labels(weights, heads), **beams,
        **({"problem_type": problem} if problem else {})})
    huggingface_tokenizer.write(folder, weights.tokenizer, has_segments=True)
