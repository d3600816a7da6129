"""Which tokens are masked, when records are made and while training: a file for each masking."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, submod_attrs={"base": ["Masking", "find"]})
