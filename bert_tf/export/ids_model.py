"""A model as a function of ids, which every runtime can run."""

import tensorflow as tf

from bert_tf.errors import InputError


def answers(model, features):
    """What a model says: a dict of named float32 tensors.

    Args:
        model: an encoder, which gives `sequence_output` and `pooled_output`; or a Learner, which
            gives what its one objective calls its answers.
        features: dict of int32 [B, S].

    Raises:
        InputError: the Learner has several objectives.
    """
    if len(getattr(model, "objectives", ())) > 1:
        names = ", ".join(objective.name for objective in model.objectives)
        raise InputError(f"the model has several objectives ({names}); export its encoder, or a "
                         "Learner of the encoder and one of them.")
    outputs = model(features)
    if hasattr(model, "objectives"):
        objective, = model.objectives
        named = objective.answers(outputs[objective.name])
    else:
        named = {name: outputs[name] for name in ("sequence_output", "pooled_output")}
    return {name: tf.cast(value, tf.float32) for name, value in named.items()}


class IdsModel(tf.Module):
    """Takes the features that the network reads, int32 [B, S], and returns `answers`.

    Attributes:
        function: the tf.function.
        functions: the signatures of a SavedModel by name.
    """

    def __init__(self, model, length=None):
        """
        Args:
            model: the model.
            length: the one S that it takes, for runtimes that ask for it; any S if None.
        """
        super().__init__()
        self._weights = [v.value for v in model.weights]    # what the SavedModel keeps
        reads = getattr(model, "encoder", model).reads
        self.function = tf.function(
            lambda *ids: answers(model, dict(zip(reads, ids))), autograph=False,
            input_signature=[tf.TensorSpec([None, length], tf.int32, name) for name in reads])
        self.functions = {"serving_default": self.function}
