"""The encoder of BERT and its relatives, and pooling (arXiv:1810.04805; google-research/bert,
`modeling.py`; with shared layers arXiv:1909.11942; google-research/albert, `modeling.py`).
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
from keras import ops

from bert_tf.config import EncoderConfig
from bert_tf.errors import InputError
from bert_tf.layers.base import Network, Tensor, register
from bert_tf.layers.masks import (
    NOISES,
    PACKED,
    Packing,
    add_noise,
    causal_bias,
    last_token,
    packing_of,
    padding_bias,
)
from bert_tf.layers.quantisation import set_weight_bits
from bert_tf.layers.seeds import seed_of_pass, split_seed
from bert_tf.layers.transformer import Embeddings, TransformerLayer, rematerialized

# Sizes that two encoders with shared embeddings have in common.
_SIZES_OF_EMBEDDINGS = ("vocab_size", "embedding_width", "max_position_embeddings",
                        "type_vocab_size", "task_types")
# ELECTRA initialises the embedding projection with Glorot (the default of tf.layers.dense).
_PROJECTIONS = {"electra": "glorot_uniform"}
# The activations of poolers.
_POOLERS = {"first_token_transform": "tanh", "first_token_relu": "relu",
            "first_token_tanh_relu": lambda x: ops.relu(ops.tanh(x))}


@register
class BertEncoder(Network):
    """A Transformer that returns all of its named tensors; bidirectional unless its configuration
    says `left_to_right`.

    Shapes: B batch, S sequence, H hidden, E width of the embeddings, N heads, L layers, shared
    layers counted each time, V vocabulary. The weights exist as soon as the encoder does, drawn
    from the seed of `keras.utils.set_random_seed`.

    Args:
        config: `EncoderConfig`.
        embeddings: the `embeddings` of another encoder of the same sizes, which this encoder then
            shares; None: new ones. A saved encoder does not describe the other one, so the model
            that holds both must share the embeddings again in its own `from_config`.

    Attributes:
        reads: names of the features; only the first is required.
        also_reads: names of rarer features.
        packs: whether records may share rows, see bert_tf/layers/masks.py.
        takes_noise: whether features are added to its embeddings, see `call`.
        rematerializes: whether the backward pass computes each layer again, instead of keeping its
            inner values; not where attention is returned or gets a bias from outside.
        layers_: the L layers in the order of application; a layer with shared weights several
            times.
    """

    reads: tuple[str, ...] = ("input_ids", "input_mask", "segment_ids")
    also_reads: tuple[str, ...] = ("task_ids", *PACKED)
    packs = True
    takes_noise = True
    rematerializes = False
    quantised_as = "pooler"

    def __init__(self, config: EncoderConfig, name: str = "bert",
                 embeddings: Embeddings | None = None, **kwargs: Any):
        super().__init__(config, name=name, **kwargs)
        self.embeddings = embeddings or self.make_embeddings(name="embeddings",
                                                             dtype=self.dtype_policy)
        _check_embeddings(self.embeddings.config, config)
        self.embeddings_project = self.dense(
            config.hidden_size, "embeddings_project",
            initializer=_PROJECTIONS.get(config.model_type)) if config.projects else None
        self.layers_ = self._make_layers()
        self.pooler = self.dense(
            config.hidden_size, activation=_POOLERS[config.pooler_type]
        ) if config.has_pooler else None
        self.seed_generator = keras.random.SeedGenerator()
        self.build()

    def make_embeddings(self, **kwargs: Any) -> Any:
        """Makes the embeddings; subclasses replace it."""
        return Embeddings(self.config, **kwargs)

    def embed(self, inputs: Mapping[str, Tensor], seed: Tensor | None) -> dict[str, Tensor]:
        """Returns the outputs before the first layer: `embedding_output` [B, S, E], and a
        subclass's further ones."""
        return {"embedding_output": self.embeddings(
            inputs["input_ids"], inputs.get("segment_ids"), seed, inputs.get("task_ids"),
            positions=inputs.get("positions"), word_noise=inputs.get("word_noise"))}

    def _embedded(self, inputs, seed):
        """Returns the result of `embed`, with its noise, and its projection, if there is one."""
        outputs = self.embed(inputs, seed)
        outputs["embedding_output"] = add_noise(outputs["embedding_output"],
                                                inputs.get("embedding_noise"))
        if self.embeddings_project:
            outputs["projected_output"] = self.embeddings_project(outputs["embedding_output"])
        return outputs

    def _packed(self, inputs, packing):
        """Returns the features of the rows that records share."""
        noises = {name: packing.pack_vectors(inputs[name]) for name in NOISES
                  if inputs.get(name) is not None}
        return {**packing.pack({name: inputs.get(name) for name in (*self.reads, "task_ids")}),
                **noises, "positions": packing.positions}

    def _make_layers(self):
        """Makes the layers in the order of application, each shared part once."""
        layers: dict[tuple[int, int], TransformerLayer] = {}
        attentions: dict[int, TransformerLayer] = {}
        feed_forwards: dict[int, TransformerLayer] = {}
        for pair in self.config.layer_weights:
            if pair not in layers:
                layers[pair] = layer = self.make_layer(
                    attentions.get(pair[0]), feed_forwards.get(pair[1]), numbers=pair,
                    name=f"layer_{max(pair)}", dtype=self.dtype_policy)
                attentions.setdefault(pair[0], layer)
                feed_forwards.setdefault(pair[1], layer)
                if self.config.quantisation:
                    set_weight_bits(layer, self.config.quantisation.bits_of_layer(max(pair)))
        return [layers[pair] for pair in self.config.layer_weights]

    def make_layer(self, *shared: TransformerLayer | None, **kwargs: Any) -> TransformerLayer:
        """Makes a layer that shares parts of others; subclasses replace it."""
        return TransformerLayer(self.config, *shared, **kwargs)

    def make_bias(self, inputs: Mapping[str, Tensor], attention_bias: Tensor | None,
                  packing: Packing | None = None) -> Any:
        """Returns the `bias` argument of every layer's attention, from `call`'s arguments."""
        biases = [] if attention_bias is None else [ops.cast(attention_bias, "float32")]
        if self.config.is_causal:
            biases.append(causal_bias(ops.shape(inputs["input_ids"])[1]))   # [1, 1, S, S]
        if packing:
            biases.insert(0, packing.bias(inputs.get("input_mask")))    # [B, 1, S, S]
        elif inputs.get("input_mask") is not None:
            biases.insert(0, padding_bias(inputs["input_mask"]))        # [B, 1, 1, S]
        return sum(biases[1:], start=biases[0]) if biases else None

    def build(self, input_shape: Any = None) -> None:
        if not self.embeddings.built:
            self.embeddings.build()
        if self.embeddings_project:
            self.embeddings_project.build((None, None, self.config.embedding_width))
        with keras.name_scope("encoder"):
            for layer in self.layers_:
                if not layer.built:
                    layer.build()
        if self.pooler:
            with keras.name_scope("pooler"):
                self.pooler.build((None, self.config.hidden_size))

    def call(self, inputs: Mapping[str, Tensor], training: bool = False,
             dropout_seed: Tensor | None = None, attention_bias: Tensor | None = None,
             head_mask: Any = None, return_attention: bool = False, unit_mask: Any = None,
             layers: Sequence[Callable] | None = None) -> dict[str, Any]:
        """Returns named tensors.

        Args:
            inputs: integer [B, S]: `input_ids`; `input_mask`, 1 for tokens and 0 for padding,
                default 1; `segment_ids`, default 0; and `task_ids`, or [B, 1], default 0. Where
                records share rows, also `packed_from` and `packed_at`. Floats: `word_noise`
                [B, S, E], added to the vectors of words, and `embedding_noise`, added to
                `embedding_output`. Others are ignored.
            training: whether to apply dropout.
            dropout_seed: integer [2], which determines the dropout masks; None: drawn from
                `seed_generator`.
            attention_bias: float [B or 1, N or 1, S, S], added to every layer's attention scores.
            head_mask: float [L, N], a factor for each head's output; or float that broadcasts to
                [L, B, N, S, D]; or a list of L such, where heads were cut from some layers.
            return_attention: whether to return `attention_probs` and `attention_scores` too.
            unit_mask: float that broadcasts to [L, B, S, F], a factor for each unit of the
                feed-forward networks; or a list of L such.
            layers: L functions that replace the layers, with the interface of `TransformerLayer`.

        Returns:
            `sequence_output` [B, S, H], `pooled_output` [B, H], `embedding_output` [B, S, E],
            `layer_outputs` (list of L [B, S, H]), and on request `attention_probs` (list of L
            [B, N, S, S], before dropout), the softmax of `attention_scores`, float32, which heads
            with fixed patterns lack. Where records share rows, these are of the rows. Where E is
            not H, `projected_output` [B, S, H], the first layer's input.

        Raises:
            ValueError: S is larger than `max_position_embeddings`.
        """
        dropout_seed = seed_of_pass(dropout_seed, training, self.seed_generator)
        seeds = split_seed(dropout_seed, 1 + len(self.layers_))
        mask, packing = inputs.get("input_mask"), packing_of(inputs)
        if packing:
            inputs = self._packed(inputs, packing)
        bias = self.make_bias(inputs, attention_bias, packing)
        outputs: dict[str, Any] = {**self._embedded(inputs, seeds[0]), "layer_outputs": []}
        x = outputs.get("projected_output", outputs["embedding_output"])
        run: Callable = operator.call
        if self.rematerializes and not return_attention and attention_bias is None:
            run = rematerialized
        for i, layer in enumerate(layers or self.layers_):              # x: [B, S, H]
            x, maps = run(layer, x, bias, None if head_mask is None else head_mask[i],
                          seeds[1 + i], None if unit_mask is None else unit_mask[i])
            outputs["layer_outputs"].append(x)
            for name in maps if return_attention else ():
                outputs.setdefault(name, []).append(maps[name])
        if packing:
            x = packing.unpack(x)
            for name in outputs.keys() & {"embedding_output", "projected_output"}:
                outputs[name] = packing.unpack(outputs[name])
            outputs["layer_outputs"] = list(map(packing.unpack, outputs["layer_outputs"]))
        outputs["sequence_output"] = x
        summary = (last_token(x, mask) if self.config.is_causal
                   else x[:, 0])                                        # [B, H]
        outputs["pooled_output"] = self.pooler(summary) if self.pooler else summary
        return outputs


