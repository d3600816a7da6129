"""Maskings: a file for each way to choose and hide tokens, in records and while training."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, submod_attrs={"base": ["Masking", "find"]})
