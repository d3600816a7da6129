"""The likelier of two candidates by a masked language model (arXiv:1905.06290, section 2;
facebookresearch/fairseq, examples/roberta/wsc/wsc_criterion.py).

Shapes: B batch, S sequence, P tokens of a candidate, V vocabulary.
"""

from collections.abc import Mapping
from typing import Any

from keras import ops

from bert_tf.bert.layers import gather
from bert_tf.bert.objective import MaskedLM
from bert_tf.config import EncoderConfig
from bert_tf.layers.base import Tensor, register
from bert_tf.layers.functions import dropout
from bert_tf.objectives.base import Batch, example_weights, ratio


@register
class CandidateLM(MaskedLM):
    """Scores of two candidates, float32 [B, 2]: the mean log probability of a candidate's tokens in
    place of as many masks, in sequences [B, 2, S].

    `label_ids` [B] is 0 where the first candidate is right; other examples do not count. The loss
    is -q + margin_alpha * max(0, c - q + margin_beta) of the scores q and c of the first and the
    second, with fairseq's defaults.
    """

    inputs = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")
    reads = ("label_ids", *inputs)
    likelihood = ""     # the loss compares whole candidates
    config_keys = ("margin_alpha", "margin_beta", "dropout_rate")

    def __init__(self, config: EncoderConfig, margin_alpha: float = 1.0, margin_beta: float = 0.0,
                 dropout_rate: float = 0.0, name: str = "candidate_lm", **kwargs: Any):
        super().__init__(config, name=name, **kwargs)
        self.margin_alpha, self.margin_beta = margin_alpha, margin_beta
        self.dropout_rate = dropout_rate

    def call(self, outputs: Mapping[str, Tensor], batch: Batch, embedding_table: Tensor,
             dropout_seed: Tensor | None = None) -> Tensor:
        """`sequence_output`, float [B * 2, S, H], and the table [V, E] -> float32 [B, 2]."""
        x = outputs["sequence_output"]
        positions, ids, weights = (ops.reshape(batch[name], (ops.shape(x)[0], -1))
                                   for name in self.inputs)                     # [B * 2, P]
        x = dropout(gather(x, positions), self.dropout_rate, dropout_seed)
        likely = ops.log_softmax(self.predict(x, embedding_table))              # [B * 2, P, V]
        ids = ops.expand_dims(ops.cast(ids, "int32"), 2)
        likely = ops.take_along_axis(likely, ids, axis=2)[..., 0]               # [B * 2, P]
        weights = ops.cast(weights, "float32")
        scores = ops.sum(likely * weights, axis=1) / ops.maximum(ops.sum(weights, axis=1), 1.0)
        return ops.reshape(scores, (-1, 2))

    def targets(self, batch: Batch) -> tuple[Tensor, ...]:
        """Labels and weights [B]."""
        labels = ops.reshape(batch["label_ids"], (-1,))
        weights = example_weights(batch, labels)
        return labels, weights * ops.cast(ops.equal(labels, 0), "float32")

    def loss(self, logits: Tensor, labels: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        first, second = logits[:, 0], logits[:, 1]
        margin = ops.relu(second - first + self.margin_beta)
        return ratio(self.margin_alpha * margin - first, weights)
