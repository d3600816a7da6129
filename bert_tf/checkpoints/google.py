"""Checkpoints of google-research/bert, and of Google's code for its relatives, of TensorFlow 1."""

import dataclasses
import functools
import importlib
import os
import re
import types
from collections.abc import Mapping

import lazy_loader
import numpy as np

from bert_tf.checkpoints import names, rules, tensor_bundle
from bert_tf.checkpoints.rules import DENSE, KINDS, NORM, SELF, Format, Source, Tensor, encoder_rows
from bert_tf.checkpoints.weights import Account, Weights, check_parts, only_head, to_table
from bert_tf.config import ALBERT, EncoderConfig, config_from_dict
from bert_tf.errors import InputError, naming
from bert_tf.files import read_json
from bert_tf.models.electra import weights as electra
from bert_tf.models.mobilebert import weights as mobilebert

tf = lazy_loader.load("tensorflow")

PREFIX = "bert_model.ckpt"
# Checkpoints with a module of their own, and tensors that mark each: TensorFlow 2's checkpoints of
# objects, and some networks'.
_OWN_FILES = {"checkpoints.model_garden": (tensor_bundle.OBJECT_GRAPH,),
              "models.t5.weights": ("shared/embedding", "decoder/embedding"),
              "models.xlnet.weights": ("model/transformer/word_embedding/lookup_table",)}
_GELUS = {"gelu": "the tanh form of GELU", "gelu_erf": "the exact GELU"}
# The original's own classifiers store the kernel transposed, in two adjacent variables.
_HEAD = (("/kernel", "weights", "transpose"), ("/bias", "bias"))
# MobileBERT's name of the replacement of a norm.
_UNNORMED = "FakeLayerNorm"
_IGNORED = ((r"global_step|beta[12]_power|.*/(adam_[mv]|Adam(_1)?)", "state of the optimizer"),)

_HEADS = (
    ("masked_lm/transform/dense", "cls/predictions/transform/dense", DENSE),
    ("masked_lm/transform/LayerNorm", "cls/predictions/transform/LayerNorm", NORM),
    ("masked_lm/output_bias", "cls/predictions/output_bias", SELF),
    ("masked_lm/extra/output_weights", "cls/predictions/extra_output_weights", SELF),
    ("next_sentence/dense", "cls/seq_relationship/output_", _HEAD),
    ("answer_span/dense", "cls/squad/output_", _HEAD),
)


def _encoder_rows(layer, parts):
    embeddings = (f"bert/embeddings/{name}" for name in names.EMBEDDINGS)
    return (*encoder_rows(KINDS, embeddings, layer, parts),
            ("pooler/dense", "bert/pooler/dense", DENSE), *_HEADS)


def _mobilebert_rows(norm):
    return (*mobilebert.encoder_rows(
        lambda name: f"bert/{name.replace('LayerNorm', norm)}", KINDS), *_HEADS)


@dataclasses.dataclass(frozen=True)
class _Model:
    """The names that Google's code of one `model_type` saves.

    Attributes:
        mark: a prefix of names, or several, that marks its checkpoints; empty for BERT.
        rows, rows_without_norms: of the `Format`; of networks without norms, if they differ.
        prefix, config: the prefix of its files; the file of its configuration.
        defaults: its code's values for keys that are not in that file.
        own: keys of parts that BERT lacks.
        activations: {its name: ours} of activations, where they differ.
        classifier: its code's name of a task's classifier, or "".
    """

    mark: str | tuple[str, ...]
    rows: tuple
    prefix: str = PREFIX
    config: str = rules.CONFIG
    defaults: Mapping = dataclasses.field(default_factory=dict)
    own: tuple[str, ...] = ()
    activations: Mapping = dataclasses.field(default_factory=dict)
    classifier: str = "output_"
    rows_without_norms: tuple = ()


_MODELS = {
    "albert": _Model(
        "bert/encoder/transformer/",
        (*_encoder_rows("bert/encoder/transformer/group_{g}/inner_group_{j}/", (
            "attention_1/self/query", "attention_1/self/key", "attention_1/self/value",
            "attention_1/output/dense", "LayerNorm", "ffn_1/intermediate/dense",
            "ffn_1/intermediate/output/dense", "LayerNorm_1")),
         ("embeddings_project", "bert/encoder/embedding_hidden_mapping_in", DENSE),
         *rules.conditional_span_rows("/", DENSE, NORM)),      # run_squad_v2.py
        "model.ckpt-best", "albert_config.json", ALBERT,
        ("embedding_size", "num_hidden_groups", "inner_group_num")),
    "electra": _Model("electra/", electra.GOOGLE_ROWS, "electra.ckpt", defaults=electra.DEFAULTS,
                      own=("embedding_size", "pooler_type"), activations={"gelu": "gelu_erf"},
                      classifier=""),
    "mobilebert": _Model(
        ("bert/embeddings/embedding_transformation/", "bert/embeddings/FakeLayerNorm/",
         "bert/encoder/layer_0/bottleneck/", "bert/encoder/layer_0/ffn_layer_0/"),
        _mobilebert_rows("LayerNorm"), own=("embedding_size", "pooler_type"),
        rows_without_norms=_mobilebert_rows(_UNNORMED)),
    "bert": _Model("", _encoder_rows("bert/encoder/layer_{i}/", names.LAYER)),
}


def _own_file(module: str) -> types.ModuleType:
    return importlib.import_module(f"bert_tf.{module}")


def _table(model, has_norms, task=None, notes=()):
    rows = model.rows
    if not has_norms:
        rows = model.rows_without_norms
    if model.classifier:
        rows = (*rows, (f"{task or names.CLASSIFIERS[0]}/dense", model.classifier, _HEAD))
    return Format(rows, _IGNORED, notes=notes)


