"""A network that makes a sequence from another, with the loop over its tokens inside."""

import tensorflow as tf

from bert_tf.export.ids_model import IdsModel


class GenerationModel(tf.Module):
    """Takes ids, padded with 0, and returns those of the result.

    Its signatures are `serving_default`, from `encoder_input_tokens`, int32 [B, S], to
    `output_ids`, int32 [B, T], 0 after the end; and `logits`, that of `IdsModel`: what the network
    predicts after given targets.

    Attributes:
        functions: the signatures of a SavedModel by name.
    """

    def __init__(self, model, length: int, beams: int = 1, alpha: float = 0.6):
        """
        Args:
            model: a network that has `generate`, or a Learner of it.
            length: T, the most tokens of a result.
            beams, alpha: of `generate`.
        """
        super().__init__()
        network = getattr(model, "encoder", model)
        self._logits = IdsModel(network)
        self._weights = [v.value for v in network.weights]      # what the SavedModel keeps
        generate = tf.function(
            lambda tokens: {"output_ids": network.generate(tokens, length, beams, alpha)},
            autograph=False,
            input_signature=[tf.TensorSpec([None, None], tf.int32, "encoder_input_tokens")])
        self.functions = {"serving_default": generate, "logits": self._logits.function}
