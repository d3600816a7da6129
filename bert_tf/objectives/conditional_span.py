"""The answer to a question as a part of a passage, and whether there is an answer.

The end is predicted from the start (zihangdai/xlnet function_builder.py, get_qa_outputs;
google-research/albert run_squad_v2.py, create_v2_model; google-research/electra
finetune/qa/qa_tasks.py).

Shapes: B batch, S sequence, H hidden, Q width of the head's hidden layers, K starts, E ends.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from keras import ops

from bert_tf.bert.layers import LayerNorm
from bert_tf.config import EncoderConfig
from bert_tf.errors import InputError
from bert_tf.layers.base import Tensor, register
from bert_tf.layers.functions import ACTIVATIONS, argmax, cross_entropy, dropout, last_token
from bert_tf.objectives.base import Batch, Objective, example_weights, ratio
from bert_tf.objectives.divergences import binary


@dataclasses.dataclass(frozen=True)
class Form:
    """The details of a system's head.

    Attributes:
        width: Q; H if None.
        activation: of the hidden layers.
        normalizes: whether the ends' hidden layer is normalised.
        start_first: whether the start's vector precedes the token's own. The answerability layer
            has the other order: [CLS], then the starts.
        dropout_rate: of the answerability layer.
        has_bias: whether the last answerability layer has a bias.
        allows_separator: whether the last [SEP] may be a start or an end.
        mask: subtracted from the logits of positions that can be neither.
        class_last: whether [CLS] is the last token and the passage the first segment; otherwise
            [CLS] is the first token and the passage the second segment.
    """

    width: int | None
    activation: str
    normalizes: bool
    start_first: bool
    dropout_rate: float
    has_bias: bool
    allows_separator: bool
    mask: float
    class_last: bool = False

    def allowed(self, batch: Batch) -> Tensor:
        """bool [B, S]: the positions that may be a start or an end, the passage and [CLS]."""
        mask = ops.cast(batch["input_mask"], "int32")
        segment = ops.cast(batch["segment_ids"], "int32")
        passage = ops.logical_and(mask > 0, ops.equal(segment, 0) if self.class_last
                                  else segment > 0)
        places = ops.expand_dims(ops.arange(ops.shape(mask)[1], dtype="int32"), 0)  # [1, S]
        if not self.allows_separator:
            last = ops.max(ops.cast(passage, "int32") * places, axis=1, keepdims=True)  # [B, 1]
            passage = ops.logical_and(passage, places < last)
        of_class = ops.max(mask * places, axis=1, keepdims=True) if self.class_last else 0
        return ops.logical_or(passage, ops.equal(places, of_class))

    def masked(self, logits: Tensor, allowed: Tensor) -> Tensor:
        """float32 logits [..., S], lowered where `allowed` [..., S] is false."""
        logits, allowed = ops.cast(logits, "float32"), ops.cast(allowed, "float32")
        if self.mask > 1e20:      # so much that nothing of the logit is left
            logits = logits * allowed
        return logits - self.mask * (1.0 - allowed)


FORMS = {
    "albert": Form(None, "tanh", True, False, 0.1, False, False, 1e30),
    "electra": Form(512, "gelu_erf", False, True, 0.0, True, True, 1000.0),
    "xlnet": Form(None, "tanh", True, False, 0.1, False, False, 1e30, True),
}


@register
class ConditionalSpan(Objective):
    """The first and the last token of the answer, and whether there is an answer.

    In training, ends are predicted from the labelled start; otherwise from each of the likeliest
    starts, which gives beams. Labels: `start_positions`, `end_positions` and `is_impossible`,
    integer [B]. An example's loss is the mean of its two ends' losses, plus half of its
    `is_impossible` loss.

    Args:
        form: a key of `FORMS`.
        joint: whether ends are predicted from starts, not from the tokens alone.
        uses_starts: whether the answerability layer reads the starts; else it is dense on [CLS].
        num_starts, num_ends: K and E, the width of the beam.
        dropout_rate: of the answerability layer; None: the form's.
    """

    reads = ("start_positions", "end_positions", "is_impossible")
    source = "sequence_output"
    sequences = ("segment_ids",)
    config_keys = ("form", "joint", "uses_starts", "num_starts", "num_ends", "dropout_rate")
    output_shape = (None, None)
    scopes = {**dict.fromkeys(("end_hidden", "end_norm", "end"), "end"),
              **dict.fromkeys(("answerable_hidden", "answerable"), "answerable")}

    def __init__(self, config: EncoderConfig, form: str = "albert", joint: bool = True,
                 uses_starts: bool = True, num_starts: int = 5, num_ends: int = 5,
                 dropout_rate: float | None = None, **kwargs: Any):
        if config.is_causal:
            raise InputError("the head reads the first token, but in a left-to-right network the "
                             "first token sees no other; give --squad_style=bert.")
        super().__init__(config, **kwargs)
        self.form, self.joint, self.uses_starts = form, joint, uses_starts
        self.num_starts, self.num_ends = num_starts, num_ends
        self._form = FORMS[form]
        self.dropout_rate = self._form.dropout_rate if dropout_rate is None else dropout_rate
        initializer, width = config.head_initializer, self._form.width or config.hidden_size
        self.start = self.dense(1, name="start", initializer=initializer)
        self.end = self.dense(1, initializer=initializer, inputs=joint * width or None)
        self.answerable = self.dense(1, initializer=initializer,
                                     inputs=uses_starts * width or None)
        self.answerable.use_bias = self._form.has_bias or not uses_starts
        hidden = {"units": width, "name": "hidden", "inputs": 2 * config.hidden_size,
                  "activation": ACTIVATIONS[self._form.activation], "initializer": initializer}
        self.end_hidden = self.dense(**hidden) if joint else None
        self.end_norm = (LayerNorm(config, dtype=self.dtype_policy)
                         if joint and self._form.normalizes else None)
        self.answerable_hidden = self.dense(**hidden) if uses_starts else None
        self.build()

    def call(self, outputs: Mapping[str, Tensor], batch: Batch,
             embedding_table: Tensor | None = None, dropout_seed: Tensor | None = None
             ) -> dict[str, Tensor]:
        """Returns float32 logits and, without dropout, beams.

        Args:
            batch: with `input_mask` and `segment_ids`, integer [B, S]; with `start_positions` to
                measure the loss.
            dropout_seed: integer [2]; None gives beams.

        Returns:
            `start` [B, S]; `answerable` [B], high where there is no answer; `end` [B, S] if the
            batch has starts; and of beams `start_top_log_probs` [B, K], `end_top_log_probs`
            [B, K, E] with `start_top_index` and `end_top_index`, int32.
        """
        x = outputs["sequence_output"]
        allowed = self._form.allowed(batch)                                     # [B, S]
        start = self._form.masked(self.start(x)[..., 0], allowed)                    # [B, S]
        whole = last_token(x, batch["input_mask"]) if self._form.class_last else x[:, 0]
        answers = {"start": start, "answerable": self._answerable(x, whole, start, dropout_seed)}
        if "start_positions" in batch:
            gold = ops.reshape(batch["start_positions"], (-1, 1))
            answers["end"] = self._ends(x, gold, allowed)[:, 0]
        if dropout_seed is None:
            # A short sequence has fewer positions than the beam.
            last = ops.shape(x)[1] - 1
            answers |= _beams(
                start, lambda starts: self._ends(x, ops.minimum(starts, last), allowed),
                self.num_starts, self.num_ends)
        return answers

    def _ends(self, x, starts, allowed):
        """float32 logits [B, K, S] of the ends, for starts [B, K]."""
        if self.end_hidden is None:
            ends = ops.expand_dims(self.end(x)[..., 0], 1)                      # [B, 1, S]
        else:
            places = ops.expand_dims(ops.cast(starts, "int32"), -1)
            vectors = ops.expand_dims(ops.take_along_axis(x, places, axis=1), 2)    # [B, K, 1, H]
            own = ops.expand_dims(x, 1)                                         # [B, 1, S, H]
            hidden = _joined(self.end_hidden, vectors, own, self._form.start_first) # [B, K, S, Q]
            if self.end_norm is not None:
                hidden = self.end_norm(hidden)
            ends = self.end(hidden)[..., 0]
        return self._form.masked(ends, ops.expand_dims(allowed, 1))

    def _answerable(self, x, whole, start, seed):
        """float32 logits [B] of "no answer", from the vectors of [CLS], [B, H]."""
        if self.answerable_hidden is not None:
            likely = ops.cast(ops.softmax(start), x.dtype)                      # [B, S]
            summary = ops.sum(ops.expand_dims(likely, -1) * x, axis=1)          # [B, H]
            hidden = _joined(self.answerable_hidden, whole, summary, self._form.start_first)
            whole = dropout(hidden, self.dropout_rate, seed)
        return ops.cast(self.answerable(whole)[..., 0], "float32")

    def targets(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Labels [B, 3], in the order of `reads`, and weights [B]."""
        labels = ops.stack([ops.reshape(batch[name], (-1,)) for name in self.reads], axis=1)
        return labels, example_weights(batch, labels[:, 0])

    def loss(self, logits: Mapping[str, Tensor], labels: Tensor, weights: Tensor
             ) -> tuple[Tensor, Tensor]:
        """Returns the weighted sum of the examples' losses, and the sum of the weights, from
        `call`'s result, labels [B, 3] and weights [B]."""
        spans = [cross_entropy(labels[:, i], logits[name])
                 for i, name in enumerate(("start", "end"))]                    # [B] each
        odds, impossible = logits["answerable"], ops.cast(labels[:, 2], "float32")
        # The cross-entropy of a sigmoid.
        decision = ops.softplus(odds) - odds * impossible
        return ratio(0.5 * (spans[0] + spans[1]) + 0.5 * decision, weights)

    def divergence(self, logits: Mapping[str, Tensor], other: Mapping[str, Tensor],
                   weights: Tensor, form: str) -> Tensor:
        """The parts have the weights that they have in the loss."""
        def of(name, convert=lambda x: x):
            return super(ConditionalSpan, self).divergence(
                convert(logits[name]), convert(other[name]), weights, form)
        return 0.5 * (of("start") + of("end") + of("answerable", binary))

    def accuracy(self, logits: Mapping[str, Tensor], labels: Tensor, weights: Tensor
                 ) -> tuple[Tensor, Tensor]:
        """Returns the weighted mean of right starts and right ends, and the sum of the weights."""
        right = [ops.cast(ops.equal(argmax(logits[name]), ops.cast(labels[:, i], "int32")),
                          "float32")
                 for i, name in enumerate(("start", "end"))]
        return ratio(0.5 * (right[0] + right[1]), weights)

    def answers(self, logits: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The beams, and `answerable_logits` [B]."""
        beams = {name: logits[name] for name in logits if "_top_" in name}
        return {**beams, "answerable_logits": logits["answerable"]}


def _beams(start, ends_of, num_starts, num_ends):
    """The likeliest starts by their logits [B, S], and each start's likeliest ends. `ends_of` makes
    logits [B, K, S] of starts [B, K]; [B, 1, S] where they are the same for all starts."""
    log_probs, starts = _top(ops.log_softmax(start), num_starts)
    end_log_probs, ends = _top(ops.log_softmax(ends_of(starts)), num_ends)
    shape = (ops.shape(start)[0], num_starts, num_ends)
    return {"start_top_log_probs": log_probs, "start_top_index": starts,
            "end_top_log_probs": ops.broadcast_to(end_log_probs, shape),
            "end_top_index": ops.broadcast_to(ends, shape)}


def _joined(layer, first, second, in_order):
    """Applies `layer` to two joined vectors [..., H], or the other way round, whose other axes
    broadcast."""
    if not in_order:
        first, second = second, first
    kernel, width = ops.cast(layer.kernel, first.dtype), first.shape[-1]
    return layer.activation(ops.matmul(first, kernel[:width]) + ops.matmul(second, kernel[width:])
                            + ops.cast(layer.bias, first.dtype))


def _top(values, count):
    """Returns the `count` largest values of the last axis and their places, int32. Places beyond a
    shorter axis's end have the lowest values."""
    padding = [(0, 0)] * (len(values.shape) - 1) + [(0, count)]
    values, places = ops.top_k(ops.pad(values, padding, constant_values=-1e31), count)
    return values, ops.cast(places, "int32")
