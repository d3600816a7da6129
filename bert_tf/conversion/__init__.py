"""From one format of weights to another, file to file."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=["vocabulary_growth"],
    submod_attrs={
        "convert": ["FORMATS", "Changes", "convert"],
    })