find = tensor_bundle.find


def read(prefix: str) -> Source:
    tensors = tensor_bundle.tensors(prefix)
    for module, marks in _OWN_FILES.items():
        if any(mark in tensors for mark in marks):
            return _own_file(module).read(prefix, tensors)
    model = next(model for model in _MODELS.values()
                 if any(name.startswith(model.mark) for name in tensors) or not model.mark)
    table = functools.partial(_table, model, not any(_UNNORMED in name for name in tensors))
    source = Source(prefix, _config_beside(prefix, model), tensors, table(),
                    rules.vocabulary_beside(prefix))
    if model is not _MODELS["electra"]:
        return dataclasses.replace(source, table_of=table)
    if source.config is None:
        source = dataclasses.replace(source, config=electra.config_of(tensors, model.mark))
    return electra.split(source, model.mark, "generator_predictions/")


def _config_beside(prefix, model):
    path = rules.beside(prefix, model.config) or rules.beside(prefix, rules.CONFIG)
    if not path:
        return None
    values = read_json(path)
    with naming(path):
        if "model_type" not in values:
            values = {**model.defaults, **values}
            act = values.get("hidden_act", EncoderConfig.hidden_act)
            if isinstance(act, str):        # other types are refused below
                values["hidden_act"] = model.activations.get(act, act)
        return config_from_dict(values)


def check_original(weights: Weights, kind: str = "bert") -> None:
    """Raises InputError if Google's code for the `model_type` `kind` couldn't build the network."""
    config = weights.config
    if config.model_type != kind:
        raise InputError(f"{weights.source}: the model_type is {config.model_type}, but this "
                         f"format holds {kind} only; choose another format.")
    if config.layer_norm_eps != EncoderConfig.layer_norm_eps:
        raise InputError(f"{weights.source}: layer_norm_eps is {config.layer_norm_eps}, but the "
                         f"code of this format always uses {EncoderConfig.layer_norm_eps}; choose "
                         "another format.")
    other, its = "gelu_erf", "gelu"
    if other in _MODELS[kind].activations.values():     # its code means that by "gelu"
        other, its = its, other
    if config.hidden_act == other:
        raise InputError(f"{weights.source}: hidden_act is {_GELUS[other]}, but the code of this "
                         f"format computes {_GELUS[its]}; give --hidden_act={its} to change the "
                         "model to it.")
    check_parts(weights, _MODELS[kind].own)
    pooler = _MODELS[kind].defaults.get("pooler_type", config.pooler_type)
    if config.pooler_type != pooler:
        raise InputError(f"{weights.source}: pooler_type is {config.pooler_type}, but the code of "
                         f"this format always uses {pooler}; choose another format.")
    if ("num_hidden_groups" in _MODELS[kind].own
            and config.filled().layer_weights != config.layer_weights):
        raise InputError(f"{weights.source}: each of the {config.num_hidden_layers} layers is a "
                         "group, but the original's code rounds this number so that two layers "
                         "share a group; choose another format.")


def table_for(weights: Weights) -> Format:
    kind = weights.config.model_type
    own = f"models.{kind}.weights"
    if own in _OWN_FILES:
        return _own_file(own).table_for(weights)
    if kind not in _MODELS:
        kind = "bert"       # whose check names the type
    check_original(weights, kind)
    task = only_head(weights, names.CLASSIFIERS,
                     "Google's checkpoints call each of them output_weights")
    notes = (mobilebert.ORIGINAL,) * getattr(weights.config, "as_in_transformers", False)
    return _table(_MODELS[kind], getattr(weights.config, "normalization_type", "") != "no_norm",
                  task, notes)


def add_generator(tensors: dict[str, Tensor], account: Account, generator: Weights
                  ) -> tuple[dict[str, Tensor], Account]:
    """Joins ELECTRA's two networks, with shared embeddings once, and their accounts."""
    mark, table = _MODELS["electra"].mark, table_for(generator)
    its = {name: tensor for name, tensor in to_table(generator, table).items()
           if name not in tensors or tensors[name].name != tensor.name}
    written = {tensor.name for tensor in its.values()}
    joined = account.joined({ours: tensor.name for ours, tensor in generator.tensors.items()
                             if tensor.name in written})
    return ({**tensors, **{re.sub(f"^{mark}", "generator/", name): its[name] for name in its}},
            dataclasses.replace(joined, missing=[
                name for name in account.missing if name not in generator.heads]))


def write(folder: str, weights: Weights, tensors: dict[str, Tensor]) -> None:
    """Writes the files of BERT, or a relative's under its original's names."""
    own = f"models.{weights.config.model_type}.weights"
    if own in _OWN_FILES:
        _own_file(own).write(folder, weights, tensors)
        return
    model = _MODELS[weights.config.model_type]
    save(folder, model.prefix, {name: tensor.read() for name, tensor in tensors.items()})
    if "num_hidden_groups" in model.own:
        weights = dataclasses.replace(weights, config=weights.config.filled())
    write_around(folder, weights, model.config)


def save(folder: str, prefix: str, values: Mapping[str, np.ndarray]) -> None:
    """Writes a checkpoint of TensorFlow 1: variables by name."""
    tf.raw_ops.SaveV2(prefix=os.path.join(folder, prefix), tensor_names=list(values),
                      shape_and_slices=[""] * len(values), tensors=list(values.values()))


def write_around(folder: str, weights: Weights, config: str = rules.CONFIG) -> None:
    """Writes the configuration, under the name `config`, and the files of the vocabulary."""
    weights.config.to_json_file(os.path.join(folder, config))
    if weights.tokenizer:
        weights.tokenizer.save(folder)
