"""What a call may change inside a network like BERT: the rows that records share, noise in the
embeddings, and factors of heads and units.

Records share rows so that padding is not computed (arXiv:2107.02027). The features are packed, the
network computes the rows, and its outputs are unpacked, so that objectives see the batch as if it
had not been packed. `bert_tf/data/batches/row_layout.py` makes two features that describe this:

    packed_from  integer [R, S]: record * S + position of the token at each place of the rows, or -1
    packed_at    integer [B, S]: row * S + column of each token; 0 for padding

Shapes: B batch, S sequence, R rows (at most B), H hidden, E width of the embeddings, L layers, N
heads, D width of a head, F width of the feed-forward layer.
"""

import contextlib
import contextvars
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from keras import ops

from bert_tf.bert.layers import SelfAttention, TransformerLayer, gather, join_heads, split_heads
from bert_tf.layers.base import Tensor
from bert_tf.layers.functions import plus, split_seed

PACKED = ("packed_from", "packed_at")
# Features that are added to embeddings, float [B, S, width].
NOISES = ("word_noise", "embedding_noise")
# Outputs with a vector for each token.
_VECTORS = ("embedding_output", "projected_output", "sequence_output", "token_output")
_may_branch = contextvars.ContextVar("may_branch", default=True)


@contextlib.contextmanager
def no_branches() -> Iterator[None]:
    """Within this context, networks make no branches or loops in a graph: what simplifies ONNX's
    graphs does not look into them."""
    token = _may_branch.set(False)
    try:
        yield
    finally:
        _may_branch.reset(token)


def may_branch() -> bool:
    """Returns whether a graph may have a branch or a loop."""
    return _may_branch.get()


class Changeable:
    """Mixin of networks with the parts of `Bert`, and with its arguments `embed` and `layers`.

    Further features: `packed_from` and `packed_at`; `word_noise`, float [B, S, E], added to the
    vectors of words; and `embedding_noise`, added to `embedding_output`. Further arguments of a
    call: `head_mask`, float [L, N], a factor for each head's output, or float that broadcasts to
    [L, B, N, S, D]; and `unit_mask`, float that broadcasts to [L, B, S, F], a factor for each unit
    of the feed-forward networks. Where layers differ, both are lists of L. `read_at`, a list of
    integer [B, P], says that of the last layer only `pooled_output` and the vectors at these places
    are read. Where that layer can compute them alone, the outputs are `pooled_output` and
    `read_output`, float [B, P, H], those of all the list's places.

    Attributes:
        packs: whether records may share rows; ranges of rounded numbers would depend on how much
            padding there is.
        pools_first: whether `pool` reads the first token's vector alone.
        takes_noise: whether noise may be added to the embeddings.
    """

    pools_first = True
    takes_noise = True
    reads: tuple[str, ...]
    also_reads: tuple[str, ...] = PACKED
    embed: Callable
    layers_: Sequence[Any]
    config: Any
    make_bias: Callable
    pool: Callable

    @property
    def packs(self) -> bool:
        return not self.config.is_rounded

    def __call__(self, inputs: Any = None, *args: Any, head_mask: Any = None, unit_mask: Any = None,
                 read_at: Sequence[Tensor] | None = None, **kwargs: Any) -> Any:
        run: Callable = super().__call__    # type: ignore[misc]
        if not isinstance(inputs, Mapping):
            return run(inputs, *args, **kwargs)
        if any(inputs.get(name) is not None for name in NOISES):
            kwargs["embed"] = functools.partial(_embed_with_noise, self)
        if head_mask is not None or unit_mask is not None:
            layers = kwargs.get("layers") or self.layers_
            kwargs["layers"] = [
                masked(layer, of_layer(head_mask, i), of_layer(unit_mask, i))
                for i, layer in enumerate(layers)]
        rows, packing = inputs, None
        if all(inputs.get(name) is not None for name in PACKED):
            packing = Packing(*(inputs[name] for name in PACKED))
            rows = packing.pack(inputs, (*self.reads, *self.also_reads))
        if read_at is not None and self._can_end_early(kwargs):
            kwargs["layers"] = [*self.layers_[:-1], self._last_layer(read_at, packing, inputs)]
            outputs = run(rows, *args, **kwargs)
            return {"pooled_output": outputs["pooled_output"],
                    "read_output": outputs["sequence_output"][:, 1:]}
        outputs = run(rows, *args, **kwargs)
        if packing is None:
            return outputs
        return packing.unpack_outputs(outputs, self.pool, inputs.get("input_mask"))

    def _can_end_early(self, options):
        """Whether the last layer can compute some tokens' vectors alone. A network that rounds
        numbers needs all, since it keeps their ranges; so does one that carries vectors on."""
        last = self.layers_[-1]
        return (self.pools_first and not self.config.is_rounded
                and not getattr(self, "carries", None)
                and not options.get("layers") and not options.get("return_attention")
                and options.get("attention_bias") is None
                and type(last).call is TransformerLayer.call
                and type(last.attention).call is SelfAttention.call)

    def _last_layer(self, read_at, packing, inputs):
        """Returns a function as `TransformerLayer.call`, for each record's first token and those at
        `read_at`: [B, 1 + P, H]."""
        layer: Any = self.layers_[-1]

        def call(x, bias=None, dropout_seed=None):
            seeds = split_seed(dropout_seed, 3)
            if packing is not None:
                x, bias = packing.unpack(x), self.make_bias(inputs, None)
            read = ops.concatenate([x[:, :1], *(gather(x, places) for places in read_at)], axis=1)
            context, maps = layer.attention.look(read, x, bias, seeds[0])
            read = layer.attention_output(context, read, seeds[1])
            return layer.output_(layer.intermediate(read), read, seeds[2]), maps

        return call


