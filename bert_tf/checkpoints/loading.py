"""Loads a checkpoint whatever its format, all of it or nothing."""

import os

from bert_tf.checkpoints import google, huggingface
from bert_tf.checkpoints.rules import assign
from bert_tf.config import EncoderConfig
from bert_tf.errors import InputError

_PICKLES = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".h5")
# What shapes don't show, and yet makes another network.
_UNSEEN = ("num_attention_heads", "hidden_act", "layer_norm_eps")


def _find(path):
    """The module of the format and the weights that `path` stands for.

    Raises:
        InputError: there are none, several, or only in a format that can't be trusted.
    """
    path = os.fspath(path)
    found = [(form, form.find(path)) for form in (google, huggingface)]
    found = [(form, weights) for form, weights in found if weights]
    if len(found) == 1:
        return found[0]
    if found:
        raise InputError(f"{path} holds {' and '.join(weights for _, weights in found)}; name one.")
    names = os.listdir(path) if os.path.isdir(path) else [path]
    pickles = sorted(name for name in names if name.endswith(_PICKLES))
    if pickles:
        raise InputError(f"{pickles[0]} isn't read, because such files can run code or "
                         "need other libraries; convert it to model.safetensors.")
    raise InputError(f"{path}: found neither a TensorFlow checkpoint (*.index) nor "
                     "model.safetensors.")


def _config(form, weights):
    file = form.config_file(weights)
    return EncoderConfig.from_json_file(file) if form is google else form.read_config(file)


def read_config(path):
    """The `EncoderConfig` beside a checkpoint.

    Args:
        path: a folder of Google's or Hugging Face's, or the checkpoint in it.

    Raises:
        InputError: there is no checkpoint, or its configuration can't be used.
    """
    return _config(*_find(path))


def load(path, model):
    """Loads the checkpoint at `path` into an encoder or a Learner.

    Where the file has them, the pooler and the heads of the objectives `masked_lm` and
    `next_sentence` are loaded too; what it lacks of these keeps its initial values.

    Args:
        path: a folder of Google's or Hugging Face's, or the checkpoint in it.
        model: a `BertEncoder` or a `Learner`; its configuration must fit the checkpoint.

    Returns:
        An `Account` of every tensor and variable; print it.

    Raises:
        InputError: anything is wrong; the model is unchanged then.
    """
    form, weights = _find(path)
    if os.path.isfile(form.config_file(weights)):
        theirs, ours = _config(form, weights), getattr(model, "encoder", model).config
        for key in _UNSEEN:
            if getattr(theirs, key) != getattr(ours, key):
                raise InputError(
                    f"{form.config_file(weights)}: {key} stands for {getattr(theirs, key)!r}, but "
                    f"the model has {getattr(ours, key)!r}; use the configuration of the "
                    "checkpoint.")
    return assign(model, form.tensors(weights), form.FORMAT, weights)
