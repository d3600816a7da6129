"""Weights in every format: one table of names each, read in both directions. Reading a format
imports that format's module and no other's."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=["checksummed", "google", "huggingface", "keras_file", "keras_hub", "model_garden",
                "names", "rules", "training_checkpoint"],
    submod_attrs={
        "config_file": ["read_config_file"],
        "conversion": ["Changes", "convert"],
        "loading": ["FORMATS", "check_exists", "config_of", "load", "read", "read_config",
                    "read_for", "read_source", "weights_at"],
        "weights": ["Account", "Weights"],
    })
