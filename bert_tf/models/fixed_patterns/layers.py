"""Attention heads with fixed patterns in place of learned ones (Raganato et al., arXiv:2002.10260).

The authors' code is not public. The paper leaves open a row's weights, and rows without a target;
this file chooses one reading.
"""

import keras
from keras import ops

from bert_tf.bert.layers import SelfAttention, join_heads, split_heads
from bert_tf.config import PATTERNS
from bert_tf.layers.base import Tensor
from bert_tf.layers.encoder import EncoderLayer
from bert_tf.layers.functions import dropout, plus

_LOOK_BACK = ("previous", "left")


def fixed_patterns(input_mask: Tensor, names: tuple[str, ...] = PATTERNS, empty_rows: str = "end",
                   token_boundary: Tensor | None = None) -> Tensor:
    """Returns the maps of fixed heads for texts of n tokens, n being each text's own.

    Row i of the pattern "left" has weights (j + 1)^3 for j <= i - 2, "right" (n - j)^3 for j >= i +
    2, "end" (j + 1)^3 and "start" (n - j)^3 for all j; rows are scaled to the sum 1.

    Args:
        input_mask: integer [B, S], 1 for tokens and 0 for padding, which follows them.
        names: F of `config.PATTERNS`.
        empty_rows: the target of a row without one, such as the first of "previous": "end", the
            first token, or for patterns that look ahead the last one; "zero", none.
        token_boundary: integer [B, S], 1 where a word begins. With it, i, j and n count words; the
            tokens of a word look alike, and share the weight on it equally.

    Returns:
        float32 [B, F, S, S], 0 in rows and columns of padding.
    """
    mask = ops.cast(input_mask, "float32")                              # [B, S]
    real = mask[:, :, None] * mask[:, None, :]                          # [B, S, S]
    if token_boundary is None:
        place = ops.arange(ops.shape(mask)[1], dtype="float32")[None]   # [1, S]
        share = real
    else:
        begins = ops.cast(token_boundary, "float32") * mask
        place = ops.maximum(ops.cumsum(begins, 1) - 1, 0)               # [B, S]
        same = real * ops.cast(place[:, :, None] == place[:, None, :], "float32")
        share = real / ops.maximum(ops.sum(same, 1, keepdims=True), 1)
    i, j = place[:, :, None], place[:, None, :]
    length = 1 + ops.max(place * mask, 1)[:, None, None]                # [B, 1, 1]
    grows, falls = (j + 1) ** 3, (length - j) ** 3
    weights = {
        "current": lambda: ops.cast(j == i, "float32"),
        "previous": lambda: ops.cast(j == i - 1, "float32"),
        "next": lambda: ops.cast(j == i + 1, "float32"),
        "left": lambda: grows * ops.cast(j <= i - 2, "float32"),
        "right": lambda: falls * ops.cast(j >= i + 2, "float32"),
        "end": lambda: grows, "start": lambda: falls}
    maps = []
    for name in names:
        rows = weights[name]() * share                                  # [B, S, S]
        total = ops.sum(rows, -1, keepdims=True)                        # [B, S, 1]
        rows = rows / ops.where(total > 0, total, 1.0)
        if empty_rows == "end":
            nearest = ops.cast(j == (0.0 if name in _LOOK_BACK else length - 1), "float32")
            rows = ops.where(total > 0, rows, nearest * share)
        maps.append(rows)
    if not maps:
        return ops.zeros((*ops.shape(mask)[:1], 0, *ops.shape(real)[1:]))
    return ops.stack(maps, 1)


class FixedPatternAttention(SelfAttention):
    """`SelfAttention` with given maps for its first F heads, which have no queries and keys."""

    def make_projection(self, name: str) -> keras.layers.Dense | None:
        config = self.config
        width = config.hidden_size if name == "value" else config.learned_heads * config.head_size
        return self.dense(width, name) if width else None

    def call(self, x: Tensor, bias: tuple[Tensor | None, Tensor],     # type: ignore[override]
             dropout_seed: Tensor | None = None) -> tuple[Tensor, dict[str, Tensor]]:
        """See `SelfAttention.call`. `bias` holds the learned heads' bias, and the other heads'
        maps, float [B, F, S, S], without dropout. There are no `attention_scores`."""
        scores_bias, maps = bias
        probs = dropped = ops.cast(maps, self.compute_dtype)
        size = self.config.head_size
        if self.query and self.key:
            query = split_heads(self.query(x) * size**-0.5, size)       # [B, N - F, S, D]
            key = split_heads(self.key(x), size)
            scores = ops.matmul(query, ops.transpose(key, (0, 1, 3, 2)))
            scores = plus(ops.cast(scores, "float32"), scores_bias)     # [B, N - F, S, S]
            learned = ops.cast(ops.softmax(scores), self.compute_dtype)
            rate = self.config.attention_probs_dropout_prob
            dropped = ops.concatenate([probs, dropout(learned, rate, dropout_seed)], 1)
            probs = ops.concatenate([probs, learned], 1)                # [B, N, S, S]
        context = ops.matmul(dropped, split_heads(self.value(x), size))     # [B, N, S, D]
        return join_heads(context, self.config.hidden_size), {"attention_probs": probs}


class FixedPatternLayer(EncoderLayer):
    """A layer with `FixedPatternAttention`."""

    attention_class = FixedPatternAttention
