"""One pass over texts: each text's attention maps, vectors and values, without padding."""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import tensorflow as tf
from keras import ops

from bert_tf.networks import attentions, first_state

# The parts that a `Reading` may hold in addition to the ids.
PARTS = ("attention", "hidden", "values")
# Outputs of T5 that hold the maps of its decoder.
_DECODER_MAPS = {"decoder": "attention_probs", "cross": "cross_attention_probs"}


@dataclasses.dataclass
class Reading:
    """A network's activations for one text of n tokens; parts that were not asked for are None.

    `input_ids` and `segment_ids` are int32 [n]. `attention` is float32 [L, N, n, n], probabilities:
    of XLNet's content stream, of T5's encoder; or [L, N, m, n] with `from_ids`, int32 [m], the
    tokens that attend, where these are not the attended ones. `hidden` is float32 [L + 1, n, H]:
    the first layer's input, then each layer's output, of which T5's last is normed. `values` are
    float32 [L, N, n, D], with their bias; a head outputs the product of its map and its values."""

    input_ids: np.ndarray
    segment_ids: np.ndarray
    attention: np.ndarray | None = None
    hidden: np.ndarray | None = None
    values: np.ndarray | None = None
    from_ids: np.ndarray | None = None


def read(encoder, batches: Iterable[dict[str, np.ndarray]], parts: tuple[str, ...] = PARTS
         ) -> Iterator[Reading]:
    """Yields the `Reading` of each text, with some of `PARTS`, without dropout. One batch is in
    memory at a time: input_ids, input_mask and segment_ids, integer [B, S], as
    `bert_tf.data.text.vectors.Texts` packs them."""
    run = compile_parts(encoder, parts)
    for batch in batches:
        activations = run(batch)
        for row, length in enumerate(np.asarray(batch["input_mask"]).sum(1)):
            crops = {"attention": np.s_[:, row, :, :length, :length],
                     "hidden": np.s_[:, row, :length], "values": np.s_[:, row, :, :length]}
            yield Reading(np.asarray(batch["input_ids"][row, :length]),
                          np.asarray(batch["segment_ids"][row, :length]),
                          **{part: activations[part][crops[part]] for part in parts})


def read_decoder(network, batches: Iterable[dict[str, np.ndarray]], maps: str) -> Iterator[Reading]:
    """Yields the `Reading` of each pair of source and target, with T5's decoder's attention.

    Batches have `encoder_input_tokens`, integer [B, S], and `decoder_input_tokens` [B, T], which
    begin with 0; both are padded with 0. With `maps` "decoder", target tokens attend to the target
    tokens up to each; with "cross", to the source."""
    @tf.function(autograph=False, reduce_retracing=True)
    def run(batch):
        return ops.cast(ops.stack(network(batch, return_attention=True)[_DECODER_MAPS[maps]]),
                        "float32")

    for batch in batches:
        attention = run({name: tf.constant(ids, tf.int32) for name, ids in batch.items()}).numpy()
        for row, target in enumerate(batch["decoder_input_tokens"]):
            target = target[:1 + np.count_nonzero(target[1:])]
            seen = target
            if maps == "cross":
                seen = batch["encoder_input_tokens"][row]
                seen = seen[:np.count_nonzero(seen)]
            yield Reading(seen, np.zeros_like(seen), attention[:, row, :, :len(target), :len(seen)],
                          from_ids=target if maps == "cross" else None)


def compile_parts(encoder, parts):
    """Compiles the function from features [B, S] to `parts` stacked over layers, float32: attention
    [L, B, N, S, S], hidden [L + 1, B, S, H], values [L, B, N, S, D]."""
    def stacked(tensors):
        return ops.cast(ops.stack(tensors), "float32")

    reads = getattr(encoder, "text_reads", encoder.reads)

    @tf.function(autograph=False, input_signature=[
        tf.TensorSpec([None, None], tf.int32, name) for name in reads])
    def run(*inputs):
        outputs = encoder(dict(zip(reads, inputs)), return_attention="attention" in parts)
        states = [first_state(outputs), *outputs["layer_outputs"]]
        readers = {"hidden": lambda: stacked(states),
                 "attention": lambda: stacked(outputs["attention_probs"]),
                 "values": lambda: stacked([
                     head_values(attention, x)
                     for attention, x in zip(attentions(encoder).values(), states[:-1])])}
        return {part: readers[part]() for part in parts}

    concrete = run.get_concrete_function()
    return lambda features: {part: value.numpy() for part, value in concrete(
        *(tf.constant(features[name], tf.int32) for name in reads)).items()}


def head_values(attention, x):
    """Returns the value vectors [B, N, S, D] of a layer of attention, from the input [B, S, H] of
    the layer that it begins."""
    config = attention.config
    if getattr(attention, "layer_norm", None):      # of T5 and ModernBERT
        x = attention.layer_norm(x)
    values = attention.value(x)
    if hasattr(attention, "split"):     # queries and keys are in front of the values
        *_, values = attention.split(values)
    values = ops.reshape(values, (
        *ops.shape(x)[:2], config.num_attention_heads, config.head_size))
    return ops.transpose(values, (0, 2, 1, 3))


def word_attention(attention: np.ndarray, words: Sequence[Sequence[int]], reading: str = "mean"
                   ) -> np.ndarray:
    """Turns maps [..., n, n] between tokens into maps [..., w, w] between words. `words` has the
    positions of each one's tokens, in order.

    The attention to a word is the sum of the attention to its tokens. The attention from a word is
    the "mean" over its tokens, as in the paper; its "first" token's, the original code's default;
    or the "max" of each column, scaled to sum 1."""
    starts = [positions[0] for positions in words]
    attention = np.add.reduceat(attention, starts, -1)
    if reading == "first":
        return attention[..., starts, :]
    if reading == "max":
        attention = np.maximum.reduceat(attention, starts, -2)
        return attention / attention.sum(-1, keepdims=True)
    counts = np.array([len(positions) for positions in words])
    return np.add.reduceat(attention, starts, -2) / counts[:, None]
