"""The Universal Transformer's encoder: one layer, applied many times (arXiv:1807.03819;
tensorflow/tensor2tensor, `models/research/universal_transformer_util.py`).

Shapes: B batch, S sequence, H hidden, N heads, T steps, V vocabulary.
"""

from collections.abc import Mapping
from typing import Any

import keras
from keras import ops

from bert_tf.bert.layers import LayerNorm, check_length, padding_bias
from bert_tf.config import UniversalConfig
from bert_tf.layers.base import Network, Tensor, register
from bert_tf.layers.changes import of_layer
from bert_tf.layers.functions import plus, seed_of_pass, split_seed
from bert_tf.models.universal.layers import Halting, ScaledEmbeddings, UniversalLayer

_PADDING = -1e9         # added to the scores of padding
# The outputs of `SelfAttention` for each step.
_MAPS = ("attention_probs", "attention_scores")


@register
class UniversalTransformer(Network):
    """An encoder that is recurrent in depth: every step applies the same layer to all positions.

    Before each step, signals of the position and of the step are added, which stay in the vectors.
    With `recurrence_type="act"` each position ends by itself, after at most T steps. All T steps
    are computed for all positions then too, so that only the result depends on the data.

    Only the first feature of `reads` is required.
    """

    reads = ("input_ids", "input_mask", "segment_ids")

    def __init__(self, config: UniversalConfig, name: str = "bert", **kwargs: Any):
        super().__init__(config, name=name, **kwargs)
        policy = self.dtype_policy
        self.embeddings = ScaledEmbeddings(config, name="embeddings", dtype=policy)
        self.shared_layer = UniversalLayer(config, name="layer_0", dtype=policy)
        self.norm = LayerNorm(config, dtype=policy)
        self.pooler = self.dense(config.hidden_size, activation="tanh")
        self.seed_generator = keras.random.SeedGenerator()
        self.build()

    def call(self, inputs: Mapping[str, Tensor], training: bool = False,
             dropout_seed: Tensor | None = None, attention_bias: Tensor | None = None,
             head_mask: Tensor | None = None, return_attention: bool = False) -> dict[str, Any]:
        """Returns named tensors. See `BertEncoder.call` for the arguments; `attention_bias` is
        added in every step, and `head_mask` is float [T, N].

        Returns:
            `sequence_output` [B, S, H], `pooled_output` [B, H], `embedding_output` [B, S, H], and
            the outputs of `take_steps`.

        Raises:
            ValueError: S is larger than `max_position_embeddings`.
        """
        check_length(inputs["input_ids"], self.config)
        dropout_seed = seed_of_pass(dropout_seed, training, self.seed_generator)
        seed, of_steps = split_seed(dropout_seed, 2)
        bias = attention_bias
        if inputs.get("input_mask") is not None:
            padding = padding_bias(inputs["input_mask"], _PADDING)      # [B, 1, 1, S]
            bias = plus(padding, bias)
        x = self.embeddings(inputs["input_ids"], inputs.get("segment_ids"), seed)
        outputs = {"embedding_output": x, **self.take_steps(x, bias, head_mask, of_steps)}
        if not return_attention:
            outputs = {name: value for name, value in outputs.items() if name not in _MAPS}
        outputs["sequence_output"] = outputs["layer_outputs"][-1]
        outputs["pooled_output"] = self.pooler(outputs["sequence_output"][:, 0])
        return outputs

    def take_steps(self, x: Tensor, bias: Tensor | None = None, head_mask: Tensor | None = None,
                   dropout_seed: Tensor | None = None) -> dict[str, Any]:
        """Takes all steps from embeddings, float [B, S, H]. `bias`, float, broadcast to [B, N, S,
        S], is added to every step's attention scores; no dropout if the seed is None.

        Returns:
            `layer_outputs`, list of T [B, S, H], the network's output if it ended after each step;
                the maps of `SelfAttention`, lists of T [B, N, S, S]; and, with adaptive halting,
                `ponder_times` and `remainders`, float32 [B, S] (see `Halting`).
        """
        outputs: dict[str, Any] = {"layer_outputs": [], **{name: [] for name in _MAPS}}
        layer = self.shared_layer
        halting = Halting(self.config, x) if self.config.halts else None
        seeds, result = split_seed(dropout_seed, self.config.depth), ops.zeros_like(x)
        for step in range(self.config.depth):
            x = layer.add_signals(x, step)
            if halting:
                ends = layer.halting(ops.cast(x, "float32"))[:, :, 0]               # [B, S]
                weights = halting.take_step(ends)
            x, maps = layer(x, bias, of_layer(head_mask, step), seeds[step])
            result = x if halting is None else halting.mix(result, x, weights)
            outputs["layer_outputs"].append(self.norm(result))
            for name in _MAPS:
                outputs[name].append(maps[name])
        if halting:
            outputs |= {"ponder_times": halting.ponder_times, "remainders": halting.remainders}
        return outputs
