"""A class of two parts of a text, or of two texts, as the baselines of SuperGLUE read words
(arXiv:1905.00537, section 4.1; nyu-mll/jiant, SpanComparisonHead).

Shapes: B batch, S sequence, H hidden.
"""

from collections.abc import Mapping
from typing import Any

from keras import ops

from bert_tf.config import Sizes
from bert_tf.layers.base import Tensor, register
from bert_tf.layers.functions import dropout
from bert_tf.objectives.base import Batch, LabelHead

_FAR = -1e9


@register
class SpanComparison(LabelHead):
    """One of `num_labels` classes: logits [B, num_labels], labels `label_ids`, weights
    `is_real_example`. `span_starts` and `span_ends` [B, 2] are both parts' first and last tokens.

    The vector of a part is the mean of its tokens', weighted by a softmax over a learned score of
    each (arXiv:1707.07045, section 3). With `reads_cls` the pooled output precedes both vectors.
    """

    inputs = ("span_starts", "span_ends")
    reads = ("label_ids", *inputs)
    config_keys = ("reads_cls",)
    reads_tokens = True

    def __init__(self, config: Sizes, num_labels: int, reads_cls: bool = False, **kwargs: Any):
        self.reads_cls = reads_cls
        super().__init__(config, num_labels, **kwargs)

    def build(self, input_shape: Any = None) -> None:
        width = self.config.hidden_size
        self.attention = self.dense(1, "attention")
        self.attention.build((None, width))
        self.classifier.build((None, (2 + self.reads_cls) * width))

    def call(self, outputs: Mapping[str, Tensor], batch: Batch,
             embedding_table: Tensor | None = None, dropout_seed: Tensor | None = None) -> Tensor:
        """`sequence_output` [B, S, H] -> float32 logits [B, num_labels]."""
        x = outputs["sequence_output"]
        place = ops.arange(ops.shape(x)[1], dtype="int32")
        starts, ends = (ops.expand_dims(ops.cast(batch[name], "int32"), 2)
                        for name in self.inputs)                                # [B, 2, 1]
        inside = ops.logical_and(place >= starts, place <= ends)                # [B, 2, S]
        scores = ops.cast(self.attention(x), "float32")                         # [B, S, 1]
        scores = ops.where(inside, ops.transpose(scores, (0, 2, 1)), _FAR)
        shares = ops.cast(ops.softmax(scores), x.dtype)
        parts = ops.reshape(ops.matmul(shares, x), (-1, 2 * x.shape[-1]))       # [B, 2 * H]
        if self.reads_cls:
            parts = ops.concatenate([outputs["pooled_output"], parts], axis=-1)
        parts = dropout(parts, self.dropout_rate, dropout_seed)
        return ops.cast(self.classifier(parts), "float32")
