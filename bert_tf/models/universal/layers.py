"""The parts of the Universal Transformer's encoder (arXiv:1807.03819; tensorflow/tensor2tensor,
`models/research/universal_transformer_util.py`).

Shapes: B batch, S sequence, H hidden, N heads, F width of the feed-forward layer, T steps, V
vocabulary.
"""

from typing import Any

import keras
import numpy as np
from keras import ops

from bert_tf.bert.layers import LayerNorm, SelfAttention, segment_vectors
from bert_tf.config import UniversalConfig
from bert_tf.layers.base import Dense, FromConfig, Tensor
from bert_tf.layers.changes import mask_joined_heads
from bert_tf.layers.functions import ACTIVATIONS, dropout, split_seed

_LONGEST = 10_000.0     # the longest wave of a signal, in positions over 2 pi
# tensor2tensor's "uniform_unit_scaling".
_INITIALIZER = "glorot_uniform"


def timing_signal(count: int, width: int) -> np.ndarray:
    """Sines, then cosines of the numbers 0 to `count` - 1, float32 [count, width]; zeros fill the
    last column of an odd width (`common_attention.get_timing_signal_1d`)."""
    waves = width // 2
    step = np.float32(np.log(_LONGEST) / max(waves - 1, 1))
    slopes = np.exp(np.arange(waves, dtype="float32") * -step)
    angles = np.arange(count, dtype="float32")[:, None] * slopes
    signal = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    return np.pad(signal, ((0, 0), (0, width % 2)))


class ScaledEmbeddings(FromConfig, keras.layers.Layer):
    """The sum of word and segment embeddings, times the root of H; every step adds positions."""

    def build(self, input_shape: Any = None) -> None:
        config = self.config
        for name, rows in (("word_embeddings", config.vocab_size),
                           ("token_type_embeddings", config.type_vocab_size)):
            setattr(self, name, self.add_table(name, rows, keras.initializers.RandomNormal(
                stddev=config.hidden_size**-0.5)))

    def call(self, input_ids: Tensor, segment_ids: Tensor | None = None,
             dropout_seed: Tensor | None = None) -> Tensor:
        """integer [B, S] -> float [B, S, H]. Without `segment_ids`, all are 0."""
        x = ops.take(self.word_embeddings, input_ids, axis=0)                       # [B, S, H]
        x = x + segment_vectors(self.token_type_embeddings, segment_ids, x.dtype)
        x = ops.cast(x * self.config.hidden_size**0.5, self.compute_dtype)
        return dropout(x, self.config.hidden_dropout_prob, dropout_seed)


class UnbiasedAttention(SelfAttention):
    """Self-attention whose projections have no biases."""

    def make_projection(self, name: str) -> keras.layers.Dense:
        return self.dense(self.config.hidden_size, name, initializer=_INITIALIZER, use_bias=False)


class UniversalLayer(FromConfig, keras.layers.Layer):
    """The one layer, which every step applies, and the parts that differ between steps. Attention
    and feed-forward network are normalised before, not after the residual, as in tensor2tensor (not
    in the paper). Attributes that a configuration does not ask for are None."""

    scopes = {**dict.fromkeys(("attention_norm", "attention"), "attention"),
              "attention_output": "attention output", "intermediate": "intermediate",
              "output_": "output"}

    def __init__(self, config: UniversalConfig, **kwargs: Any):
        super().__init__(config, **kwargs)
        policy, width = self.dtype_policy, config.hidden_size
        self.attention_norm = LayerNorm(config, dtype=policy)
        self.attention = UnbiasedAttention(config, name="self", dtype=policy)
        self.attention_output = self.dense(width, initializer=_INITIALIZER, use_bias=False)
        self.norm = LayerNorm(config, dtype=policy)
        self.intermediate = self.dense(config.intermediate_size, initializer=_INITIALIZER,
                                       activation=ACTIVATIONS[config.hidden_act])
        self.output_ = self.dense(width, initializer=_INITIALIZER, inputs=config.intermediate_size)
        self.halting: Any = None
        if config.halts:
            self.halting = Dense(
                1, "sigmoid", name="halting", dtype="float32", kernel_initializer=_INITIALIZER,
                bias_initializer=keras.initializers.Constant(config.act_halting_bias_init))
        self.step_embeddings = None

    def build(self, input_shape: Any = None) -> None:
        super().build()
        config = self.config
        if config.step_timing_signal_type == "learned":
            self.step_embeddings = self.add_weight(
                (config.depth, config.hidden_size),
                keras.initializers.RandomNormal(stddev=config.hidden_size**-0.5),
                name="step_embeddings")

    def add_signals(self, x: Tensor, step: int) -> Tensor:
        """`x`, float [B, S, H], plus the signals of its positions and of the step."""
        config = self.config
        length, width = ops.shape(x)[1], config.hidden_size
        positions = ops.convert_to_tensor(timing_signal(config.max_position_embeddings, width))
        if self.step_embeddings is None:
            signal = timing_signal(config.depth, width)[step]                       # [H]
        else:
            signal = self.step_embeddings[step] * width**0.5
        return x + ops.cast(positions[:length] + signal, x.dtype)

    def call(self, x: Tensor, bias: Tensor | None = None, head_mask: Tensor | None = None,
             dropout_seed: Tensor | None = None) -> tuple[Tensor, dict[str, Tensor]]:
        """See `SelfAttention.call`; returns float [B, S, H], and its dict."""
        seeds, rate = split_seed(dropout_seed, 3), self.config.hidden_dropout_prob
        context, maps = self.attention(self.attention_norm(x), bias, seeds[0])
        context = mask_joined_heads(context, self.config.head_size, head_mask)
        x = x + dropout(self.attention_output(context), rate, seeds[1])             # [B, S, H]
        y = self.output_(self.intermediate(self.norm(x)))
        return x + dropout(y, rate, seeds[2]), maps


class Halting:
    """Adaptive computation time of each position (arXiv:1603.08983; `universal_transformer_act`),
    for vectors `like`, float [B, S, H].

    A position takes steps until its probabilities of ending add up to more than 1 - epsilon; the
    rest to 1 is its remainder, the weight of its last step. A position that has not ended after the
    last step of all has no remainder. `ponder_times`, float32 [B, S], are the steps that each has
    taken.
    """

    def __init__(self, config: UniversalConfig, like: Tensor):
        zeros = ops.zeros_like(like[:, :, 0], dtype="float32")
        self._sums = self.remainders = self.ponder_times = zeros
        self._threshold = 1.0 - config.act_epsilon
        self._accumulates = config.act_type == "accumulated"

    def take_step(self, probability: Tensor) -> Tensor:
        """The weights of this step, float32 [B, S], from the probability of ending there."""
        running = self._sums < 1.0
        crosses = self._sums + probability * ops.cast(running, "float32") > self._threshold
        last, goes_on = (ops.cast(ops.logical_and(running, chosen), "float32")
                         for chosen in (crosses, ops.logical_not(crosses)))
        self._sums = self._sums + probability * goes_on
        self.remainders = self.remainders + last * (1.0 - self._sums)
        self._sums = self._sums + last * self.remainders
        self.ponder_times = self.ponder_times + goes_on + last
        return probability * goes_on + last * self.remainders

    def mix(self, before: Tensor, x: Tensor, weights: Tensor) -> Tensor:
        """The output after a step, float [B, S, H], from the one before, its vectors and weights
        [B, S]."""
        weights = ops.cast(weights, x.dtype)[:, :, None]
        if not self._accumulates:
            before = before * (1 - weights)
        return x * weights + before
