"""XLNet: two streams of relative attention, with a memory (arXiv:1906.08237; zihangdai/xlnet,
`modeling.py`, `transformer_xl`). From left to right it is Transformer-XL (arXiv:1901.02860).

Shapes: B batch, S sequence, P predictions, M memory, K = M + S keys, R distances, H hidden, N
heads, L layers, V vocabulary.
"""

import functools
from collections.abc import Mapping
from typing import Any

import keras
from keras import ops

from bert_tf.config import XLNetConfig
from bert_tf.layers.base import FromConfig, Network, Tensor, register
from bert_tf.layers.changes import of_layer
from bert_tf.layers.functions import dropout, plus, seed_of_pass, split_seed
from bert_tf.models.xlnet import layers


class XLNetEmbeddings(FromConfig, keras.layers.Layer):
    """A vector for each word, and one for all tokens to predict."""

    def build(self, input_shape: Any = None) -> None:
        config = self.config
        self.word_embeddings = self.add_table("word_embeddings", config.vocab_size)
        # The original gives no initializer for its shape [1, 1, H]; the default is Glorot's.
        limit = (6 / (1 + config.hidden_size))**0.5
        self.mask_embedding = self.add_weight(
            (config.hidden_size,), keras.initializers.RandomUniform(-limit, limit), name="mask_emb")

    def call(self, input_ids: Tensor) -> Tensor:
        """integer [B, S] -> float [B, S, H]."""
        return ops.cast(ops.take(self.word_embeddings, input_ids, axis=0), self.compute_dtype)


