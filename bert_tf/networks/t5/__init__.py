"""The network of T5, and the layers that only that network has."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submod_attrs={"network": ["T5"]})
