"""BERT and its relatives on Keras 3. Names are imported when first used, so that `import bert_tf`
costs nothing and data jobs never load TensorFlow."""

import contextlib
import glob
import importlib
import os

import lazy_loader

from bert_tf.errors import note_fork
from bert_tf.heads import OBJECTIVES
from bert_tf.networks import NETWORKS
from bert_tf.registration import register_later

__version__ = "0.1.0"

os.register_at_fork(after_in_child=note_fork)

# TensorFlow, which is loaded later, writes many useless lines to stderr, such as a warning that a
# machine has no GPU. TF_CPP_MIN_LOG_LEVEL=0 shows everything.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2" if glob.glob("/dev/nvidia*") else "3")

if os.environ.get("KERAS_BACKEND") == "torch":
    # PyTorch's Triton (3.7 and later) ends the process if TensorFlow (2.20, 2.21) was loaded
    # before: https://github.com/tensorflow/tensorflow/issues/124205.
    with contextlib.suppress(ImportError):
        importlib.import_module("triton")

# The classes that people import and that a saved model may name, by module.
_CLASSES = {
    "config": ["EncoderConfig", "FixedPatternConfig", "UniversalConfig"],
    "errors": ["InputError"],
    "fill_mask": ["FillMask"],
    "tokenization.vocabulary": ["Vocabulary"],
    "tokenization.wordpiece": ["WordpieceTokenizer"],
    "networks": [*NETWORKS.values()],
    "objectives": [*OBJECTIVES],
    "predictor": ["Predictor"],
    "text_model": ["TextModel"],
    "models.electra.learner": ["Electra"],
    "training.learners.learner": ["Learner"],
    "training.optimizers.schedules": ["WarmupLinearDecay"],
    "training.optimizers.adam": ["AdamWeightDecay", "LayerwiseAdaptiveMoments"],
}
# Further classes that a saved model may name.
_SAVED = {
    "training.optimizers.muon": ["Muon"],
    "training.optimizers.variants": ["Adadelta", "Adafactor", "Adagrad", "Adamax",
                                     "AdamaxWeightDecay", "AveragedAdam", "BertAdam", "CountedAdam",
                                     "ProgressiveLamb", "RectifiedAdam", "StableAdamW"],
}

# The functions that people import.
_FUNCTIONS = {"opening": ["open_model"], "finetuning.jobs": ["finetune"]}

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=["analysis", "checkpoints", "compression", "data", "export", "fill_mask",
                "finetuning", "layers", "networks", "objectives", "tasks", "tokenization",
                "training"],
    submod_attrs={**_CLASSES, **_FUNCTIONS})


def _homes(names):
    return {name: f"{__name__}.{module}" for module, group in names.items() for name in group}


_HOMES = _homes({**_CLASSES, **_FUNCTIONS})
register_later(_homes(_CLASSES | _SAVED))
