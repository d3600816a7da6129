"""The stochastic answer network on top of an encoder (arXiv:1804.07888; namisan/mt-dnn v0.1,
module/san.py and module/similarity.py).

Shapes: B batch, S sequence, H hidden, K turns, C classes.
"""

from collections.abc import Mapping
from typing import Any

import keras
from keras import ops

from bert_tf.config import Sizes
from bert_tf.errors import InputError
from bert_tf.layers.base import Tensor, register
from bert_tf.layers.functions import dropout, split_seed, uniform
from bert_tf.objectives.base import Batch, LabelHead

_TINY = 1e-30       # keeps the logarithm finite where all turns give a class no probability


@register
class StochasticAnswer(LabelHead):
    """A class of a pair of texts, found in several turns. The state begins as a summary of the
    first text; each turn reads the second text with the state of the turn before. The answer is the
    mean of the turns' probabilities.

    In training each turn is dropped at a rate, but for one drawn for each example. Dropout has one
    mask for all positions of a sequence.

    Args:
        num_labels: C, 2 or more.
        turns: K, 1 or more.
        turn_dropout: the rate at which turns are dropped in training, from 0 to below 1.
    """

    source = "sequence_output"
    sequences = ("segment_ids",)
    config_keys = ("turns", "turn_dropout")

    def __init__(self, config: Sizes, num_labels: int, turns: int = 5, turn_dropout: float = 0.1,
                 **kwargs: Any):
        if num_labels < 2:
            raise InputError("a stochastic answer network needs 2 labels or more, not "
                             f"{num_labels}: the softmax over one label is constant; use a linear "
                             "head.")
        self.turns, self.turn_dropout = turns, turn_dropout
        super().__init__(config, num_labels, **kwargs)

    def build(self, input_shape: Any = None) -> None:
        width = self.config.hidden_size
        of_torch = [keras.initializers.RandomUniform(-width**-0.5, width**-0.5) for _ in range(3)]
        self.query = self.dense(1, "query")
        self.attention = self.dense(width, "attention")
        self.gru = keras.layers.GRUCell(
            width, kernel_initializer=of_torch[0], recurrent_initializer=of_torch[1],
            bias_initializer=of_torch[2], reset_after=True, name="gru", dtype=self.dtype_policy)
        for layer in (self.query, self.attention, self.gru):
            layer.build((None, width))
        self.classifier.build((None, 4 * width))

    def call(self, outputs: Mapping[str, Tensor], batch: Batch,
             embedding_table: Tensor | None = None, dropout_seed: Tensor | None = None) -> Tensor:
        """`sequence_output`, float [B, S, H], and `input_mask` and `segment_ids`, integer [B, S] ->
        float32 [B, C], logs of mean probabilities."""
        x = outputs["sequence_output"]
        kept_seed, query_seed, *seeds = split_seed(dropout_seed, 2 + 4 * self.turns)
        mask, second = (ops.cast(batch[name], "bool") for name in ("input_mask", "segment_ids"))
        first = ops.logical_and(mask, ops.logical_not(second))
        second = ops.logical_and(mask, second)
        # Where the second text is empty, all tokens are read, but no padding.
        second = ops.where(ops.any(second, axis=1, keepdims=True), second, mask)
        q = dropout(x, self.dropout_rate, query_seed, shared=1)
        weights = self._softmax(ops.squeeze(self.query(q), -1), first)              # [B, S]
        state = ops.sum(weights[:, :, None] * q, axis=1)                            # [B, H]
        probabilities = []
        for turn in range(self.turns):
            of_turn = seeds[4 * turn:4 * turn + 4]
            asked = self.attention(dropout(state, self.dropout_rate, of_turn[0]))
            m = dropout(x, self.dropout_rate, of_turn[1], shared=1)
            weights = self._softmax(ops.einsum("bsh,bh->bs", m, asked), second)
            read = ops.sum(weights[:, :, None] * x, axis=1)                         # [B, H]
            both = ops.concatenate([read, state, ops.abs(read - state), read * state], axis=-1)
            scores = self.classifier(dropout(both, self.dropout_rate, of_turn[2]))
            probabilities.append(ops.softmax(ops.cast(scores, "float32")))          # [B, C]
            state, _ = self.gru(read, [dropout(state, self.dropout_rate, of_turn[3])])
        of_turns = ops.stack(probabilities, axis=1)                                    # [B, K, C]
        if kept_seed is not None:
            of_turns = of_turns * self.kept_turns(ops.shape(of_turns)[0], kept_seed)[:, :, None]
        return ops.log(ops.mean(of_turns, axis=1) + _TINY)

    def _softmax(self, scores, mask):
        """Softmax over a mask's positions, [B, S]."""
        scores = ops.where(mask, ops.cast(scores, "float32"), -1e30)
        return ops.cast(ops.softmax(scores), self.compute_dtype)

    def kept_turns(self, rows: Any, seed: Tensor) -> Tensor:
        """The turns' weights in training, float32 [rows, K]; one that is drawn counts always."""
        chosen, others = split_seed(seed, 2)
        stays = uniform((rows, self.turns), others) >= self.turn_dropout
        turn = ops.cast(ops.floor(uniform((rows,), chosen) * self.turns), "int32")
        sure = ops.one_hot(turn, self.turns, dtype="bool")
        return ops.cast(ops.logical_or(stays, sure), "float32") / (1 - self.turn_dropout)
