"""Keras's places for the weights of our networks and heads, a row each."""

import functools

from bert_tf.checkpoints import mobilebert, recurrent, t5, xlnet
from bert_tf.checkpoints.names import KERAS_RANGES, keras_dense
from bert_tf.checkpoints.rules import encoder_rows
from bert_tf.heads import MAX_LSTMS, Head


def _encoder_parts(config, layer="TransformerLayer"):
    """Returns the parts of a `BertEncoder` with layers of the class `layer`. A layer that shares
    weights is saved with the first one, under its number."""
    numbers = sorted({max(pair) for pair in config.layer_weights})
    dense = keras_dense(config)
    return [("Embeddings", "embeddings"),
            *([(dense, "embeddings_project")] if config.projects else []),
            *((layer, f"layer_{i}") for i in numbers),
            *([(dense, "pooler")] if config.has_pooler else [])]


def _gpt_parts(config):
    """Returns the parts of a `GPT`."""
    return [("GPTEmbeddings", "embeddings"), *_encoder_parts(config)[1:]]


def _universal_parts(config):
    """Returns the parts of a `UniversalTransformer`."""
    return [("ScaledEmbeddings", "embeddings"), ("UniversalLayer", "layer_0"),
            ("LayerNorm", "norm"), ("Dense", "pooler")]


_SELF = (("", ""),)
_DENSE = (("/kernel", "/vars/0"), ("/bias", "/vars/1"), *KERAS_RANGES)
_NORM = (("/gamma", "/vars/0"), ("/beta", "/vars/1"))
_ENCODER = (
    *encoder_rows(
        {"table": _SELF, "norm": _NORM, "dense": _DENSE},
        ("encoder/embeddings/vars/0", "encoder/embeddings/vars/1", "encoder/embeddings/vars/2",
         "encoder/embeddings/norm"), "encoder/layer_{i}/",
        ("attention/query", "attention/key", "attention/value", "attention_output/projection",
         "attention_output/norm", "intermediate", "output_/projection", "output_/norm")),
    ("embeddings/task_type_embeddings", "encoder/embeddings/vars/3", _SELF),
    ("embeddings", "encoder/embeddings", KERAS_RANGES),
    ("embeddings_project", "encoder/embeddings_project", _DENSE),
    ("pooler/dense", "encoder/pooler", _DENSE),
)


def _encoder(config):
    """Returns the rows of a `BertEncoder`, which may have no table of segments."""
    if config.segment_types:
        return _ENCODER
    return [(ours, theirs.replace("embeddings/vars/2", "embeddings/vars/1"), parts)
            for ours, theirs, parts in _ENCODER if ours != "embeddings/token_type_embeddings"]


_KERNEL = (("/kernel", "/vars/0"),)
_RECURRENT = (("/kernel", "/0"), ("/recurrent_kernel", "/1"), ("/bias", "/2"))
_LAYER = "encoder/layer_{i}"
_UNIVERSAL = (
    ("embeddings", "encoder/embeddings/vars", (("/word_embeddings", "/0"),
                                               ("/token_type_embeddings", "/1"))),
    (f"{_LAYER}/attention/LayerNorm", f"{_LAYER}/attention_norm", _NORM),
    *((f"{_LAYER}/attention/self/{part}", f"{_LAYER}/attention/{part}", _KERNEL)
      for part in ("query", "key", "value")),
    (f"{_LAYER}/attention/output/dense", f"{_LAYER}/attention_output", _KERNEL),
    (f"{_LAYER}/LayerNorm", f"{_LAYER}/norm", _NORM),
    (f"{_LAYER}/intermediate/dense", f"{_LAYER}/intermediate", _DENSE),
    (f"{_LAYER}/output/dense", f"{_LAYER}/output_", _DENSE),
    (f"{_LAYER}/halting", f"{_LAYER}/halting", _DENSE),
    (f"{_LAYER}/step_embeddings", f"{_LAYER}/vars/0", _SELF),
    ("encoder/LayerNorm", "encoder/norm", _NORM),
    ("pooler/dense", "encoder/pooler", _DENSE),
)
_GPT = (
    ("embeddings", "encoder/embeddings/vars", (("/word_embeddings", "/0"),
                                               ("/position_embeddings", "/1"))),
    *(row for row in _ENCODER if row[0].startswith("encoder/")),
)
# For each network: a function from the configuration to its parts in the order of `layers`, a list
# of (class, name in the table); and its table's rows, or a function that returns them. Keras names
# the groups of an HDF5 file after classes, except attributes that precede the list of layers.
NETWORKS = {
    "BertEncoder": (_encoder_parts, _encoder),
    "FixedPatternEncoder": (
        functools.partial(_encoder_parts, layer="FixedPatternLayer"), _ENCODER),
    "UniversalTransformer": (_universal_parts, _UNIVERSAL),
    "GPT": (_gpt_parts, _GPT),
    "T5": (t5.keras_parts, t5.KERAS),
    "XLNet": (xlnet.keras_parts, xlnet.KERAS),
    "MobileBert": (mobilebert.keras_parts, mobilebert.keras_rows),
    "Elmo": (recurrent.elmo_parts, recurrent.KERAS_ELMO),
    "SequenceLstm": (recurrent.sequence_parts, recurrent.KERAS_SEQUENCE),
    "BiLstm": (recurrent.bilstm_parts, recurrent.KERAS_BILSTM),
}
# For networks whose parts have lists: a function from the configuration to their groups, {path:
# name in the table}.
LISTS = {"T5": t5.keras_lists, "Elmo": recurrent.elmo_lists}


