"""Text as tokens, and the random streams that all drawing uses."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submodules=["corpus", "vectors"])
