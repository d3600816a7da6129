"""The masked language model (arXiv:1810.04805, section 3.1)."""

import keras
from keras import ops

from bert_tf.layers.activations import ACTIVATIONS
from bert_tf.layers.base import register
from bert_tf.layers.layer_norm import LayerNorm
from bert_tf.objectives.base import Objective


def _gather(x, positions):
    """Rows [B, P, H] of x [B, S, H]: one gather of whole rows, as in the original."""
    batch, length, width = ops.shape(x)
    starts = ops.expand_dims(ops.arange(batch, dtype="int32") * length, axis=1)
    rows = ops.cast(positions, "int32") + starts
    return ops.take(ops.reshape(x, (-1, width)), rows, axis=0)


@register
class MaskedLM(Objective):
    """Predicts the tokens at masked positions (google-research/bert, `get_masked_lm_output`).

    Shapes: B batch, S sequence, P predictions, H hidden, V vocabulary. Only masked positions meet
    the vocabulary matrix.

    Attributes:
        tied: whether that matrix is the word embedding table, as in the original; if not, it is
            the variable `output_weights` [V, H].
    """

    def __init__(self, config, tied=True, name="masked_lm", **kwargs):
        super().__init__(config, name=name, **kwargs)
        self.tied = tied
        self.transform = self.dense(config.hidden_size, activation=ACTIVATIONS[config.hidden_act])
        self.norm = LayerNorm(config, dtype=self.dtype_policy)
        self.build()

    def build(self, input_shape=None):
        with keras.name_scope("transform"):
            self.transform.build((None, None, self.config.hidden_size))
            self.norm.build()
        self.output_bias = self.add_weight(
            (self.config.vocab_size,), "zeros", name="output_bias", autocast=False)
        if not self.tied:
            self.output_weights = self.add_weight(
                (self.config.vocab_size, self.config.hidden_size), self.initializer(),
                name="output_weights", autocast=False)

    def call(self, outputs, batch, embedding_table, dropout_seed=None):
        """
        Args:
            outputs: with `sequence_output`, float [B, S, H].
            batch: with `masked_lm_positions`, integer [B, P].
            embedding_table: float [V, H].
            dropout_seed: not used.

        Returns:
            float32 logits [B, P, V].
        """
        x = _gather(outputs["sequence_output"], batch["masked_lm_positions"])
        x = self.norm(self.transform(x))
        table = ops.cast(embedding_table if self.tied else self.output_weights, x.dtype)
        logits = ops.cast(ops.matmul(x, ops.transpose(table)), "float32")
        return logits + ops.cast(self.output_bias, "float32")

    def targets(self, batch):
        """Labels and weights [B, P]; the weight of an unused slot is 0."""
        return batch["masked_lm_ids"], ops.cast(batch["masked_lm_weights"], "float32")

    def get_config(self):
        return {**super().get_config(), "tied": self.tied}
