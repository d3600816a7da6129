"""Loads a checkpoint whatever its format, all of it or nothing."""

import os

from bert_tf.checkpoints import (google, huggingface, keras_file, keras_hub, model_garden,
                                 names, training_checkpoint)
from bert_tf.checkpoints.assignment import assign
from bert_tf.checkpoints.weights import translate
from bert_tf.errors import InputError

_FORMATS = (google, model_garden, huggingface, keras_hub, keras_file, training_checkpoint)
_PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".h5")
# What shapes don't show, and yet makes another network.
_UNSEEN = ("num_attention_heads", "hidden_act", "layer_norm_eps")


def _find(path):
    """The module of the format and the weights that `path` stands for.

    Raises:
        InputError: there are none, several, or only in a format that can't be trusted; or there
            is no such path.
    """
    path = os.fspath(path)
    found = [(form, form.find(path)) for form in _FORMATS]
    found = [(form, weights) for form, weights in found if weights]
    if len(found) == 1:
        return found[0]
    if found:
        raise InputError(f"{path} holds {' and '.join(weights for _, weights in found)}; name one.")
    if not os.path.exists(path):
        raise InputError(f"there is no {path}; name the folder of a checkpoint, or its file.")
    files = os.listdir(path) if os.path.isdir(path) else [path]
    pickles = sorted(name for name in files if name.endswith(_PICKLES))
    if pickles:
        raise InputError(f"{pickles[0]} isn't read, because such files can run code or "
                         "need other libraries; convert it to model.safetensors.")
    raise InputError(f"{path}: found neither a TensorFlow checkpoint (*.index), model.safetensors, "
                     "model.weights.h5, model.keras nor checkpoint-*.safetensors.")


def read_source(path, task=None):
    """The `Source` at `path`: a checkpoint in its own names.

    Args:
        path: a folder of any format, or the checkpoint in it.
        task: the head that a classifier is, where the files don't tell; a name of an objective.

    Raises:
        InputError: there is no checkpoint, it is damaged, or another network's.
    """
    form, file = _find(path)
    return form.read(file, task)


def read(path, task=None):
    """The `Weights` at `path`: a checkpoint in our names; tensors are read when asked for.

    Args:
        path: a folder of any format, or the checkpoint in it.
        task: the head that a classifier is, where the files don't tell; a name of an objective.

    Raises:
        InputError: there is no checkpoint or no configuration, or it can't be used.
    """
    source = read_source(path, task)
    return translate(source, config_of(source))


def config_of(source):
    """The `EncoderConfig` of a `Source`.

    Raises:
        InputError: there is none beside the checkpoint.
    """
    if source.config is None:
        raise InputError(f"{source.file}: there is no bert_config.json or config.json beside it.")
    return source.config


def read_config(path):
    """The `EncoderConfig` beside a checkpoint, all of whose tensors fit it.

    Args:
        path: a folder of any format, or the checkpoint in it.

    Raises:
        InputError: there is no checkpoint or no configuration, or they don't fit.
    """
    return read(path).config


def read_for(path, config, task=None):
    """The `Weights` at `path` for a network of another `EncoderConfig` than may be beside them.

    Args:
        path, task: see `read`.
        config: the network's.

    Raises:
        InputError: see `read`; or the configurations make different networks.
    """
    source = read_source(path, task)
    for key in _UNSEEN if source.config else ():
        if getattr(source.config, key) != getattr(config, key):
            raise InputError(
                f"{source.file}: {key} stands for {getattr(source.config, key)!r}, but the model "
                f"has {getattr(config, key)!r}; use the configuration of the checkpoint.")
    return translate(source, config)


def load(path, model):
    """Loads the checkpoint at `path` into an encoder or a Learner.

    Where the file has them, the pooler and the heads of the model's objectives are loaded too;
    what it lacks of these keeps its initial values.

    Args:
        path: a folder of any format, or the checkpoint in it.
        model: a `BertEncoder` or a `Learner`; its configuration must fit the checkpoint.

    Returns:
        An `Account` of every tensor and variable; print it.

    Raises:
        InputError: anything is wrong; the model is unchanged then.
    """
    heads = [objective.name for objective in getattr(model, "objectives", ())]
    return assign(model, read_for(path, getattr(model, "encoder", model).config,
                                  next((head for head in heads if head in names.CLASSIFIERS), None)))
