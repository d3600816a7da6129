"""ELMo's two language models (arXiv:1802.05365; allenai/bilm-tf, bilm/training.py and model.py).

Shapes: B batch, S sequence, W characters of a word, P `projection_dim`, H = 2 * P, V vocabulary.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import keras
from keras import ops

from bert_tf.config import ElmoConfig
from bert_tf.layers.base import FromConfig, Network, Tensor, register
from bert_tf.layers.masks import last_token
from bert_tf.layers.seeds import dropout, seed_of_pass, split_seed
from bert_tf.models.recurrent.characters import CharacterCnn, unpack_spelling
from bert_tf.models.recurrent.lstm import Lstm, reverse_tokens
from bert_tf.spelling import spelling_names

WAYS = ("forward", "backward")


class WordTable(FromConfig, keras.layers.Layer):
    """Words in place of characters: a table [V, P]."""

    def build(self, input_shape: Any = None) -> None:
        self.table = self.add_weight(
            (self.config.vocab_size, self.config.projection_dim),
            keras.initializers.RandomUniform(-1, 1), name="word_embeddings")

    def call(self, input_ids: Tensor) -> Tensor:
        """integer [B, S] -> float [B, S, P]."""
        return ops.cast(ops.take(self.table, input_ids, axis=0), self.compute_dtype)


@register
class Elmo(Network):
    """LSTMs from left to right and others from right to left, on the same tokens.

    In pre-training, where there are `reverse_` features, each direction reads a text of its own,
    and `call` returns each direction's outputs, which predict the next token. Otherwise both
    directions read the same text from zero states, unless states are given: a sentence always has
    the same vectors, unlike in the original, which carries states from batch to batch.

    Attributes:
        reads: names of the features; only the first is required.
        also_reads: names of pre-training's features.
        carries: the states of the LSTMs, by name, with the shapes of one row.
    """

    def __init__(self, config: ElmoConfig, name: str = "elmo", **kwargs: Any):
        super().__init__(config, name=name, **kwargs)
        spelling = config.further_features
        kind = CharacterCnn if config.filters else WordTable
        self.embeddings: Any = kind(config, name="embeddings", dtype=self.dtype_policy)
        # Segments are for heads with two texts.
        self.reads = ("input_ids", "input_mask", "segment_ids", *spelling)
        self.also_reads = ("reverse_input_ids", *(f"reverse_{name}" for name in spelling))
        self.lstms = {way: [Lstm(
            config.projection_dim, config.dim, config.projection_dim * config.projects, 1.0,
            config.cell_clip, config.proj_clip, name=f"{way}_{i}", dtype=self.dtype_policy)
            for i in range(config.n_layers)] for way in WAYS}
        self.carries = {lstm.name: (lstm.state_size,)
                        for lstms in self.lstms.values() for lstm in lstms}
        self.seed_generator = keras.random.SeedGenerator()
        self.build()

    def build(self, input_shape: Any = None) -> None:
        self.embeddings.build()
        with keras.name_scope("encoder"):
            for way in WAYS:
                for lstm in self.lstms[way]:
                    lstm.build()

    @property
    def embedding_table(self) -> keras.Variable:
        """The variable of the embeddings: of characters, or [V, P] of words."""
        return self.embeddings.table

    def embed(self, inputs: Mapping[str, Tensor], prefix: str = "") -> Tensor:
        """Returns the tokens, float [B, S, P]."""
        if not self.config.filters:
            return self.embeddings(inputs[f"{prefix}input_ids"])
        if f"{prefix}char_ids" in inputs:
            return self.embeddings(inputs[f"{prefix}char_ids"])
        size = self.config.max_characters_per_token
        return self.embeddings(unpack_spelling(
            [inputs[prefix + name] for name in spelling_names(size)], size))

    def run(self, way: str, x: Tensor, mask: Tensor | None = None,
            carried: Mapping[str, Tensor] = MappingProxyType({}),
            seeds: Any = None) -> tuple[list[Tensor], dict[str, Tensor]]:
        """Runs one direction's LSTMs.

        Args:
            way: one of `WAYS`.
            x: tokens in reading order, float [B, S, P].
            mask: boolean [B, S], whether there is a token.
            carried: see `call`.
            seeds: of dropout, one an LSTM and one for the last output.

        Returns:
            each LSTM's output, float [B, S, P], and the states after the last step.
        """
        rate, outputs, states = self.config.hidden_dropout_prob, [], {}
        seeds = seeds or [None] * (len(self.lstms[way]) + 1)
        for i, lstm in enumerate(self.lstms[way]):
            x = dropout(x, rate, seeds[i])
            y, state = lstm(x, mask, carried.get(lstm.name))
            states[lstm.name] = ops.cast(ops.stop_gradient(state), "float32")
            x = y + x if i and self.config.use_skip_connections else y
            outputs.append(x)
        outputs[-1] = dropout(outputs[-1], rate, seeds[-1])
        return outputs, states

    def call(self, inputs: Mapping[str, Tensor], training: bool = False,
             dropout_seed: Tensor | None = None) -> dict[str, Any]:
        """Returns named tensors.

        Args:
            inputs: `input_ids`, integer [B, S]; `input_mask`, 1 for tokens and 0 for padding,
                default 1; with convolutions instead of ids the words' characters, integer [B, S, W]
                `char_ids` or packed (see `bert_tf.spelling`). In pre-training also
                `reverse_input_ids`, or characters, of the text from right to left. `carried` is an
                earlier step's result; default: zero states.
            training: whether to apply dropout.
            dropout_seed: see `BertEncoder.call`.

        Returns:
            `carried`, the states after the last step. In pre-training `forward_output` and
            `backward_output`, [B, S, P], in the order of the respective input; else
            `embedding_output` [B, S, H], the tokens twice, `layer_outputs` (list of [B, S, H]),
            `sequence_output`, the last of them, and `pooled_output` [B, H], both final outputs.
        """
        dropout_seed = seed_of_pass(dropout_seed, training, self.seed_generator)
        drawn = split_seed(dropout_seed, 2 * (self.config.n_layers + 1))
        seeds = {"forward": drawn[::2], "backward": drawn[1::2]}
        input_mask, carried = inputs.get("input_mask"), inputs.get("carried", {})
        x = self.embed(inputs)
        if any(f"reverse_{name}" in inputs for name in ("input_ids", "char_ids")):
            ways = {way: self.run(way, tokens, None, carried, seeds[way])
                    for way, tokens in zip(WAYS, (x, self.embed(inputs, "reverse_")))}
            return {**{f"{way}_output": outputs[-1] for way, (outputs, _) in ways.items()},
                    "carried": {**ways["forward"][1], **ways["backward"][1]}}
        mask = None if input_mask is None else ops.cast(input_mask, "bool")
        forward, after = self.run("forward", x, mask, carried, seeds["forward"])
        backward, before = self.run("backward", reverse_tokens(x, input_mask), mask, carried,
                                    seeds["backward"])
        layers = [ops.concatenate([a, reverse_tokens(b, input_mask)], axis=-1)
                  for a, b in zip(forward, backward)]
        pooled = ops.concatenate(
            [last_token(way[-1], input_mask) for way in (forward, backward)], axis=-1)
        return {"embedding_output": ops.concatenate([x, x], axis=-1), "layer_outputs": layers,
                "sequence_output": layers[-1], "pooled_output": pooled,
                "carried": {**after, **before}}
