"""Checkpoints of the TensorFlow Model Garden (official.nlp): the objects of a BertEncoder, alone or
in a BertPretrainerV2, BertClassifier, BertTokenClassifier or BertSpanLabeler (these have "head"),
as TensorFlow 2 tracks them, with a `bert_config.json`."""

import functools
import os
import re

import lazy_loader

from bert_tf.checkpoints import google, rules, tensor_bundle
from bert_tf.checkpoints.rules import DENSE, KINDS, NORM, SELF, Format, Source, Tensor, encoder_rows
from bert_tf.checkpoints.weights import Weights, only_head
from bert_tf.errors import InputError
from bert_tf.heads import HEADS

tf = lazy_loader.load("tensorflow")

_TABLE = (("", "/embeddings"),)
_SPLIT = (("/kernel", "/kernel", "HND"), ("/bias", "/bias", "ND"))
_JOIN = (("/kernel", "/kernel", "NDH"), ("/bias", "/bias"))
_LAYER = "encoder/_transformer_layers/{i}/"

_ROWS = (
    *encoder_rows(
        {**KINDS, "table": _TABLE, "split": _SPLIT, "join": _JOIN},
        ("encoder/_embedding_layer", "encoder/_type_embedding_layer",
         "encoder/_position_embedding_layer", "encoder/_embedding_norm_layer"), _LAYER,
        ("_attention_layer/_query_dense", "_attention_layer/_key_dense",
         "_attention_layer/_value_dense", "_attention_layer/_output_dense",
         "_attention_layer_norm", "_intermediate_dense", "_output_dense", "_output_layer_norm")),
    ("masked_lm/transform/dense", "masked_lm/dense", DENSE),
    ("masked_lm/transform/LayerNorm", "masked_lm/layer_norm", NORM),
    ("masked_lm/output_bias", "masked_lm/output_bias/bias", SELF),
    ("next_sentence/dense", "classification_heads/0/out_proj", DENSE),
    ("tagging/dense", "head", DENSE),
    ("answer_span/dense", "head/layer_with_weights-0", DENSE),
)
# A sentence head may have its own pooler, as the pre-trainer's has, and leaves the encoder's
# untrained; the first one present counts.
_HEADS_POOLER, _ENCODERS_POOLER = "classification_heads/0/dense", "encoder/_pooler_layer"
_POOLERS = (_HEADS_POOLER, "head/dense", _ENCODERS_POOLER)
# The heads of a BertClassifier, and the heads of all models; a model has one of them.
_CLASSIFIERS = tuple(head.name for head in HEADS.values()
                     if head.huggingface == "SequenceClassification")
_MODELS = (*_CLASSIFIERS, "tagging", "answer_span")
_IGNORED = (
    (tensor_bundle.OBJECT_GRAPH, "the graph of objects"),
    (r"(.*/)?(optimizer|save_counter|global_step)(/.*)?|.*/\.OPTIMIZER_SLOT/.*",
     "state of the optimizer"),
    (f"{_ENCODERS_POOLER}/.*", "the encoder's pooler, which the sentence head doesn't use"),
)
_VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"
# The encoder's first layers in its functional class, which numbers them.
_NUMBERED = ("_embedding_layer", "_position_embedding_layer", "_type_embedding_layer",
             "_embedding_norm_layer")


def _table(pooler, task=None):
    if task not in _CLASSIFIERS:
        task = _CLASSIFIERS[0]
    return Format((*_ROWS, ("pooler/dense", pooler, DENSE),
                   (f"{task}/dense", "head/out_proj", DENSE)), _IGNORED)


def _standard_name(name):
    name = name.removesuffix(_VALUE).replace(".S", "/").replace("..", ".")
    name = name.removeprefix("model/").replace("encoder_network/", "encoder/", 1)
    name = name.replace("masked_lm/embedding_table", "encoder/_embedding_layer/embeddings")
    name = name.replace("next_sentence.pooler_dense", _HEADS_POOLER)
    name = re.sub(r"^layer_with_weights-0/(?=layer_with_weights-|_)|^(?=_[a-z])", "encoder/", name)
    name = re.sub(r"^layer_with_weights-1/(?!embeddings)", "head/", name)
    return re.sub(r"^(?:encoder/)?layer_with_weights-(\d+)/(\w+)", _numbered_name, name)


def _numbered_name(match):
    """Returns the name of a layer that the functional class numbers: embeddings, blocks, pooler."""
    number, member = int(match[1]), match[2]
    if number < len(_NUMBERED):
        return f"encoder/{_NUMBERED[number]}/{member}"
    if member in ("kernel", "bias"):
        return f"{_ENCODERS_POOLER}/{member}"
    return f"{_LAYER.format(i=number - len(_NUMBERED))}{member}"


def read(prefix: str, tensors: dict[str, Tensor]) -> Source:
    """Returns the `Source` of a checkpoint's tensors; `prefix` comes from `google.find`."""
    by_name = {}
    for name, tensor in tensors.items():
        standard = _standard_name(name)
        if standard in by_name:
            raise InputError(f"{prefix}: {by_name[standard].name!r} and {name!r} both map to the "
                             f"encoder's {standard}; remove one of the tensors.")
        by_name[standard] = tensor
    pooler = next((name for name in _POOLERS if f"{name}/kernel" in by_name), _ENCODERS_POOLER)
    return Source(prefix, rules.config_beside(prefix), by_name, _table(pooler),
                  rules.vocabulary_beside(prefix), table_of=functools.partial(_table, pooler))


def table_for(weights: Weights) -> Format:
    google.check_original(weights)
    task = only_head(weights, _MODELS, "a model of the Model Garden has one head")
    if "next_sentence" in weights.heads:
        return _table(_HEADS_POOLER, task)
    return _table(_ENCODERS_POOLER, task)


def write(folder: str, weights: Weights, tensors: dict[str, Tensor]) -> None:
    """Writes a checkpoint that can be read as `tf.train.Checkpoint(encoder=encoder)`, as
    `(model=model)` and with the pre-trainer's `checkpoint_items`."""
    values = {name: tensor.read() for name, tensor in tensors.items()}
    for end in ("/kernel", "/bias"):
        if _HEADS_POOLER + end in values:
            values[_ENCODERS_POOLER + end] = values[_HEADS_POOLER + end]
    model = tf.Module()
    for name, value in values.items():
        # The one edge with a slash in its name.
        steps = name.replace("output_bias/", "output_bias\0").split("/")
        _grow(model, [step.replace("\0", "/") for step in steps], value)
    items = {"encoder": model.encoder, "model": model}
    for name in ("encoder_network", "layer_with_weights-0"):
        setattr(model, name, model.encoder)
    if hasattr(model, "head"):
        setattr(model, "layer_with_weights-1", model.head)
    if hasattr(model, "masked_lm"):
        table = model.encoder._embedding_layer.embeddings
        model.masked_lm.embedding_table = table
        items["masked_lm"] = model.masked_lm
    if hasattr(model, "classification_heads"):
        items["next_sentence.pooler_dense"] = getattr(model.classification_heads, "0").dense
    tf.train.Checkpoint(**items).write(os.path.join(folder, google.PREFIX))
    google.write_around(folder, weights)


def _grow(node, steps, value):
    """Adds a variable below `node`, a tf.Module, at the end of the path `steps`; a module's
    attributes are the edges that TensorFlow tracks."""
    if len(steps) == 1:
        setattr(node, steps[0], tf.Variable(value))
    else:
        if not hasattr(node, steps[0]):
            setattr(node, steps[0], tf.Module())
        _grow(getattr(node, steps[0]), steps[1:], value)
