"""What stands beside weights in a folder of Google's, and in others that follow it."""

import os
import shutil

from bert_tf.checkpoints import tensor_bundle
from bert_tf.config import EncoderConfig
from bert_tf.errors import InputError

PREFIX = "bert_model.ckpt"
CONFIG, VOCABULARY = "bert_config.json", "vocab.txt"
OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"


def find_index(path):
    """The prefix of the TensorFlow checkpoint that `path` (a folder, a prefix, an index file)
    stands for, or None if there is none.

    In a folder the one index file counts, not the file `checkpoint`, which often names the path
    of another machine.

    Raises:
        InputError: the folder holds several checkpoints.
    """
    prefix = path.removesuffix(".index")
    if os.path.isfile(f"{prefix}.index"):
        return prefix
    if not os.path.isdir(path):
        return None
    names = sorted(name for name in os.listdir(path) if name.endswith(".index"))
    if len(names) > 1:
        raise InputError(f"{path} holds several checkpoints ({', '.join(names)}); name one.")
    return os.path.join(path, names[0].removesuffix(".index")) if names else None


def is_object_checkpoint(prefix):
    """Whether a checkpoint is one of TensorFlow 2's, of objects and not of variables."""
    return OBJECT_GRAPH in tensor_bundle.tensors(prefix)


def beside(file, name):
    """The path of the file `name` in the folder of `file`, or None if there is none."""
    path = os.path.join(os.path.dirname(file), name)
    return path if os.path.isfile(path) else None


def read_config(file):
    """The `EncoderConfig` in the `bert_config.json` beside `file`, or None."""
    path = beside(file, CONFIG)
    return EncoderConfig.from_json_file(path) if path else None


def vocabulary_beside(file):
    """The `vocab.txt` beside `file`, or None."""
    return beside(file, VOCABULARY)


def check_original(weights):
    """Raises InputError if Google's code couldn't build the network of `weights`."""
    config = weights.config
    if config.layer_norm_eps != EncoderConfig.layer_norm_eps:
        raise InputError(f"{weights.source}: layer_norm_eps is {config.layer_norm_eps}, but this "
                         f"format's own code always takes {EncoderConfig.layer_norm_eps}.")
    if config.hidden_act == "gelu_erf":
        raise InputError(f"{weights.source}: hidden_act is the exact GELU, but this format's own "
                         "code computes the tanh form; give --hidden_act=gelu to take that.")


def copy_vocabulary(weights, path):
    """Copies the vocabulary of `weights`, if it has one, to `path`."""
    if weights.vocab_file:
        shutil.copyfile(weights.vocab_file, path)


def write_around(folder, weights):
    """Writes `bert_config.json` and `vocab.txt`."""
    weights.config.to_json_file(os.path.join(folder, CONFIG))
    copy_vocabulary(weights, os.path.join(folder, VOCABULARY))
