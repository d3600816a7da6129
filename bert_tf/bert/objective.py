"""BERT's two pre-training objectives (arXiv:1810.04805, section 3.1).

Shapes: B batch, S sequence, P slots for predictions, M predictions, H hidden, E width of the
embeddings, V vocabulary, X width of the vectors that predict tokens, in general E.
"""

from collections.abc import Mapping
from typing import Any

from keras import ops

from bert_tf.bert.layers import PredictionLayer, gather
from bert_tf.config import BertConfig
from bert_tf.layers.base import Tensor, register, variant
from bert_tf.layers.functions import vocabulary_logits
from bert_tf.objectives.base import Batch, LabelHead, Objective


def used(values: Tensor, batch: Batch) -> Tensor:
    """Takes the masked tokens that count: [B, P, ...] -> [M, ...].

    The feature `predictions`, integer [M], has record * P + slot of each, then of unused slots; in
    a batch without it all slots are taken, and nothing changes.
    """
    if batch.get("predictions") is None:
        return values
    rest = ops.shape(values)[2:]
    return ops.take(ops.reshape(values, (-1, *rest)), batch["predictions"], axis=0)


def to_slots(values: Tensor, batch: Batch) -> Tensor:
    """Undoes `used`: [M] -> [B, P], with 0 in the slots that are not used."""
    if batch.get("predictions") is None:
        return values
    shape = ops.shape(batch["masked_lm_positions"])
    return ops.reshape(ops.scatter(batch["predictions"][:, None], values, (shape[0] * shape[1],)),
                       shape)


@register
class MaskedLM(Objective):
    """Predicts the tokens at masked positions (google-research/bert, `get_masked_lm_output`).

    Only the masked positions are multiplied by the vocabulary matrix.

    Attributes:
        tied: whether that matrix is the word embedding table, as in the original; if not, it is the
            variable `output_weights` [V, X]. None: as the configuration's `ties_masked_lm`.
    """

    reads: tuple[str, ...] = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")
    likelihood = "loss"
    config_keys: tuple[str, ...] = ("tied",)

    def __init__(self, config: BertConfig, tied: bool | None = None, name: str = "masked_lm",
                 **kwargs: Any):
        super().__init__(config, name=name, **kwargs)
        self.tied = config.ties_masked_lm if tied is None else tied
        make_hidden = variant("prediction_layer", config) or PredictionLayer
        self.transform = make_hidden(config, name="transform", dtype=self.dtype_policy)
        wider = variant("output_table", config) if self.tied else None
        self.extra = wider(config, name="extra", dtype=self.dtype_policy) if wider else None
        self.build()

    def build(self, input_shape: Any = None) -> None:
        super().build()
        make_bias = variant("output_bias", self.config) or self.add_weight
        self.output_bias = make_bias((self.config.vocab_size,), "zeros", name="output_bias")
        if not self.tied:
            self.output_weights = self.add_weight(
                (self.config.vocab_size, self.config.prediction_width), name="output_weights")

    @property
    def output_shape(self) -> tuple[int | None, ...]:
        return None, None, self.config.vocab_size

    @property
    def reads_masked(self) -> bool:     # type: ignore[override]
        return type(self).call is MaskedLM.call

    def call(self, outputs: Mapping[str, Tensor], batch: Batch, embedding_table: Tensor,
             dropout_seed: Tensor | None = None) -> Tensor:
        """`prediction_output`, float [B, S, H], or `sequence_output` of a network without it, at
        `masked_lm_positions`, and the table [V, E] -> float32 logits [B, P, V]; [M, V] in a batch
        with `predictions`. `read_output`, float [B, P, H], is at these positions already."""
        x = outputs.get("read_output")
        if x is None:
            x = outputs.get("prediction_output", outputs["sequence_output"])
            x = gather(x, batch["masked_lm_positions"])                             # [B, P, H]
        return self.predict(used(x, batch), embedding_table)

    def predict(self, x: Tensor, embedding_table: Tensor) -> Tensor:
        """float [B, P, H] -> float32 logits [B, P, V]."""
        x = self.transform(x)                                                       # [B, P, X]
        table = embedding_table if self.tied else self.output_weights
        if self.extra:
            table = self.extra(ops.cast(table, x.dtype))                            # [V, X]
        return vocabulary_logits(x, table) + ops.cast(self.output_bias, "float32")

    def targets(self, batch: Batch) -> tuple[Tensor, ...]:
        """Labels and weights of the logits; an unused slot's weight is 0."""
        return (used(batch["masked_lm_ids"], batch),
                used(ops.cast(batch["masked_lm_weights"], "float32"), batch))

    @property
    def in_order(self) -> bool:  # type: ignore[override]
        return self.config.has_memory

    def count(self, batch: Batch) -> Tensor:
        return ops.sum(self.targets({**batch, "predictions": None})[1])


@register
class SentencePrediction(LabelHead):
    """A class of the sequence (google-research/bert, `get_next_sentence_output`).

    With two labels it predicts the next sentence: 0 where the second segment follows the first in
    the text, 1 where it was drawn at random. Records may hold other relations of the segments.
    """

    reads = ("next_sentence_labels",)
    config_keys = ("metrics_name",)

    def __init__(self, config: BertConfig, num_labels: int = 2, name: str = "next_sentence",
                 dropout_rate: float = 0.0, **kwargs: Any):
        super().__init__(config, num_labels, name=name, dropout_rate=dropout_rate, **kwargs)