@register
class XLNet(Network):
    """XLNet; bidirectional unless its configuration or its inputs hide some tokens from others.

    A memory is carried from step to step (`training/memory.py`): the inputs of each layer at the
    first positions of the sequences before. It begins as zeros. XLNet attends to the zeros, as in
    the original; a network from left to right counts the filled positions, and sees only these.

    Only the first feature of `reads` is required; `also_reads` are the permutation language
    model's.
    """

    reads = ("input_ids", "input_mask", "segment_ids")
    takes_noise = True
    also_reads = ("query_order", "key_order", "masked_lm_positions", "masked_lm_weights",
                  "is_backward", "is_start")

    def __init__(self, config: XLNetConfig, name: str = "xlnet", **kwargs: Any):
        super().__init__(config, name=name, **kwargs)
        policy = self.dtype_policy
        self.embeddings = XLNetEmbeddings(config, name="embeddings", dtype=policy)
        self.layers_ = [layers.TwoStreamLayer(config, name=f"layer_{i}", dtype=policy)
                        for i in range(config.n_layer)]
        self.shared_biases = None
        if not config.untie_r:
            self.shared_biases = SharedBiases(config, name="encoder", dtype=policy)
        self.pooler = layers.Summary(config, name="pooler", dtype=policy)
        self.carries: dict[str, tuple[int, ...]] = {}
        if config.mem_len:
            self.carries["memory"] = (config.n_layer, config.mem_len, config.hidden_size)
            if config.is_causal:
                self.carries["remembered"] = (1,)
        self.seed_generator = keras.random.SeedGenerator()
        self.build()

    def build(self, input_shape: Any = None) -> None:
        self.embeddings.build()
        if self.shared_biases:      # first: the order decides the seeds of the first weights
            self.shared_biases.build()
        super().build()

    def call(self, inputs: Mapping[str, Any], training: bool = False,
             dropout_seed: Tensor | None = None, attention_bias: Tensor | None = None,
             head_mask: Tensor | None = None, return_attention: bool = False) -> dict[str, Any]:
        """Returns named tensors.

        Args:
            inputs: integers: `input_ids` [B, S]; `input_mask` [B, S], 1 for tokens and 0 for
                padding, default 1; `segment_ids` [B, S], which are only compared, default: no
                segments. Visibility: `perm_mask` [B, S, S], 1 for hidden tokens; or two equivalent
                orders, `query_order` and `key_order` [B, S]: token i sees another token j only if
                query_order[i] > key_order[j]. With one of these, `masked_lm_positions` [B, P], the
                queries' positions, and `masked_lm_weights` [B, P], 0 for empty slots, default 1.
                `is_backward` [B, 1], 1 for rows whose text runs backward. Floats [B, S, H]:
                `word_noise`, added to the vectors of words, and `embedding_noise`, added after
                dropout. `carried`, a dict with `memory`, float [B, L, M, H], and from left to right
                `remembered`, float [B, 1], how many of the M positions are used; `is_start` [B, 1],
                1 where a row forgets them. Others are ignored.
            training, dropout_seed: see `BertEncoder.call`.
            attention_bias: float [B or 1, N or 1, S, K], added to every layer's attention scores.
            head_mask: float [L, N], a factor for each head's output.

        Returns:
            `sequence_output` [B, S, H], `pooled_output` [B, H], `embedding_output` [B, S, H],
            `layer_outputs` (list of L [B, S, H]); with queries `query_output` [B, P, H] and
            `query_layer_outputs`; with a memory `carried`; and on request `attention_probs` (list
            of L [B, N, S, K], before dropout).
        """
        dropout_seed = seed_of_pass(dropout_seed, training, self.seed_generator)
        of_input, of_distances, of_output, of_summary, *seeds = split_seed(
            dropout_seed, 4 + len(self.layers_))
        memory = inputs.get("carried", {}).get("memory")        # [B, L, M, H]
        before = 0 if memory is None else self.config.mem_len
        distances = self._distances(inputs, before, of_distances)
        seen, asked = _see(inputs, before, attention_bias, self.config.is_causal)
        content, query = self._embed(inputs, of_input)
        shared = getattr(self.shared_biases, "variables_", ())
        outputs: dict[str, Any] = {"embedding_output": content, "layer_outputs": [],
                                   "query_layer_outputs": [], "attention_probs": []}
        remembered = []
        for i, layer in enumerate(self.layers_):                        # [B, S, H], [B, P, H]
            past = None
            if memory is not None:
                past = ops.cast(memory[:, i], self.compute_dtype)       # [B, M, H]
                after = ops.concatenate([past, content[:, :self.config.reuse_len or None]], axis=1)
                remembered.append(ops.stop_gradient(after[:, -self.config.mem_len:]))
            content, query, probs = layer(content, query, past, distances, seen, asked, shared,
                                          of_layer(head_mask, i), seeds[i])
            outputs["layer_outputs"].append(content)
            outputs["query_layer_outputs"].append(query)
            outputs["attention_probs"].append(probs)
        if memory is not None:
            outputs["carried"] = _carried(inputs, remembered, self.config)
        for name, stream in (("sequence_output", content), ("query_output", query)):
            if stream is not None:
                outputs[name] = dropout(stream, self.config.dropout, of_output)
        outputs["pooled_output"] = self.pooler(outputs["sequence_output"],
                                               inputs.get("input_mask"), of_summary)
        kept = {"query_layer_outputs": query is not None, "attention_probs": return_attention}
        return {name: value for name, value in outputs.items() if kept.get(name, True)}

    def _embed(self, inputs, seed):
        """Returns the streams at the first layer; the second is None where there are no queries."""
        seeds = split_seed(seed, 2)
        content = plus(self.embeddings(inputs["input_ids"]), inputs.get("word_noise"))
        content = plus(dropout(content, self.config.dropout, seeds[0]),
                       inputs.get("embedding_noise"))
        positions = _queries(inputs)
        if positions is None:
            return content, None
        mask = ops.cast(self.embeddings.mask_embedding, content.dtype)
        query = ops.broadcast_to(mask, (*ops.shape(positions), self.config.hidden_size))
        return content, dropout(query, self.config.dropout, seeds[1])

    def _distances(self, inputs, memory, seed):
        """float [C, R, H], with the opposite sign for rows that run backward."""
        config, length = self.config, ops.shape(inputs["input_ids"])[1]
        vectors = ops.cast(layers.distances(length, memory, config.clamp_len, config.hidden_size),
                           self.compute_dtype)[None]
        if inputs.get("is_backward") is not None:
            # The sine, the first half, is odd, and the cosine even.
            sign = ops.where(ops.arange(config.hidden_size) < (config.hidden_size + 1) // 2,
                             -1.0, 1.0)
            backward = ops.reshape(inputs["is_backward"], (-1, 1, 1)) > 0       # [B, 1, 1]
            vectors = ops.where(backward, vectors * ops.cast(sign, vectors.dtype), vectors)
        if seed is not None and config.dropout:         # each row has a mask of its own
            vectors = ops.broadcast_to(vectors, (ops.shape(inputs["input_ids"])[0],
                                                 *ops.shape(vectors)[1:]))
        return dropout(vectors, config.dropout, seed)


