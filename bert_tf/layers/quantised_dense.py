"""Which dense layer rounds its numbers as a configuration says."""

from typing import Any

import keras

from bert_tf.config.quantisation import FLOAT_BITS, Quantisation
from bert_tf.layers.affine import AffineDense
from bert_tf.layers.quantisation import QuantisedDense


def quantised_dense(how: Quantisation, part: str, *args: Any, name: str, **kwargs: Any
                    ) -> keras.layers.Dense | None:
    """The dense layer of a part of a network, or None if that stays in float.

    Args:
        how: what is rounded.
        part: "layer" of the encoder, "pooler" or "head".
        name: of the layer; queries and keys are rounded, since they are multiplied.
        args, kwargs: further arguments of `keras.layers.Dense`.
    """
    # Of a layer of the encoder, `set_weight_bits` gives the bits.
    bits = {"layer": how.bits_of_layer(0), "pooler": how.pooler_bits, "head": how.head_bits}[part]
    if (part == "head" or how.scheme == "affine") and bits == FLOAT_BITS:
        return None
    kind = AffineDense if how.scheme == "affine" else QuantisedDense
    return kind(
        *args, name=name, how=how, bits=bits,
        start_step=how.head_start_step if part == "head" else how.start_step,
        requantises=part == "layer" and name in ("query", "key"), **kwargs)
