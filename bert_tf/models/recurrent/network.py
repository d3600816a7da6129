"""ELMo's two language models (arXiv:1802.05365; allenai/bilm-tf, bilm/training.py and model.py),
the LSTM of semi-supervised sequence learning (arXiv:1511.01432; tensorflow/models,
research/adversarial_text, layers.py), and the LSTM that learns from BERT (arXiv:1903.12136).

Shapes: B batch, S sequence, W characters of a word, P `projection_dim`, H hidden, E width of the
embeddings, U cells of each direction, V vocabulary.
"""

import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import keras
from keras import ops

from bert_tf.config import BiLstmConfig, ElmoConfig, SequenceLstmConfig
from bert_tf.layers.base import FromConfig, Network, Tensor, register
from bert_tf.layers.functions import dropout, last_token, seed_of_pass, split_seed
from bert_tf.models.recurrent.layers import CharacterCnn, Lstm, reverse_tokens, unpack_spelling
from bert_tf.spelling import spelling_names

WAYS = ("forward", "backward")


class WordTable(FromConfig, keras.layers.Layer):
    """A table of words, [V, `width`], initially uniform up to `largest`."""

    def __init__(self, config: Any, width: int, largest: float, **kwargs: Any):
        super().__init__(config, **kwargs)
        self.width, self.largest = width, largest

    def build(self, input_shape: Any = None) -> None:
        self.table = self.word_embeddings = self.add_weight(
            (self.config.vocab_size, self.width),
            keras.initializers.RandomUniform(-self.largest, self.largest), name="word_embeddings")

    def call(self, input_ids: Tensor) -> Tensor:
        """integer [B, S] -> float [B, S, width]."""
        return ops.cast(ops.take(self.table, input_ids, axis=0), self.compute_dtype)


@register
class Elmo(Network):
    """LSTMs from left to right and others from right to left, on the same tokens.

    In pre-training, where there are `reverse_` features, each direction reads a text of its own,
    and `call` returns each direction's outputs, which predict the next token. Otherwise both
    directions read the same text from zero states, unless states are given: a sentence always has
    the same vectors, unlike in the original, which carries states from batch to batch.

    Only the first feature of `reads` is required; `also_reads` are pre-training's. `carries` has
    the states of the LSTMs, by name, with the shapes of one row.
    """

    def __init__(self, config: ElmoConfig, name: str = "elmo", **kwargs: Any):
        super().__init__(config, name=name, **kwargs)
        spelling = config.further_features
        make: Any = CharacterCnn
        if not config.filters:
            make = functools.partial(WordTable, width=config.projection_dim, largest=1)
        self.embeddings = make(config, name="embeddings", dtype=self.dtype_policy)
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

    @property
    def embedding_table(self) -> keras.Variable:
        """The variable of the embeddings: of characters, or [V, P] of words."""
        return self.embeddings.table

    def embed(self, inputs: Mapping[str, Tensor], prefix: str = "") -> Tensor:
        """The tokens, float [B, S, P]."""
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
        """Runs the LSTMs of one of `WAYS` on tokens in reading order, float [B, S, P], which exist
        where `mask`, integer [B, S], is not 0. `seeds` of dropout are one an LSTM and one for the
        last output; for `carried` see `call`. Returns each LSTM's output, float [B, S, P], and the
        states after the last step."""
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
        forward, after = self.run("forward", x, input_mask, carried, seeds["forward"])
        backward, before = self.run("backward", reverse_tokens(x, input_mask), input_mask, carried,
                                    seeds["backward"])
        layers = [ops.concatenate([a, reverse_tokens(b, input_mask)], axis=-1)
                  for a, b in zip(forward, backward)]
        pooled = ops.concatenate(
            [last_token(way[-1], input_mask) for way in (forward, backward)], axis=-1)
        return {"embedding_output": ops.concatenate([x, x], axis=-1), "layer_outputs": layers,
                "sequence_output": layers[-1], "pooled_output": pooled,
                "carried": {**after, **before}}


