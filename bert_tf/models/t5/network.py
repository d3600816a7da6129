"""T5: an encoder and a decoder, or one of its language models (arXiv:1910.10683; tensorflow/mesh,
`transformer/transformer.py`).

Shapes: B batch, S tokens of the encoder, T tokens of the decoder, H width, N heads, L layers, V
vocabulary.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import keras
from keras import ops

from bert_tf.config import T5Config
from bert_tf.errors import InputError
from bert_tf.layers.base import Network, Tensor, register
from bert_tf.layers.functions import seed_of_pass, split_seed, vocabulary_logits
from bert_tf.models.fixed_patterns.layers import fixed_patterns
from bert_tf.models.t5 import generation
from bert_tf.models.t5.layers import T5Embeddings, T5Stack, hide, same_segment, truncated


def _outputs(stack):
    """The outputs of a stack's L layers; the last one is normed, as in transformers."""
    return [*(layer["feed_forward"] for layer in stack["layers"][:-1]), stack["output"]]


@register
class T5(Network):
    """An encoder and a decoder, or a decoder alone, with one table of words. Names of features are
    the original's in seqio; `also_reads` are of packed rows, and of a prefix LM's; `text_reads` of
    a text that is only encoded."""

    reads: tuple[str, ...] = ("encoder_input_tokens", "decoder_input_tokens")
    also_reads: tuple[str, ...] = ("encoder_segment_ids", "decoder_segment_ids",
                                   "decoder_causal_attention")
    text_reads = ("input_ids", "input_mask")
    outside = (*Network.outside, "decoder", "logits")

    def __init__(self, config: T5Config, name: str = "t5", **kwargs: Any):
        super().__init__(config, name=name, **kwargs)
        policy = self.dtype_policy
        self.embeddings = T5Embeddings(config, name="embeddings", dtype=policy)
        self.encoder_stack: Any = None
        if config.has_encoder:
            self.encoder_stack = T5Stack(config, True, name="encoder", dtype=policy)
        else:
            self.reads = self.reads[1:]
            self.also_reads = ("encoder_input_tokens", *self.also_reads[1:])
        self.decoder_stack = T5Stack(config, False, name="decoder", dtype=policy)
        self.logits_layer: Any = None
        if not config.tie_word_embeddings:
            self.logits_layer = self.dense(config.vocab_size, "logits", use_bias=False,
                                           initializer=truncated(config.initializer_factor))
        self.seed_generator = keras.random.SeedGenerator()
        self.build()

    # A method: Keras saves the layers that a property returns a second time.
    def attentions(self) -> dict[str, Any]:
        """The layers of attention by name, in the order of `head_mask`: "encoder 1" and those
        after it, "cross 1", from the decoder to the encoder, and "decoder 1"."""
        kinds = [("encoder", self.encoder_stack, "attention"),
                 ("cross", self.encoder_stack and self.decoder_stack, "cross_attention"),
                 ("decoder", self.decoder_stack, "attention")]
        return {f"{kind} {number}": getattr(layer, part) for kind, stack, part in kinds if stack
                for number, layer in enumerate(stack.layers_, 1)}

    def _masks(self, head_mask):
        """The masks of the encoder's and the decoder's layers: a pair for each layer. A layer
        without attention to the encoder ignores the second mask of its pair."""
        if head_mask is None:
            return None, None
        of = dict(zip(self.attentions(), head_mask))
        return tuple([(of[f"{stack} {number}"], of.get(f"cross {number}"))
                      for number in range(1, layers + 1)]
                     for stack, layers in ({"encoder": 0} | self.config.stacks).items())

    def encode(self, tokens: Tensor, segments: Tensor | None = None,
               dropout_seed: Tensor | None = None, head_masks: Any = None) -> dict[str, Any]:
        """Runs the encoder on tokens, integer [B, S], padded with 0. `segments` of packed rows,
        integer [B, S], are the number of each token's example from 1 on, 0 for padding; None: one
        example a row.

        Returns:
            `output`, float [B, S, H], 0 for padding; `segments`, integer [B, S]; `embeddings`;
                `layers`, see `T5Stack`.
        """
        seeds = split_seed(dropout_seed, 2)
        if segments is None:
            segments = ops.cast(ops.not_equal(tokens, 0), "int32")
            visible = ops.not_equal(segments, 0)[:, None, None, :]
        else:
            segments = ops.cast(segments, "int32")
            visible = same_segment(segments, segments)
        fixed = self.config.fixed_heads
        x = self.embeddings(tokens, seeds[0])
        outputs = self.encoder_stack(
            x, hide(visible), dropout_seed=seeds[1], head_masks=head_masks,
            maps=fixed_patterns(segments, fixed) if fixed else None)
        is_token = ops.cast(ops.not_equal(segments, 0), outputs["output"].dtype)
        return {**outputs, "output": outputs["output"] * is_token[:, :, None],
                "segments": segments, "embeddings": x}

    def decode(self, tokens: Tensor, encoded: Mapping[str, Any] | None = None,
               segments: Tensor | None = None, seen: Tensor | None = None,
               dropout_seed: Tensor | None = None, head_masks: Any = None) -> dict[str, Any]:
        """Runs the decoder on all positions at once. Returns `T5Stack`'s dict, with `embeddings`.

        Args:
            tokens: integer [B, T], the targets, shifted right by one.
            encoded: result of `encode`.
            segments: integer [B, T], for packed rows, see `encode`.
            seen: integer [B, T], for a prefix LM: 1 for the positions that see each other on both
                sides, and that all later ones see.
            head_masks: see `T5Stack`.
        """
        seeds, places = split_seed(dropout_seed, 2), ops.arange(ops.shape(tokens)[1])[None]
        if seen is not None and self.config.architecture == "prefix_lm":
            # As in the original, a query sees keys of its own priority or a lower one.
            places = ops.where(ops.cast(seen, "bool"), 0, places)                   # [B, T]
        visible = places[:, None, None, :] <= places[:, None, :, None]              # [B, 1, T, T]
        memory = memory_bias = None
        if segments is not None:
            visible = ops.logical_and(visible, same_segment(segments, segments))
        if encoded is not None:
            memory, keys = encoded["output"], encoded["segments"]
            if segments is None:
                visible_keys = ops.not_equal(keys, 0)[:, None, None, :]
            else:
                visible_keys = same_segment(segments, keys)
            memory_bias = hide(visible_keys)
        x = self.embeddings(tokens, seeds[0])
        outputs = self.decoder_stack(x, hide(visible), memory, memory_bias, seeds[1], head_masks)
        return {**outputs, "embeddings": x}

    def logits(self, x: Tensor) -> Tensor:
        """float [..., H], the decoder's output -> float32 [..., V]."""
        if self.logits_layer:
            return ops.cast(self.logits_layer(x), "float32")
        return vocabulary_logits(x * self.config.logit_scale, self.embedding_table)

    def encode_text(self, ids: Tensor, mask: Tensor, dropout_seed: Tensor | None = None,
                    return_attention: bool = False) -> dict[str, Any]:
        """The vectors of a text, ids and mask integer [B, S], in the form of other networks:
        `sequence_output` [B, S, H], 0 for padding; `pooled_output` [B, H], its mean over the tokens
        (arXiv:2108.08877); `embedding_output`; `layer_outputs`, a list of L; and on request
        `attention_probs`, the encoder's, a list of L [B, N, S, S]."""
        encoded = self.encode(ids, mask, dropout_seed)
        x = encoded["output"]
        count = ops.maximum(ops.sum(ops.cast(mask, x.dtype), axis=1, keepdims=True), 1)
        outputs = {"sequence_output": x, "pooled_output": ops.sum(x, axis=1) / count,
                   "embedding_output": encoded["embeddings"], "layer_outputs": _outputs(encoded)}
        if return_attention:
            outputs["attention_probs"] = [layer["probs"] for layer in encoded["layers"]]
        return outputs

    def _go_on(self, inputs, dropout_seed, head_masks):
        """`call` for the targets of a language model that reads the inputs first."""
        tokens, targets = inputs["encoder_input_tokens"], inputs["decoder_input_tokens"]
        joined, seen, places = generation.join(tokens, targets)
        decoded = self.decode(joined, seen=seen, dropout_seed=dropout_seed, head_masks=head_masks)
        layers = [ops.take_along_axis(values, places[:, :, None], axis=1)
                  for values in _outputs(decoded)]
        return {"sequence_output": layers[-1], "layer_outputs": layers, **self._output_table()}

    def _output_table(self):
        """Returns {"output_table": [V, H]} if tokens are not predicted by the embeddings."""
        if not self.logits_layer:
            return {}
        return {"output_table": ops.transpose(self.logits_layer.kernel)}

    def generate(self, tokens: Tensor, length: int, beams: int = 1, alpha: float = 0.6) -> Tensor:
        """Generates the sequence that follows each input; keys and values are computed once.
        Returns int32 [B, T]: tokens up to the end, 1, and then 0.

        Args:
            tokens: the encoder's, or the ones that a language model continues, integer [B, S],
                padded with 0 on the right.
            length: T, the most tokens of a result.
            beams: how many beginnings are kept; 1: the likeliest token each time.
            alpha: of the length penalty, with several beams; 0 for none.
        """
        return generation.generate(self, tokens, length, beams, alpha)

    def call(self, inputs: Mapping[str, Tensor], training: bool = False,
             dropout_seed: Tensor | None = None, return_attention: bool = False,
             head_mask: Sequence | None = None) -> dict[str, Any]:
        """Returns named tensors.

        Args:
            inputs: integer `encoder_input_tokens` [B, S] and `decoder_input_tokens` [B, T], padded
                with 0. Without an encoder the first may be absent; otherwise the targets continue
                it in one row, and a prefix LM sees it on both sides. Packed rows have
                `encoder_segment_ids` and `decoder_segment_ids`; a prefix LM without the inputs
                `decoder_causal_attention` [B, T], 1 where tokens are seen from both sides. Others
                are ignored. Or for the encoder alone `input_ids` and `input_mask` [B, S].
            training: whether to apply dropout.
            dropout_seed: see `BertEncoder.call`.
            return_attention: whether to return the attention probabilities too.
            head_mask: for each of `attentions` float [N], a factor for each head's output; or float
                that broadcasts to [B, N, Q, D]. A text alone has none.

        Returns:
            `encode_text`'s dict for a text alone. Else the decoder's `sequence_output` [B, T, H];
            `encoder_output` [B, S, H]; `layer_outputs` and `encoder_layer_outputs`, lists of L;
            `output_table` [V, H], which predicts tokens, if the embeddings do not; and on request
            `attention_probs`, `cross_attention_probs` and `encoder_attention_probs`, lists of L.
        """
        dropout_seed = seed_of_pass(dropout_seed, training, self.seed_generator)
        if "decoder_input_tokens" not in inputs:
            return self.encode_text(inputs["input_ids"], inputs["input_mask"], dropout_seed,
                                    return_attention)
        if not self.encoder_stack and "encoder_input_tokens" in inputs:
            return self._go_on(inputs, dropout_seed, self._masks(head_mask)[1])
        if self.config.fixed_heads and "encoder_segment_ids" in inputs:
            raise InputError("fixed_heads count the tokens of a row, which must be one example; "
                             "make records without --pack.")
        of_encoder, of_decoder = self._masks(head_mask)
        seeds, outputs, encoded = split_seed(dropout_seed, 2), {}, None
        if self.encoder_stack:
            encoded = self.encode(inputs["encoder_input_tokens"],
                                  inputs.get("encoder_segment_ids"), seeds[0], of_encoder)
            outputs = {"encoder_output": encoded["output"],
                       "encoder_layer_outputs": _outputs(encoded)}
        decoded = self.decode(
            inputs["decoder_input_tokens"], encoded, inputs.get("decoder_segment_ids"),
            inputs.get("decoder_causal_attention"), seeds[1], of_decoder)
        outputs |= {"sequence_output": decoded["output"], "layer_outputs": _outputs(decoded)}
        outputs |= self._output_table()
        if return_attention:
            outputs["attention_probs"] = [layer["probs"] for layer in decoded["layers"]]
            if encoded:
                outputs["cross_attention_probs"] = [
                    layer["cross_probs"] for layer in decoded["layers"]]
                outputs["encoder_attention_probs"] = [layer["probs"] for layer in encoded["layers"]]
        return outputs
