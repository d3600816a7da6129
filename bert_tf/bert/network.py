"""BERT's encoder and its pooling (arXiv:1810.04805; google-research/bert, `modeling.py`)."""

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
from keras import ops

from bert_tf.bert.layers import Embeddings, TransformerLayer, padding_bias, rematerialized
from bert_tf.config import BertConfig
from bert_tf.errors import InputError
from bert_tf.layers.base import Network, Tensor, register
from bert_tf.layers.changes import Changeable
from bert_tf.layers.functions import seed_of_pass, split_seed


@register
class Bert(Changeable, Network):
    """A bidirectional Transformer that returns all of its named tensors.

    Shapes: B batch, S sequence, H hidden, E width of the embeddings, N heads, L layers, V
    vocabulary. The weights exist as soon as the network does, drawn from the seed of
    `keras.utils.set_random_seed`. Subclasses replace the methods that make parts.

    Args:
        embeddings: the `embeddings` of another network of the same sizes, which this one then
            shares; None: new ones. A saved network does not describe the other one, so the model
            that holds both must share the embeddings again in its own `from_config`.

    Attributes:
        reads: names of the features; only the first is required.
        also_reads: names of rarer features.
        rematerializes: whether the backward pass computes each layer again, instead of keeping its
            inner values; not where attention is returned or gets a bias from outside.
        layers_: the L layers in the order of application.
    """

    embeddings_class: Any = Embeddings
    reads: tuple[str, ...] = ("input_ids", "input_mask", "segment_ids")
    rematerializes = False
    part = "pooler"

    def __init__(self, config: BertConfig, name: str = "bert",
                 embeddings: Embeddings | None = None, **kwargs: Any):
        super().__init__(config, name=name, **kwargs)
        if type(self) is Bert and not config.is_plain:
            raise InputError("this configuration describes another network than BERT; call "
                             "bert_tf.networks.build(config).")
        self.embeddings = embeddings or self.make_embeddings(name="embeddings",
                                                             dtype=self.dtype_policy)
        self.layers_ = self.make_layers()
        self.pooler = self.make_pooler()
        self.seed_generator = keras.random.SeedGenerator()
        self.build()

    def make_embeddings(self, **kwargs: Any) -> Any:
        return self.embeddings_class(self.config, **kwargs)

    def make_layers(self) -> list[Any]:
        return [TransformerLayer(self.config, name=f"layer_{i}", dtype=self.dtype_policy)
                for i in range(self.config.num_hidden_layers)]

    def make_pooler(self) -> Any:
        """Makes the layer between `pool`'s vector and `pooled_output`; None for none."""
        return self.dense(self.config.hidden_size, activation="tanh")

    def embed(self, inputs: Mapping[str, Tensor], seed: Tensor | None) -> dict[str, Tensor]:
        """Returns the outputs before the first layer: `embedding_output` [B, S, E], and a
        subclass's further ones."""
        return {"embedding_output": self.embeddings(
            inputs["input_ids"], inputs.get("segment_ids"), seed,
            positions=inputs.get("positions"), words=inputs.get("words"))}

    def first_state(self, outputs: dict[str, Any]) -> Tensor:
        """Returns the first layer's input, float [B, S, H], from the outputs of `embed`."""
        return outputs["embedding_output"]

    def make_bias(self, inputs: Mapping[str, Tensor], attention_bias: Tensor | None) -> Any:
        """Returns the `bias` argument of every layer's attention, from `call`'s arguments."""
        biases = []
        if inputs.get("input_mask") is not None:
            biases.append(padding_bias(inputs["input_mask"]))           # [B, 1, 1 or S, S]
        if attention_bias is not None:
            biases.append(ops.cast(attention_bias, "float32"))
        return sum(biases[1:], start=biases[0]) if biases else None

    def pool(self, vectors: Tensor, input_mask: Tensor | None) -> Tensor:
        """Returns `pooled_output` [B, H] from `sequence_output` [B, S, H]."""
        return self.pooler(vectors[:, 0])

    def call(self, inputs: Mapping[str, Tensor], training: bool = False,
             dropout_seed: Tensor | None = None, attention_bias: Tensor | None = None,
             return_attention: bool = False, layers: Sequence[Callable] | None = None,
             embed: Callable | None = None) -> dict[str, Any]:
        """Returns named tensors.

        Args:
            inputs: integer [B, S]: `input_ids`; `input_mask`, 1 for tokens and 0 for padding, or
                [B, S, S], 1 for tokens that a token sees, default 1; `segment_ids`, default 0; and
                `positions`, default from 0. `words`, float [B, S, E], replaces the vectors of
                words. Others are ignored.
            training: whether to apply dropout.
            dropout_seed: integer [2], which determines the dropout masks; None: drawn from
                `seed_generator`.
            attention_bias: float [B or 1, N or 1, S, S], added to every layer's attention scores.
            return_attention: whether to return `attention_probs` and `attention_scores` too.
            layers: L functions that replace the layers, with the interface of `TransformerLayer`.
            embed: a function that replaces `self.embed`.

        Returns:
            `sequence_output` [B, S, H], `pooled_output` [B, H], `embedding_output` [B, S, E],
            `layer_outputs` (list of L [B, S, H]), and on request `attention_probs` (list of L
            [B, N, S, S], before dropout), the softmax of `attention_scores`, float32.

        Raises:
            ValueError: S is larger than `max_position_embeddings`.
        """
        dropout_seed = seed_of_pass(dropout_seed, training, self.seed_generator)
        seeds = split_seed(dropout_seed, 1 + len(self.layers_))
        bias = self.make_bias(inputs, attention_bias)
        outputs: dict[str, Any] = {**(embed or self.embed)(inputs, seeds[0]), "layer_outputs": []}
        x = self.first_state(outputs)
        run: Callable = operator.call
        if self.rematerializes and not return_attention and attention_bias is None:
            run = rematerialized
        for layer, seed in zip(layers or self.layers_, seeds[1:]):      # x: [B, S, H]
            x, maps = run(layer, x, bias, seed)
            outputs["layer_outputs"].append(x)
            for name in maps if return_attention else ():
                outputs.setdefault(name, []).append(maps[name])
        outputs["sequence_output"] = x
        outputs["pooled_output"] = self.pool(x, inputs.get("input_mask"))
        return outputs