def _lstms(name, count=MAX_LSTMS):
    return tuple((f"{name}/lstm_{i}/{way}_lstm/lstm_cell",
                  f"{{head}}/reader/lstm_{i}/{way}_layer/cell/vars", _RECURRENT)
                 for i in range(count) for way in ("forward", "backward"))


_TRANSFORM = (("{head}/transform/dense", "{head}/transform", _DENSE),
              ("{head}/transform/LayerNorm", "{head}/norm", _NORM))
_CLASSIFIER = (("{head}/dense", "{head}/classifier", _DENSE),)
_HIDDEN = (("{head}/hidden", "{head}/hidden", _DENSE),)
_OUTPUT_BIAS = (("{head}/output_bias", "{head}/vars/0", _SELF),)
_FEATURES = (("{head}/features", "{head}/reader/vars", (("/layer_weights", "/0"),
                                                         ("/scale", "/1"))),
             *_lstms("{head}/features"))
_LANGUAGE_MODEL = (("{head}", "{head}/vars", (("/output_weights", "/0"), ("/output_bias", "/1"))),)
# The rows of heads that are more than one dense layer on the network or on an LSTM.
_HEADS = {
    "masked_lm": (*_TRANSFORM, ("{head}", "{head}/vars", (("/output_bias", "/0"),
                                                          ("/output_weights", "/1"))),
                  ("{head}/extra/output_weights", "{head}/extra/vars/0", _SELF)),
    "all_tokens_lm": (*_TRANSFORM, *_OUTPUT_BIAS, ("{head}/copy/dense", "{head}/copy", _DENSE)),
    "permutation_lm": _OUTPUT_BIAS,
    "bidirectional_lm": _LANGUAGE_MODEL, "recurrent_lm": _LANGUAGE_MODEL,
    "span_boundary": (
        ("{head}", "{head}/vars", (("/position_embeddings", "/0"), ("/output_bias", "/1"))),
        *((f"{{head}}/{ours}_{i}", f"{{head}}/{theirs}_{i}", kind) for i in range(2)
          for ours, theirs, kind in (("dense", "dense", _DENSE), ("LayerNorm", "norm", _NORM)))),
    "step_classification": (*_HIDDEN, *_CLASSIFIER),
    "replaced_token": (("{head}/dense", "{head}/transform", _DENSE),
                       ("{head}/dense_1", "{head}/classifier", _DENSE)),
    "conditional_span": (
        ("{head}/start", "{head}/start", _DENSE),
        ("{head}/end/LayerNorm", "{head}/end_norm", _NORM),
        *((f"{{head}}/{part}/{layer}", f"{{head}}/{part}{suffix}", _DENSE)
          for part in ("end", "answerable")
          for layer, suffix in (("hidden", "_hidden"), ("dense", "")))),
    "stochastic_answer": (
        *_CLASSIFIER,
        *((f"{{head}}/{part}", f"{{head}}/{part}", _DENSE) for part in ("query", "attention")),
        ("{head}/gru", "{head}/gru/vars", _RECURRENT)),
    "attentive_classification": (
        *_CLASSIFIER, *_HIDDEN, *_FEATURES,
        *((f"{{head}}/compare_lstm/{way}_lstm/lstm_cell",
           f"{{head}}/compare/{way}_layer/cell/vars", _RECURRENT)
          for way in ("forward", "backward"))),
    "feature_tagging": (*_CLASSIFIER, *_FEATURES),
}
_ONE_LAYER = (*_CLASSIFIER, *_lstms("{head}/bilstm", 1))


def head_rows(name: str, head: Head) -> list[tuple]:
    """Returns the rows of a head called `name`."""
    return [(ours.format(head=name), theirs.format(head=name), parts)
            for ours, theirs, parts in _HEADS.get(head.name, _ONE_LAYER)]
