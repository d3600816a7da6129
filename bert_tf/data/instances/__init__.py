"""Instances of pre-training, made of segments and masks."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submodules=["statistics"])
