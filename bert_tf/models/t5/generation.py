"""Generation with T5, token by token.

Shapes: B batch, S tokens of the input, T tokens of the result, N heads, D width of a head.
"""

from typing import Any

from keras import ops

from bert_tf.layers.base import Tensor
from bert_tf.models.t5.decoding import beam_search, greedy
from bert_tf.models.t5.stack import hide


def join(tokens: Tensor, targets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Joins inputs and targets in one row, as a language model reads them.

    Args:
        tokens: inputs, integer [B, S], padded with 0 on the right, the end included.
        targets: shifted right by one, integer [B, T].

    Returns:
        the rows, int32 [B, S + T]: 0, the inputs, the targets, padding; int32 [B, S + T], 1 up to
        the last input, after which the first target is predicted; and the place in the row of the
        vector that predicts each target, int32 [B, T].
    """
    tokens, targets = ops.cast(tokens, "int32"), ops.cast(targets, "int32")
    size, length = ops.shape(tokens)[1], ops.shape(targets)[1]
    count = ops.sum(ops.cast(ops.not_equal(tokens, 0), "int32"), axis=1)[:, None]   # [B, 1]
    place = ops.arange(size + length, dtype="int32")[None]                          # [1, S + T]
    # 0, the inputs with their padding, the targets without the first, which is 0, and 0.
    values = ops.pad(ops.concatenate([tokens, targets[:, 1:]], axis=1), ((0, 0), (1, 1)))
    source = ops.where(place <= count, place, ops.minimum(place + size - count, size + length))
    return (ops.take_along_axis(values, source, axis=1), ops.cast(place <= count, "int32"),
            count + ops.arange(length, dtype="int32")[None])


def generate(network: Any, tokens: Tensor, length: int, beams: int, alpha: float) -> Tensor:
    """See `T5.generate`."""
    start = _after_encoder if network.encoder_stack else _after_prompt
    logits, cache, fixed, first = start(network, tokens, length)
    if beams > 1:
        cache, fixed, (first,) = ([ops.repeat(values, beams, axis=0) for values in rows]
                                  for rows in (cache, fixed, [first]))
    step = _step(network, fixed, first)
    if beams > 1:
        return beam_search(logits, step, cache, length, beams, alpha)[0]
    return greedy(logits, step, cache, length)


def _step(network, fixed, first):
    """Returns the step function of `decoding`.

    Args:
        fixed: keys and values of the encoder's output, and the bias of their mask; or nothing.
        first: the place of the first token in its row, int32 [R].
    """
    *memory, bias = fixed or [None]

    def step(ids, number, cache):
        x = network.embeddings(ids[:, None])
        x, cache = network.decoder_stack.step(x, number + first, cache, memory, bias)
        return network.logits(x)[:, 0], cache

    return step


def _after_encoder(network, tokens, length):
    """The logits of the first token, the cache, the constant tensors, and the first place."""
    encoded, config = network.encode(tokens), network.config
    fixed = [values for layer in network.decoder_stack.layers_
             for values in layer.cross_attention.keys_and_values(encoded["output"])]
    rows = ops.shape(tokens)[0]
    cache = [ops.zeros((rows, config.num_heads, length, config.d_kv), values.dtype)
             for values in fixed]
    fixed.append(hide(ops.not_equal(encoded["segments"], 0))[:, None, None, :])
    start = ops.zeros((rows,), "int32")
    logits, cache = _step(network, fixed, start)(start, 0, cache)
    return logits, cache, fixed, start + 1


def _after_prompt(network, tokens, length):
    """Returns the same for a language model, which reads the inputs all at once."""
    joined, seen, place = join(tokens, ops.zeros_like(tokens[:, :1]))
    decoded = network.decode(joined, seen=seen)
    x = ops.take_along_axis(decoded["output"], place[:, :, None], axis=1)
    cache = [ops.pad(values, ((0, 0), (0, 0), (0, length), (0, 0)))
             for layer in decoded["layers"] for values in layer["cache"]]
    return network.logits(x)[:, 0], cache, [], place[:, 0] + 1
