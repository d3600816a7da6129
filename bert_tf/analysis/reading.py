"""One pass over texts: the attention maps, vectors and values of each, without padding."""

import dataclasses
from collections.abc import Iterable, Iterator

import numpy as np
import tensorflow as tf
from keras import ops

# What a `Reading` may hold beside the ids.
PARTS = ("attention", "hidden", "values")


@dataclasses.dataclass
class Reading:
    """What a network did with one text of n tokens.

    Attributes:
        input_ids: int32 [n].
        segment_ids: int32 [n].
        attention: float32 [L, N, n, n], the probabilities; None if not asked for, as the next.
        hidden: float32 [L + 1, n, H]: what the first layer reads, then the output of each layer.
        values: float32 [L, N, n, D], the heads' value vectors, with their bias.
    """

    input_ids: np.ndarray
    segment_ids: np.ndarray
    attention: np.ndarray | None = None
    hidden: np.ndarray | None = None
    values: np.ndarray | None = None


def read(encoder, batches: Iterable[dict[str, np.ndarray]], parts: tuple[str, ...] = PARTS
         ) -> Iterator[Reading]:
    """Yields the `Reading` of each text, without dropout. One batch is in memory at a time.

    Args:
        encoder: `BertEncoder`.
        batches: dicts of input_ids, input_mask and segment_ids, integer [B, S], as
            `bert_tf.data.text.vectors.Texts` packs them.
        parts: some of `PARTS`.
    """
    run = compile_parts(encoder, parts)
    for batch in batches:
        found = run(batch)
        for row, length in enumerate(np.asarray(batch["input_mask"]).sum(1)):
            crops = {"attention": np.s_[:, row, :, :length, :length],
                     "hidden": np.s_[:, row, :length], "values": np.s_[:, row, :, :length]}
            yield Reading(np.asarray(batch["input_ids"][row, :length]),
                          np.asarray(batch["segment_ids"][row, :length]),
                          **{part: found[part][crops[part]] for part in parts})


def compile_parts(encoder, parts):
    """The compiled function from features [B, S] to a dict of `parts`, stacked over layers:
    attention [L, B, N, S, S], hidden [L + 1, B, S, H], values [L, B, N, S, D], all float32."""
    def stacked(tensors):
        return ops.cast(ops.stack(tensors), "float32")

    @tf.function(autograph=False, input_signature=[
        tf.TensorSpec([None, None], tf.int32, name) for name in encoder.reads])
    def run(*inputs):
        features = dict(zip(encoder.reads, inputs))
        outputs = encoder(features, return_attention="attention" in parts)
        states = [first_states(encoder, outputs["embedding_output"]), *outputs["layer_outputs"]]
        found = {"hidden": lambda: stacked(states),
                 "attention": lambda: stacked(outputs["attention_probs"]),
                 "values": lambda: stacked([
                     head_values(encoder, layer, x)
                     for layer, x in enumerate(states[:-1])])}
        return {part: found[part]() for part in parts}

    concrete = run.get_concrete_function()
    return lambda features: {part: value.numpy() for part, value in concrete(
        *(tf.constant(features[name], tf.int32) for name in encoder.reads)).items()}


def first_states(encoder, embeddings):
    """What the first layer reads [B, S, H], from the output of the embeddings [B, S, E]."""
    project = encoder.embeddings_project
    return project(embeddings) if project else embeddings


def head_values(encoder, layer, x):
    """The value vectors [B, N, S, D] of a layer's heads, from what the layer reads [B, S, H]."""
    heads, size = encoder.config.num_attention_heads, encoder.config.head_size
    values = encoder.layers_[layer].attention.value(x)
    values = ops.reshape(values, (*ops.shape(x)[:2], heads, size))
    return ops.transpose(values, (0, 2, 1, 3))