_EPSILON = 1e-6


class NormalizedEmbeddings(WordTable):
    """Embeddings with mean 0 and variance 1 over the words of a text. `token_counts`, float [V],
    has each word's frequency in the text: a weight that is not trained, initially all 1."""

    def build(self, input_shape: Any = None) -> None:
        super().build()
        self.token_counts = self.add_weight((self.config.vocab_size,), "ones", trainable=False,
                                            name="token_counts")

    def call(self, input_ids: Tensor, dropout_seed: Tensor | None = None) -> Tensor:
        """integer [B, S] -> float [B, S, E], with one dropout mask for all steps."""
        table = ops.cast(self.word_embeddings, "float32")
        if self.config.normalize_embeddings:
            shares = self.token_counts / ops.sum(self.token_counts)
            table = table - ops.matmul(shares, table)
            variance = ops.matmul(shares, ops.square(table))            # [E]
            table = table / ops.sqrt(_EPSILON + variance)
        x = ops.cast(ops.take(table, input_ids, axis=0), self.compute_dtype)
        seeds = split_seed(dropout_seed, 2)
        x = dropout(x, self.config.hidden_dropout_prob, seeds[0], shared=1)
        return dropout(x, self.config.word_dropout_prob, seeds[1], shared=2)


@register
class SequenceLstm(Network):
    """LSTMs from left to right, without a bias of the forget gate. Only the first feature of
    `reads` is required; `also_reads` are pre-training's. `carries` has the states of the LSTMs, by
    name, with the shapes of one row."""

    reads = ("input_ids", "input_mask")
    also_reads = ("is_start",)

    def __init__(self, config: SequenceLstmConfig, name: str = "sequence_lstm", **kwargs: Any):
        super().__init__(config, name=name, **kwargs)
        self.embeddings = NormalizedEmbeddings(config, config.embedding_size, 1, name="embeddings",
                                               dtype=self.dtype_policy)
        widths = [config.embedding_size] + [config.hidden_size] * (config.num_hidden_layers - 1)
        self.lstms = [Lstm(width, config.hidden_size, name=f"lstm_{i}", dtype=self.dtype_policy)
                      for i, width in enumerate(widths)]
        self.carries = {lstm.name: (lstm.state_size,) for lstm in self.lstms}
        self.seed_generator = keras.random.SeedGenerator()
        self.build()

    def take_counts(self, counts: Any) -> None:
        """Sets each token's frequency in the training text, int [V] or shorter: 0 at the end."""
        more = self.config.vocab_size - len(counts)
        self.embeddings.token_counts.assign(ops.pad(ops.cast(counts, "float32"), [[0, more]]))

    def call(self, inputs: Mapping[str, Tensor], training: bool = False,
             dropout_seed: Tensor | None = None) -> dict[str, Any]:
        """Returns named tensors.

        Args:
            inputs: integer [B, S]: `input_ids`; `input_mask`, 1 for tokens and 0 for padding,
                default 1. `carried` is an earlier step's result; default: zero states. `is_start`,
                [B, 1], resets the states of rows where it is 1.
            training: whether to apply dropout.
            dropout_seed: see `BertEncoder.call`.

        Returns:
            `sequence_output` [B, S, H], `pooled_output` [B, H], the output at the last token,
            `embedding_output` [B, S, E], `layer_outputs` (list of [B, S, H]), `carried`, the states
            after the last step, and `token_counts`, float32 [V].
        """
        dropout_seed = seed_of_pass(dropout_seed, training, self.seed_generator)
        input_mask = inputs.get("input_mask")
        x = embedded = self.embeddings(inputs["input_ids"], dropout_seed)
        layers, states, carried = [], {}, inputs.get("carried", {})
        if carried and "is_start" in inputs:
            goes_on = 1.0 - ops.cast(inputs["is_start"], "float32")         # [B, 1]
            carried = {name: value * goes_on for name, value in carried.items()}
        for lstm in self.lstms:
            x, state = lstm(x, input_mask, carried.get(lstm.name))
            states[lstm.name] = ops.cast(ops.stop_gradient(state), "float32")
            layers.append(x)
        return {"embedding_output": embedded, "layer_outputs": layers, "sequence_output": x,
                "pooled_output": last_token(x, input_mask), "carried": states,
                "token_counts": ops.convert_to_tensor(self.embeddings.token_counts)}


