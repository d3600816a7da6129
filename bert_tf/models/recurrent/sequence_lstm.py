"""The LSTM of semi-supervised sequence learning (arXiv:1511.01432; tensorflow/models,
research/adversarial_text, layers.py, by its authors).

Shapes: B batch, S sequence, E width of the embeddings, H hidden, V vocabulary.
"""

from collections.abc import Mapping
from typing import Any

import keras
from keras import ops

from bert_tf.config import SequenceLstmConfig
from bert_tf.layers.base import FromConfig, Network, Tensor, register
from bert_tf.layers.masks import last_token
from bert_tf.layers.seeds import dropout, seed_of_pass, split_seed
from bert_tf.models.recurrent.lstm import Lstm

_EPSILON = 1e-6


class NormalizedEmbeddings(FromConfig, keras.layers.Layer):
    """Embeddings with mean 0 and variance 1 over the words of a text.

    `token_counts`, float [V], has each word's frequency in the text: a weight that is not trained,
    initially all 1.
    """

    def build(self, input_shape: Any = None) -> None:
        config = self.config
        self.word_embeddings = self.add_weight(
            (config.vocab_size, config.embedding_size), keras.initializers.RandomUniform(-1, 1),
            name="word_embeddings")
        self.token_counts = self.add_weight((config.vocab_size,), "ones", trainable=False,
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
    """LSTMs from left to right, without a bias of the forget gate.

    Attributes:
        reads: names of the features; only the first is required.
        also_reads: names of pre-training's features.
        carries: the states of the LSTMs, by name, with the shapes of one row.
    """

    reads = ("input_ids", "input_mask")
    also_reads = ("is_start",)

    def __init__(self, config: SequenceLstmConfig, name: str = "sequence_lstm", **kwargs: Any):
        super().__init__(config, name=name, **kwargs)
        self.embeddings = NormalizedEmbeddings(config, name="embeddings", dtype=self.dtype_policy)
        widths = [config.embedding_size] + [config.hidden_size] * (config.num_hidden_layers - 1)
        self.lstms = [Lstm(width, config.hidden_size, name=f"lstm_{i}", dtype=self.dtype_policy)
                      for i, width in enumerate(widths)]
        self.carries = {lstm.name: (lstm.state_size,) for lstm in self.lstms}
        self.seed_generator = keras.random.SeedGenerator()
        self.build()

    def build(self, input_shape: Any = None) -> None:
        self.embeddings.build()
        with keras.name_scope("encoder"):
            for lstm in self.lstms:
                lstm.build()

    def take_counts(self, counts: Any) -> None:
        """Sets each token's frequency in the training text, int [V]."""
        self.embeddings.token_counts.assign(ops.cast(counts, "float32"))

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
        mask = None if input_mask is None else ops.cast(input_mask, "bool")
        x = embedded = self.embeddings(inputs["input_ids"], dropout_seed)
        layers, states, carried = [], {}, inputs.get("carried", {})
        if carried and "is_start" in inputs:
            goes_on = 1.0 - ops.cast(inputs["is_start"], "float32")         # [B, 1]
            carried = {name: value * goes_on for name, value in carried.items()}
        for lstm in self.lstms:
            x, state = lstm(x, mask, carried.get(lstm.name))
            states[lstm.name] = ops.cast(ops.stop_gradient(state), "float32")
            layers.append(x)
        return {"embedding_output": embedded, "layer_outputs": layers, "sequence_output": x,
                "pooled_output": last_token(x, input_mask), "carried": states,
                "token_counts": ops.convert_to_tensor(self.embeddings.token_counts)}
