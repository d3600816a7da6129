"""Networks: from ids to named tensors."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submod_attrs={
    "encoder": ["BertEncoder"],
    "pooling": ["pool"],
})
