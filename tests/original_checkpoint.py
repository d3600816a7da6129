"""Checkpoints of Google's code: from the arrays of a file of its outputs, and back to arrays."""

import numpy as np
import tensorflow as tf

from bert_tf.checkpoints import tensor_bundle


def arrays_of(prefix):
    """The arrays of a checkpoint, by the original's names."""
    return {name: tensor.read() for name, tensor in tensor_bundle.tensors(str(prefix)).items()}


def write(folder, config, weights):
    """Writes a checkpoint as google-research/albert leaves it while it trains into a new folder;
    `config` is the text of its configuration, `weights` are arrays by the original's names."""
    folder.mkdir()
    (folder / "albert_config.json").write_text(config)
    slots = ("adam_m", "adam_v", "Adam", "Adam_1")      # the last two are TensorFlow's own Adam's
    tensors = {**weights, "global_step": np.int64(4), "beta1_power": np.float32(0.9),
               **{f"bert/pooler/dense/bias/{slot}": np.zeros(3) for slot in slots}}
    tf.raw_ops.SaveV2(prefix=str(folder / "model.ckpt-4"), tensor_names=list(tensors),
                      shape_and_slices=[""] * len(tensors), tensors=list(tensors.values()))
