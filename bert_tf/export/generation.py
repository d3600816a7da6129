"""Export of a network that generates a sequence, with the loop over its tokens in the graph."""

import tensorflow as tf

from bert_tf.export.ids_model import IdsModel


class GenerationModel(tf.Module):
    """Generates ids from ids padded with 0.

    `functions` has the signatures of a SavedModel: `serving_default`, from `encoder_input_tokens`,
    int32 [B, S], to `output_ids`, int32 [B, T], 0 after the end; and `logits`, the `IdsModel` of
    predictions for given targets.
    """

    def __init__(self, model, length: int, beams: int = 1, alpha: float = 0.6):
        """`model` is a network that has `generate`, or its Learner; `length` is T, the most tokens
        of a result; for `beams` and `alpha` see `generate`."""
        super().__init__()
        network = getattr(model, "encoder", model)
        self._logits = IdsModel(network)
        self._weights = [v.value for v in network.weights]      # for the SavedModel
        generate = tf.function(
            lambda tokens: {"output_ids": network.generate(tokens, length, beams, alpha)},
            autograph=False,
            input_signature=[tf.TensorSpec([None, None], tf.int32, "encoder_input_tokens")])
        self.functions = {"serving_default": generate, "logits": self._logits.function}
