"""Writes a Learner with the heads that a checkpoint has, as a `.keras` file."""

import functools
import os

from bert_tf.checkpoints import folders, keras_file
from bert_tf.checkpoints.assignment import assign
from bert_tf.checkpoints.exact import as_float32


def table_for(weights):  # pylint: disable=unused-argument
    """The table to write `weights` with."""
    return keras_file.FORMAT


def _learner(weights):
    """An untrained Learner with the heads of `weights`."""
    # pylint: disable=import-outside-toplevel
    from bert_tf.networks.encoder import BertEncoder
    from bert_tf.objectives.answer_span import AnswerSpan
    from bert_tf.objectives.masked_lm import MaskedLM
    from bert_tf.objectives.multiple_choice import MultipleChoice
    from bert_tf.objectives.sentence import (
        Classification, MultiLabel, Regression, SentencePrediction)
    from bert_tf.objectives.tagging import Tagging
    from bert_tf.training.learner import Learner

    config = weights.config
    tied = "masked_lm/output_weights" not in weights.tensors
    plain = {"masked_lm": functools.partial(MaskedLM, tied=tied), "answer_span": AnswerSpan,
             "multiple_choice": MultipleChoice}
    labelled = {"next_sentence": SentencePrediction, "classification": Classification,
                "multi_label": MultiLabel, "regression": Regression, "tagging": Tagging}
    objectives = [plain[head](config) for head in weights.heads if head in plain]
    objectives += [labelled[head](config, weights.tensors[f"{head}/dense/bias"].shape[0])
                   for head in weights.heads if head in labelled]
    return Learner(BertEncoder(config), objectives)


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
