"""Generation with a network that predicts the next token (tensorflow/mesh,
`transformer/transformer.py`, `beam_search.py`), and with T5.

Shapes: B batch, K beams, R = B K rows, S tokens of the input, T tokens of the result, V vocabulary,
N heads, D width of a head.

A step of the network is a function of tokens, integer [R], the number of the step, and a state, a
list of tensors with R rows. It returns the logits of the next token, float32 [R, V], and the next
state, of the same shapes.
"""

from collections.abc import Callable, Sequence
from typing import Any

from keras import ops

from bert_tf.layers.base import Tensor
from bert_tf.layers.functions import argmax
from bert_tf.models.t5.layers import hide

_END = 1                # the token that ends a sequence
_NEVER = -1e9           # the score of a token that must not be chosen

Step = Callable[[Tensor, Tensor, list[Tensor]], tuple[Tensor, list[Tensor]]]


def greedy(logits: Tensor, step: Step, state: Sequence[Tensor], length: int) -> Tensor:
    """Takes the likeliest token each time until every row has an end, which the result includes:
    int32 [B, T], 0 after the end. `logits` are of the first token, float32 [B, V], `state` is
    before it; `length` is T, the most tokens."""
    batch, places = ops.shape(logits)[0], ops.arange(length)
    ids, done = ops.zeros((batch, length), "int32"), ops.zeros((batch,), "bool")

    def goes_on(number, ids, done, logits, state):
        return ops.logical_and(number < length, ops.logical_not(ops.all(done)))

    def take(number, ids, done, logits, state):
        token = ops.where(done, 0, argmax(logits))
        ids = ops.where(places[None] == number, token[:, None], ids)
        done = ops.logical_or(done, ops.equal(token, _END))
        logits, state = step(token, number, state)
        return number + 1, ids, done, logits, state

    return ops.while_loop(goes_on, take, (ops.cast(0, "int32"), ids, done, logits, list(state)))[1]


def _pick(values, choice):
    """Gathers values[b, choice[b, m]]: [B, N, ...] and integer [B, M] -> [B, M, ...]."""
    for _ in range(len(values.shape) - 2):
        choice = ops.expand_dims(choice, -1)
    shape = (*ops.shape(choice)[:2], *ops.shape(values)[2:])
    return ops.take_along_axis(values, ops.broadcast_to(choice, shape), axis=1)


def _score(total, number, alpha):
    """Log probabilities with the penalty of short sequences (arXiv:1609.08144, equation 14)."""
    return total / ops.power((5.0 + ops.cast(number, "float32")) / 6.0, alpha)


def beam_search(logits: Tensor, step: Step, state: Sequence[Tensor], length: int, beams: int = 4,
                alpha: float = 0.6) -> tuple[Tensor, Tensor]:
    """Each example's best sequence, its end included, where the `beams` best beginnings are kept.
    All rows continue until no beginning can surpass the ended sequences of its example.

    Args:
        logits: of the first token, float32 [B, V].
        state: before the first token; `step`'s has a row for each beam of an example, one after the
            other.
        length: T, the most tokens.
        alpha: of the length penalty, ((5 + length) / 6)^alpha.

    Returns:
        int32 [B, T], 0 after the end, and scores, float32 [B]; the best beginning for an example
            without an ended sequence.
    """
    batch, size = ops.shape(logits)
    places = ops.arange(length)
    sequences = ops.zeros((batch, beams, length), "int32")
    # All beams begin alike: only the first counts.
    totals = ops.broadcast_to(ops.where(ops.arange(beams) == 0, 0.0, _NEVER)[None], (batch, beams))
    first = (ops.cast(0, "int32"), sequences, totals, sequences, ops.full((batch, beams), _NEVER),
             ops.zeros((batch, beams), "bool"), ops.repeat(logits, beams, axis=0), list(state))

    def goes_on(number, alive, totals, ended, scores, is_ended, logits, state):
        best = _score(totals[:, 0], length, alpha)
        worst = ops.min(ops.where(is_ended, scores, 0.0), axis=1)
        worst = ops.where(ops.any(is_ended, axis=1), worst, _NEVER)
        return ops.logical_and(number < length, ops.logical_not(ops.all(worst > best)))

    def take(number, alive, totals, ended, scores, is_ended, logits, state):
        totals = ops.reshape(ops.log_softmax(logits), (batch, beams, size)) + totals[:, :, None]
        best, chosen = ops.top_k(ops.reshape(_score(totals, number + 1, alpha), (
            batch, beams * size)), 2 * beams)                                   # [B, 2K]
        chosen = ops.cast(chosen, "int32")
        parents, tokens = chosen // size, chosen % size
        grown = ops.where(places == number, tokens[:, :, None], _pick(alive, parents))
        ends = ops.equal(tokens, _END)
        candidates = ops.concatenate([scores, ops.where(ends, best, _NEVER)], axis=1)
        scores, picked = ops.top_k(candidates, beams)
        ended = _pick(ops.concatenate([ended, grown], axis=1), picked)
        is_ended = _pick(ops.concatenate([is_ended, ends], axis=1), picked)
        _, picked = ops.top_k(ops.where(ends, best + _NEVER, best), beams)
        totals = _pick(ops.reshape(totals, (batch, beams * size)), chosen)
        # An ended one is only kept where the vocabulary is too small for as many others.
        totals = _pick(ops.where(ends, _NEVER, totals), picked)
        alive, parents, tokens = (_pick(values, picked) for values in (grown, parents, tokens))
        rows = ops.reshape(parents + beams * ops.arange(batch, dtype="int32")[:, None], (-1,))
        logits, state = step(ops.reshape(tokens, (-1,)), number,
                             [ops.take(values, rows, axis=0) for values in state])
        return number + 1, alive, totals, ended, scores, is_ended, logits, state

    _, alive, totals, ended, scores, is_ended, *_ = ops.while_loop(goes_on, take, first)
    has_ended = ops.any(is_ended, axis=1)
    return (ops.where(has_ended[:, None], ended[:, 0], alive[:, 0]),
            ops.where(has_ended, scores[:, 0], totals[:, 0]))


def join(tokens: Tensor, targets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Joins inputs and targets in one row, as a language model reads them. `tokens`, integer [B,
    S], are padded with 0 on the right, the end included; `targets`, integer [B, T], are shifted
    right by one.

    Returns:
        the rows, int32 [B, S + T]: 0, the inputs, the targets, padding; int32 [B, S + T], 1 up to
            the last input, after which the first target is predicted; and the place in the row of
            the vector that predicts each target, int32 [B, T].
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
    """Returns the step function, from the keys and values of the encoder's output and the bias of
    their mask, `fixed`, or nothing; and the first token's place in its row, int32 [R]."""
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
