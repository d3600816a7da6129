"""Weights in every format: one table of names each, read in both directions."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=["folders", "google", "huggingface", "keras_file", "keras_hub", "model_garden",
                "names", "sealed", "training_checkpoint"],
    submod_attrs={
        "account": ["Account"],
        "loading": ["config_of", "load", "read", "read_config", "read_for", "read_source"],
        "weights": ["Weights"],
    })