def _see(inputs, memory, attention_bias, is_causal):
    """`Seen` of the content, for M = `memory`, and of the queries, None where there are none."""
    length, places = ops.shape(inputs["input_ids"])[1], _queries(inputs)
    content, query = _biases(inputs, length, memory, is_causal)
    if attention_bias is not None:
        extra = ops.cast(attention_bias, "float32")
        content, query = plus(extra, content), plus(extra, query)
    segments = inputs.get("segment_ids")
    if segments is not None:    # whether token and key are of different segments, bool [B, S, K]
        # The memory counts as segment 0.
        keys = ops.pad(segments, [(0, 0), (memory, 0)])
        segments = ops.not_equal(segments[:, :, None], keys[:, None])
    if places is None:
        return layers.Seen(segments, content), None
    places, seen = ops.cast(places, "int32"), layers.Seen(segments, content)
    if segments is not None:
        segments = ops.take_along_axis(segments, places[..., None], axis=1)
    if query is not None:
        query = ops.take_along_axis(query, places[:, None, :, None], axis=2)
    used = inputs.get("masked_lm_weights")
    if used is not None:
        used = ops.cast(used > 0, "float32")
    return seen, layers.Seen(segments, query, places, used)


def _queries(inputs):
    """The queries' positions, or None: a token that sees everything, itself too, asks nothing."""
    is_restricted = any(inputs.get(name) is not None for name in ("perm_mask", "query_order"))
    return inputs.get("masked_lm_positions") if is_restricted else None


def _carried(inputs, remembered, config):
    """The layers' memory after a sequence, and the count of its positions if not all are used."""
    carried = {"memory": ops.cast(ops.stack(remembered, axis=1), "float32")}
    if (used := _remembered(inputs)) is not None:
        new = ops.cast(config.reuse_len or ops.shape(inputs["input_ids"])[1], "float32")
        carried["remembered"] = ops.minimum(used + new, float(config.mem_len))
    return carried


def _remembered(inputs):
    """float32 [B, 1]: how many positions of the memory are used; None where all are."""
    used = inputs.get("carried", {}).get("remembered")
    if used is None or inputs.get("is_start") is None:
        return used
    return used * (1.0 - ops.cast(inputs["is_start"], "float32"))


def _biases(inputs, length, memory, is_causal):
    """float32 [B, 1, S, K] for the content stream and the query stream; None if all is seen."""
    place, reasons = ops.arange(length, dtype="int32"), []
    if inputs.get("perm_mask") is not None:
        reasons.append(ops.cast(inputs["perm_mask"], "bool"))                   # [B, S, S]
    elif inputs.get("query_order") is not None:
        reasons.append(inputs["query_order"][:, :, None] <= inputs["key_order"][:, None])
    if inputs.get("input_mask") is not None:
        reasons.append(inputs["input_mask"][:, None] < 1)                       # [B, 1, S]
    if is_causal:
        reasons.append((place[:, None] <= place[None])[None])
    if not reasons:
        return None, None
    hidden = functools.reduce(ops.logical_or, reasons)
    other = ops.not_equal(place[:, None], place[None])[None]
    biases = [layers.hiding(ops.pad(x, [(0, 0), (0, 0), (memory, 0)]))[:, None]
              for x in (ops.logical_and(hidden, other), hidden)]
    used = _remembered(inputs)
    if used is None:        # the memory is always seen
        return biases
    empty = ops.cast(ops.arange(memory), "float32")[None] < memory - used       # [B, M]
    past = layers.hiding(ops.pad(empty, [(0, 0), (0, length)]))[:, None, None]      # [B, 1, 1, K]
    return [bias + past for bias in biases]


class SharedBiases(FromConfig, keras.layers.Layer):
    """The query biases that all layers share."""

    def build(self, input_shape: Any = None) -> None:
        self.variables_ = layers.query_biases(self)