def _embed_with_noise(network, inputs, seed):
    """As `Bert.embed`."""
    words = inputs.get("word_noise")
    if words is not None and hasattr(network.embeddings, "look_up"):
        inputs = {**inputs, "words": plus(network.embeddings.look_up(inputs["input_ids"]), words)}
    outputs = network.embed(inputs, seed)
    return {**outputs, "embedding_output": plus(outputs["embedding_output"],
                                                inputs.get("embedding_noise"))}


def leave_idle(embeddings: Any, token: int) -> None:
    """Makes a token's vector get no gradient, like `padding_idx` of torch.nn.Embedding."""
    look_up = getattr(embeddings, "look_up", None)
    if look_up is None:
        return

    def idle(input_ids):
        x = look_up(input_ids)
        return ops.where(ops.equal(input_ids, token)[:, :, None], ops.stop_gradient(x), x)

    embeddings.look_up = idle


def masked(layer: Any, head_mask: Tensor | None, unit_mask: Tensor | None) -> Callable:
    """Returns a function as `TransformerLayer.call`, with factors of a layer's heads and units."""
    if type(layer).call is TransformerLayer.call:
        layer = functools.partial(call_masked, layer)
    return functools.partial(layer, head_mask=head_mask, unit_mask=unit_mask)


def call_masked(layer: Any, x: Tensor, bias: Tensor | None = None,
                dropout_seed: Tensor | None = None, head_mask: Tensor | None = None,
                unit_mask: Tensor | None = None) -> tuple[Tensor, dict[str, Tensor]]:
    """`TransformerLayer.call` with factors of heads and units."""
    seeds = split_seed(dropout_seed, 3)
    context, maps = layer.attention(x, bias, seeds[0])                             # [B, S, N * D]
    context = mask_joined_heads(context, layer.config.head_size, head_mask)
    x = layer.attention_output(context, x, seeds[1])
    inner = layer.intermediate(x)                                                   # [B, S, F]
    if unit_mask is not None:
        inner = inner * ops.cast(unit_mask, inner.dtype)
    return layer.output_(inner, x, seeds[2]), maps


def of_layer(mask: Any, layer: int) -> Any:
    """Returns the part of a mask for a layer; None of no mask."""
    return None if mask is None else mask[layer]


def mask_heads(context: Tensor, head_mask: Tensor | None) -> Tensor:
    """Multiplies heads' outputs [B, N, S, D] by a mask, float [N] or one that broadcasts."""
    if head_mask is None:
        return context
    mask = ops.cast(head_mask, context.dtype)
    if len(mask.shape) == 1:
        mask = mask[:, None, None]
    return context * mask


def mask_joined_heads(context: Tensor, size: int, head_mask: Tensor | None) -> Tensor:
    """`mask_heads` of outputs [B, S, N * D], D = `size`."""
    width = context.shape[-1]
    if head_mask is None or not width:
        return context
    return join_heads(mask_heads(split_heads(context, size), head_mask), width)


class Packing:
    """How the records of a batch share rows, by its features `packed_from` and `packed_at`."""

    def __init__(self, source: Tensor, place: Tensor):
        self._source, self._place = source, place

    def pack(self, inputs: Mapping[str, Tensor], names: Sequence[str]) -> dict[str, Any]:
        """Returns these features of the rows that records share, integer [R, S], and noises. Those
        that have one column, [B, 1], are the same for all tokens of a record. `input_mask` is bool
        [R, S, S], the tokens that each token sees: not those of other records. `positions`, integer
        [R, S], are the tokens' own. A place without a token gets what the first token has."""
        length = self._source.shape[1]
        token = ops.maximum(self._source, 0)
        of_token, rows = ops.floor_divide(token, length), {}
        for name, values in inputs.items():
            if values is None or name in PACKED:
                continue
            if name in NOISES:
                rows[name] = ops.take(ops.reshape(values, (-1, ops.shape(values)[-1])), token,
                                      axis=0)
            elif name in names:
                rows[name] = ops.take(ops.reshape(values, (-1,)),
                                      token if values.shape[1] == length else of_token)
        record = ops.floor_divide(self._source, length)         # -1: no token
        seen = ops.equal(record[:, :, None], record[:, None, :])
        if "input_mask" in rows:
            seen = ops.logical_and(seen, ops.cast(rows["input_mask"], "bool")[:, None, :])
        return {**rows, "input_mask": seen, "positions": token % length}

    def unpack_outputs(self, outputs: Mapping[str, Any], pool: Callable, input_mask: Any
                       ) -> dict[str, Any]:
        """Returns the outputs of a network for the records; maps of attention stay the rows'.
        `pool` is the network's."""
        unpacked = {name: self.unpack(outputs[name]) if name in _VECTORS else outputs[name]
                    for name in outputs}
        unpacked["layer_outputs"] = list(map(self.unpack, outputs["layer_outputs"]))
        return {**unpacked, "pooled_output": pool(unpacked["sequence_output"], input_mask)}

    def unpack(self, x: Tensor) -> Tensor:
        """float [R, S, H] -> [B, S, H]; padding has the vector of the first place."""
        return ops.take(ops.reshape(x, (-1, ops.shape(x)[-1])), self._place, axis=0)