def _check_embeddings(theirs, config):
    """Refuses shared embeddings whose sizes differ from the encoder's."""
    for size in _SIZES_OF_EMBEDDINGS:
        if getattr(theirs, size) != getattr(config, size):
            raise InputError(f"the shared embeddings have {size} {getattr(theirs, size)}, the "
                             f"encoder has {getattr(config, size)}; make them equal.")


def pool(vectors: Tensor, input_mask: Tensor, pooling: str, normalize: bool = False) -> Tensor:
    """Returns one vector for each text from the vectors of its tokens: float32 [B, H].

    Args:
        vectors: float [B, S, H], such as the output of a layer.
        input_mask: integer [B, S], 1 for tokens and 0 for padding; a text has at least one token.
        pooling: "cls", the first token's vector; "last", the last one's; "mean" or "max" over all
            tokens, [CLS] and [SEP] too, as in sentence-transformers; "none", the tokens' vectors,
            [B, S, H].
        normalize: whether to scale each vector to length 1.
    """
    vectors = ops.cast(vectors, "float32")
    is_token = ops.cast(input_mask, "bool")[:, :, None]                 # [B, S, 1]
    if pooling == "cls":
        vectors = vectors[:, 0]
    elif pooling == "last":
        vectors = last_token(vectors, input_mask)
    elif pooling == "mean":
        count = ops.sum(ops.cast(is_token, "float32"), 1)               # [B, 1]
        vectors = ops.sum(ops.where(is_token, vectors, 0.0), 1) / count
    elif pooling == "max":
        vectors = ops.max(ops.where(is_token, vectors, -float("inf")), 1)
    return ops.normalize(vectors, epsilon=1e-12) if normalize else vectors
