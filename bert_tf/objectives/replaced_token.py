"""What ELECTRA's discriminator learns (arXiv:2003.10555; google-research/electra).

The batch that these objectives read holds `input_ids`, the corrupted ones, and `original_ids`: the
learner adds both, which are known only after the generator's forward pass.

Shapes: B batch, S sequence, P predictions, H hidden, E embedding width, V vocabulary.
"""

from collections.abc import Mapping
from typing import Any

import keras
from keras import ops

from bert_tf.config import EncoderConfig
from bert_tf.layers.activations import ACTIVATIONS
from bert_tf.layers.base import Dense, Tensor, register
from bert_tf.objectives.base import Batch, Objective, ratio
from bert_tf.objectives.pretraining import MaskedLM


def written(batch: Batch) -> Tensor:
    """float32 [B, S]: 1 where a token of the generator was written, however often."""
    positions = ops.cast(batch["masked_lm_positions"], "int32")[:, :, None]         # [B, P, 1]
    column = ops.arange(ops.shape(batch["input_mask"])[1], dtype="int32")
    used = ops.cast(batch["masked_lm_weights"], "float32")[:, :, None]
    hits = ops.cast(ops.equal(positions, column), "float32") * used                 # [B, P, S]
    return ops.max(hits, axis=1) * ops.cast(column > 0, "float32")


@register
class ReplacedToken(Objective):
    """Tells for each token whether it was replaced (`get_discriminator_predictions`).

    Attributes:
        written_only: whether the loss is that of the tokens which the generator wrote alone
            ("ELECTRA 15%" in table 5), not that of all tokens, [CLS] and [SEP] included.
    """

    reads = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")
    measures = ("loss", "accuracy", "precision", "recall")

    def __init__(self, config: EncoderConfig, written_only: bool = False,
                 name: str = "replaced_token", **kwargs: Any):
        super().__init__(config, name=name, **kwargs)
        self.written_only = written_only
        self.transform = self.dense(config.hidden_size, activation=ACTIVATIONS[config.hidden_act])
        self.classifier = Dense(1, name="dense_1", dtype=self.dtype_policy)
        self.build()

    def build(self, input_shape: Any = None) -> None:
        for layer in (self.transform, self.classifier):
            layer.build((None, None, self.config.hidden_size))

    def call(self, outputs: Mapping[str, Tensor], batch: Batch,
             embedding_table: Tensor | None = None, dropout_seed: Tensor | None = None) -> Tensor:
        """From `outputs["sequence_output"]`, float [B, S, H], to float32 logits [B, S]."""
        x = self.classifier(self.transform(outputs["sequence_output"]))             # [B, S, 1]
        return ops.cast(x[:, :, 0], "float32")

    def weights_of(self, batch: Batch) -> Tensor:
        """float32 [B, S], the weights of the losses of the tokens."""
        if self.written_only:
            return written(batch)
        return ops.cast(batch["input_mask"], "float32")

    def targets(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Labels and weights [B, S]; a sample that is the original counts as not replaced."""
        return (ops.cast(ops.not_equal(batch["input_ids"], batch["original_ids"]), "int32"),
                self.weights_of(batch))

    def count(self, batch: Batch) -> Tensor:
        """See `Objective`; labels are not needed."""
        return ops.sum(self.weights_of(batch))

    def loss(self, logits: Tensor, labels: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        """The weighted sum of the sigmoid cross-entropies, and the sum of the weights."""
        losses = ops.binary_crossentropy(ops.cast(labels, "float32"), logits, from_logits=True)
        return ops.sum(losses * weights), ops.sum(weights)

    def measure(self, logits: Tensor, labels: Tensor, weights: Tensor
                ) -> dict[str, tuple[Tensor, Tensor]]:
        """See `Objective`; precision and recall are those of replaced tokens."""
        replaced, label = ops.cast(logits > 0, "float32"), ops.cast(labels, "float32")
        correct = ops.cast(ops.equal(replaced, label), "float32")
        return {"loss": self.loss(logits, labels, weights), "accuracy": ratio(correct, weights),
                "precision": ratio(correct, weights * replaced),
                "recall": ratio(correct, weights * label)}

    def answers(self, logits: Tensor) -> dict[str, Tensor]:
        """The logits, and the probability that each token was replaced."""
        return {"logits": logits, "probabilities": ops.sigmoid(logits)}

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "written_only": self.written_only}


@register
class AllTokensLM(MaskedLM):
    """Predicts the original of every token ("All-Tokens MLM" in section 3.4 of the paper).

    A gate D, a sigmoid on the vector of a token, tells how likely that token is the original:
    p(token) = D * [token is the input's] + (1 - D) * softmax.
    """

    def __init__(self, config: EncoderConfig, name: str = "all_tokens_lm", **kwargs: Any):
        super().__init__(config, name=name, **kwargs)

    def build(self, input_shape: Any = None) -> None:
        super().build()
        self.copy = self.dense(1)
        with keras.name_scope("copy"):
            self.copy.build((None, None, self.config.hidden_size))

    def call(self, outputs: Mapping[str, Tensor], batch: Batch, embedding_table: Tensor,
             dropout_seed: Tensor | None = None) -> Tensor:
        """The logarithms of the probabilities, float32 [B, S, V]."""
        x = outputs["sequence_output"]                                              # [B, S, H]
        gate = ops.cast(self.copy(x), "float32")                                    # [B, S, 1]
        drawn = ops.log_softmax(self.predict(x, embedding_table)) + ops.log_sigmoid(-gate)
        is_input = ops.one_hot(batch["input_ids"], self.config.vocab_size, dtype="bool")
        return ops.where(is_input, ops.logaddexp(drawn, ops.log_sigmoid(gate)), drawn)

    def targets(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Labels and weights [B, S]."""
        return batch["original_ids"], ops.cast(batch["input_mask"], "float32")

    def count(self, batch: Batch) -> Tensor:
        """See `Objective`; labels are not needed."""
        return ops.sum(ops.cast(batch["input_mask"], "float32"))