@register
class BiLstm(Network):
    """One LSTM in each direction, and a layer with ReLU on both final states. Two texts a and b are
    read apart; the layer reads [a, b, |a - b|, a * b]. Only the first feature of `reads` is
    required."""

    reads = ("input_ids", "input_mask", "segment_ids")

    def __init__(self, config: BiLstmConfig, name: str = "bilstm", **kwargs: Any):
        super().__init__(config, name=name, **kwargs)
        self.embeddings = WordTable(config, config.embedding_size, 0.25, name="embeddings",
                                    dtype=self.dtype_policy)
        self.lstms = [Lstm(config.embedding_size, config.lstm_size, name=way,
                           dtype=self.dtype_policy) for way in ("forward", "backward")]
        self.pooler = self.dense(config.hidden_size, activation="relu", inputs=config.read_width,
                                 initializer=keras.initializers.GlorotUniform())
        self.seed_generator = keras.random.SeedGenerator()
        self.build()

    def call(self, inputs: Mapping[str, Tensor], training: bool = False,
             dropout_seed: Tensor | None = None) -> dict[str, Any]:
        """Returns named tensors. Dropout is before the last layer, in the head.

        Args:
            inputs: integer [B, S]: `input_ids`; `input_mask`, 1 for tokens and 0 for padding,
                default 1; `segment_ids`, 1 for the second text, default 0.

        Returns:
            `pooled_output` [B, H]; `sequence_output` [B, S, H], the same layer on each token's
            states, as if they were both texts; `embedding_output` [B, S, E]; `layer_outputs` (list
            of [B, S, 2 * U]).
        """
        ids = inputs["input_ids"]
        mask, segments = inputs.get("input_mask"), inputs.get("segment_ids")
        if mask is None:
            mask = ops.ones_like(ids)
        x = self.embeddings(ids)
        if not self.config.pairs:
            states, ends = self._read(x, mask)
            texts = (ends,)
        else:
            second = mask * (ops.zeros_like(ids) if segments is None else segments)
            both, ends = self._read(ops.concatenate([x, x]),
                                    ops.concatenate([mask - second, second]))
            first, other = ops.split(both, 2)
            states = ops.where(ops.cast(second, "bool")[:, :, None], other, first)
            texts = tuple(ops.split(ends, 2))
        return {"pooled_output": self._hidden(*texts),
                "sequence_output": self._hidden(*[states] * len(texts)),
                "embedding_output": x, "layer_outputs": [states]}

    def _read(self, x, mask):
        """Returns both directions' states at each token, float [B, S, 2 * U], and final states,
        [B, 2 * U]. Tokens of the texts have 1 in `mask`, integer [B, S]."""
        is_token, units = ops.cast(mask, "bool"), self.config.lstm_size
        forward, backward = self.lstms
        states, end = forward(x, is_token)
        # Steps without a token keep the state, also before the first token.
        back, begin = backward(ops.flip(x, axis=1), ops.flip(is_token, axis=1))
        return (ops.concatenate([states, ops.flip(back, axis=1)], axis=-1),
                ops.concatenate([end[:, units:], begin[:, units:]], axis=-1))

    def _hidden(self, a, b=None):
        """Applies the last layer to the states of a text or of two, float [..., 2 * U]."""
        if b is not None:
            a = ops.concatenate([a, b, ops.abs(a - b), a * b], axis=-1)
        return self.pooler(a)
