"""BERT and its relatives on Keras 3.

Names are imported when first used, so `import bert_tf` costs nothing and data jobs never load
TensorFlow.
"""

import importlib

from bert_tf.registration import register_later

__version__ = "0.1.0"

_HOMES = {
    "EncoderConfig": "bert_tf.config",
    "InputError": "bert_tf.errors",
    "Vocabulary": "bert_tf.tokenization.vocabulary",
    "WordpieceTokenizer": "bert_tf.tokenization.wordpiece",
    "BertEncoder": "bert_tf.pretrained",
    "MaskedLM": "bert_tf.pretrained",
    "SentencePrediction": "bert_tf.pretrained",
    "Classification": "bert_tf.pretrained",
    "MultiLabel": "bert_tf.pretrained",
    "Regression": "bert_tf.pretrained",
    "AnswerSpan": "bert_tf.pretrained",
    "Tagging": "bert_tf.pretrained",
    "FeatureTagging": "bert_tf.pretrained",
    "MultipleChoice": "bert_tf.pretrained",
    "Predictor": "bert_tf.predictor",
    "Learner": "bert_tf.training.learner",
    "AdamWeightDecay": "bert_tf.training.optimizer",
    "LayerwiseAdaptiveMoments": "bert_tf.training.optimizer",
    "WarmupLinearDecay": "bert_tf.training.optimizer",
}

__all__ = sorted(_HOMES)


def __getattr__(name):
    if name not in _HOMES:
        raise AttributeError(f"module 'bert_tf' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__():
    return sorted([*globals(), *_HOMES])


register_later(_HOMES)
