"""Checkpoints of Google's code from the arrays of a file of its outputs."""

import numpy as np
import tensorflow as tf


def part(arrays, prefix):
    """The arrays whose names begin with `prefix`, by the rest of their names."""
    return {name.removeprefix(prefix): value for name, value in arrays.items()
            if name.startswith(prefix)}


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
