"""Writes a Learner with the heads that a checkpoint has, as a `.keras` file."""

import os

import lazy_loader

from bert_tf.checkpoints import folders, keras_file
from bert_tf.checkpoints.assignment import assign
from bert_tf.checkpoints.exact import as_float32
from bert_tf.heads import HEADS

keras = lazy_loader.load("keras")


def table_for(weights):  # pylint: disable=unused-argument
    """The table to write `weights` with."""
    return keras_file.FORMAT


def _learner(weights):
    """An untrained Learner with the heads of `weights`: what Keras makes of its description."""
    objectives = []
    for head in map(HEADS.get, weights.heads):
        if head and head.rebuildable:
            options = {}
            if head.is_labelled:
                options["num_labels"] = weights.tensors[f"{head.name}/dense/bias"].shape[0]
            if head.name == "masked_lm":
                options["tied"] = "masked_lm/output_weights" not in weights.tensors
            objectives.append(_described(head.objective, config=weights.config.to_dict(), **options))
    return keras.saving.deserialize_keras_object(_described(
        "Learner", objectives=objectives,
        encoder=_described("BertEncoder", config=weights.config.to_dict())))


def _described(name, **config):
    """The description of an object of one of our classes, as Keras saves it."""
    return {"module": None, "class_name": name, "registered_name": f"bert_tf>{name}",
            "config": config}


def write(folder, weights, tensors):
    """Writes `model.keras`, `bert_config.json` and `vocab.txt` into `folder`.

    Args:
        folder: where.
        weights: `Weights`.
        tensors: a dict of `Tensor` by Keras's names.

    Raises:
        InputError: a value isn't the same in float32.
    """
    for tensor in tensors.values():
        as_float32(tensor, weights.source)
    learner = _learner(weights)
    assign(learner, weights)
    learner.save(os.path.join(folder, keras_file.NAME))
    folders.write_around(folder, weights)
