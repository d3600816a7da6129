"""Objectives of ELECTRA's discriminator (arXiv:2003.10555; google-research/electra).

The learner adds `input_ids`, the corrupted ids, and `original_ids` to the batch after the
generator's forward pass.

Shapes: B batch, S sequence, P predictions, H hidden, E embedding width, V vocabulary.
"""

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
from keras import ops

from bert_tf.bert.objective import MaskedLM
from bert_tf.config import EncoderConfig
from bert_tf.layers.base import Dense, Tensor, register
from bert_tf.layers.functions import ACTIVATIONS
from bert_tf.objectives.base import Batch, Objective, ratio

_BINS, _WIDTH = 1 << 16, 1 / 2048       # of logits from -16 to 16


def logit_histogram(logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
    """The summed weights of each bin of logits, float32 [2, 65536]: first where the label is 0,
    then where it is 1. A bin is 1/2048 wide; logits below -16 or above 16 are in the outer bins.
    All arguments have one shape."""
    bins = ops.cast(ops.floor((logits + _BINS // 2 * _WIDTH) / _WIDTH), "int32")
    places = ops.clip(bins, 0, _BINS - 1) + _BINS * ops.cast(labels, "int32")
    sums = ops.segment_sum(ops.reshape(weights, (-1,)), ops.reshape(places, (-1,)), 2 * _BINS)
    return ops.reshape(sums, (2, _BINS))


def area_under_curve(histogram: np.ndarray) -> float:
    """The area under the receiver operating characteristic, from `logit_histogram`: the share of
    pairs, one of each label, whose logit of label 1 is the larger one; a pair within one bin counts
    as half. NaN if a label is missing.

    It differs from the exact area by at most half the share of pairs that lie within one bin. The
    original (`disc_auc`) has 200 thresholds of the probability instead of the bins.
    """
    zeros, ones = np.asarray(histogram, np.float64)
    pairs = zeros.sum() * ones.sum()
    below = np.cumsum(zeros) - zeros / 2
    return float(below @ ones / pairs) if pairs else float("nan")


def written(batch: Batch) -> Tensor:
    """float32 [B, S]: 1 where the generator wrote a token, however often."""
    positions = ops.cast(batch["masked_lm_positions"], "int32")[:, :, None]         # [B, P, 1]
    column = ops.arange(ops.shape(batch["input_mask"])[1], dtype="int32")
    used = ops.cast(batch["masked_lm_weights"], "float32")[:, :, None]
    hits = ops.cast(ops.equal(positions, column), "float32") * used                 # [B, P, S]
    return ops.max(hits, axis=1) * ops.cast(column > 0, "float32")


@register
class ReplacedToken(Objective):
    """Predicts for each token whether it was replaced (`get_discriminator_predictions`).

    `written_only` restricts the loss to the tokens that the generator wrote ("ELECTRA 15%" in table
    5); otherwise it is over all tokens, with [CLS] and [SEP].
    """

    reads = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")
    measures = ("loss", "accuracy", "precision", "recall")
    tallies = ("histogram",)
    config_keys = ("written_only",)
    output_shape = (None, None)

    def __init__(self, config: EncoderConfig, written_only: bool = False, **kwargs: Any):
        super().__init__(config, **kwargs)
        self.written_only = written_only
        self.transform = self.dense(config.hidden_size, activation=ACTIVATIONS[config.hidden_act])
        self.classifier = Dense(1, name="dense_1", dtype=self.dtype_policy)
        self.build()

    def call(self, outputs: Mapping[str, Tensor], batch: Batch,
             embedding_table: Tensor | None = None, dropout_seed: Tensor | None = None) -> Tensor:
        """`sequence_output`, float [B, S, H] -> float32 logits [B, S]."""
        x = self.classifier(self.transform(outputs["sequence_output"]))             # [B, S, 1]
        return ops.cast(x[:, :, 0], "float32")

    def weights_of(self, batch: Batch) -> Tensor:
        """float32 [B, S], the tokens' weights in the loss."""
        if self.written_only:
            return written(batch)
        return ops.cast(batch["input_mask"], "float32")

    def targets(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Labels and weights [B, S]; a sample that equals the original counts as not replaced."""
        return (ops.cast(ops.not_equal(batch["input_ids"], batch["original_ids"]), "int32"),
                self.weights_of(batch))

    def count(self, batch: Batch) -> Tensor:
        return ops.sum(self.weights_of(batch))

    def loss(self, logits: Tensor, labels: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the weighted sum of the sigmoid cross-entropies, and the sum of the weights."""
        return ratio(ops.binary_crossentropy(ops.cast(labels, "float32"), logits, from_logits=True),
                     weights)

    def measure(self, logits: Tensor, labels: Tensor, weights: Tensor) -> dict[str, Any]:
        """See `Objective`; precision and recall refer to replaced tokens."""
        replaced, label = ops.cast(logits > 0, "float32"), ops.cast(labels, "float32")
        correct = ops.cast(ops.equal(replaced, label), "float32")
        return {"loss": self.loss(logits, labels, weights), "accuracy": ratio(correct, weights),
                "precision": ratio(correct, weights * replaced),
                "recall": ratio(correct, weights * label),
                "histogram": logit_histogram(logits, labels, weights)}

    def summarize(self, tallies: Mapping[str, np.ndarray]) -> dict[str, float]:
        """Returns `auc`, `area_under_curve` of replaced tokens, if tokens of both kinds exist."""
        area = area_under_curve(tallies["histogram"])
        return {} if np.isnan(area) else {"auc": area}

    def answers(self, logits: Tensor) -> dict[str, Tensor]:
        """The logits, and each token's probability of being replaced."""
        return {"logits": logits, "probabilities": ops.sigmoid(logits)}


@register
class AllTokensLM(MaskedLM):
    """Predicts the original of every token ("All-Tokens MLM" in section 3.4 of the paper). A gate
    D, a sigmoid on a token's vector, is the probability that the token is the original: p(token) =
    D * [token is the input's] + (1 - D) * softmax."""

    likelihood = ""     # most tokens are in its input

    def __init__(self, config: EncoderConfig, name: str = "all_tokens_lm", **kwargs: Any):
        super().__init__(config, name=name, **kwargs)

    def build(self, input_shape: Any = None) -> None:
        super().build()
        self.copy = self.dense(1)
        with keras.name_scope("copy"):
            self.copy.build((None, None, self.config.hidden_size))

    def call(self, outputs: Mapping[str, Tensor], batch: Batch, embedding_table: Tensor,
             dropout_seed: Tensor | None = None) -> Tensor:
        """float32 log probabilities [B, S, V]."""
        x = outputs["sequence_output"]                                              # [B, S, H]
        gate = ops.cast(self.copy(x), "float32")                                    # [B, S, 1]
        drawn = ops.log_softmax(self.predict(x, embedding_table)) + ops.log_sigmoid(-gate)
        is_input = ops.one_hot(batch["input_ids"], self.config.vocab_size, dtype="bool")
        return ops.where(is_input, ops.logaddexp(drawn, ops.log_sigmoid(gate)), drawn)

    def targets(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Labels and weights [B, S]."""
        return batch["original_ids"], ops.cast(batch["input_mask"], "float32")

    def count(self, batch: Batch) -> Tensor:
        return ops.sum(ops.cast(batch["input_mask"], "float32"))
