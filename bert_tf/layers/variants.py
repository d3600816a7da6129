"""The table of what other systems put in the place of a part of BERT's network."""

import importlib
from collections.abc import Callable
from typing import Any

import keras

# Of each part: whether a configuration replaces it, and what makes the replacement.
_VARIANTS: dict[str, tuple[Callable[[Any], Any], str, str]] = {
    "attention": (lambda config: keras.config.backend() == "jax" and not hasattr(
        config, "relative_attention_num_buckets"), "layers.fused_attention", "attend"),
    "dense": (lambda config: config.quantisation, "layers.quantisation", "make_dense"),
    "output_bias": (lambda config: not getattr(config, "decoder_bias", True),
                    "models.modernbert.layers", "no_bias"),
    "output_table": (lambda config: config.prediction_width > config.embedding_width,
                     "models.mobilebert.layers", "WiderTable"),
    "prediction_layer": (lambda config: config.model_type == "modernbert",
                         "models.modernbert.layers", "HiddenLayer"),
    "reader": (lambda config: True, "objectives.lstms", "HeadReader"),      # of a head
    "rounded_dense": (lambda config: config.quantisation.scheme == "affine",
                      "models.mobilebert.affine", "AffineDense"),
}


def variant(part: str, config: Any) -> Any:
    """What makes a part of a configuration's network; None where BERT's own code makes it."""
    applies, module, name = _VARIANTS[part]
    if not applies(config):
        return None
    return getattr(importlib.import_module(f"bert_tf.{module}"), name)
