"""The parts of networks, written with keras.ops alone so that they run on every Keras backend.

Every `dropout_seed` is integer [2]; None means no dropout.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submod_attrs={
    "base": ["FromConfig", "register"],
    "functions": ["ACTIVATIONS", "Tensor", "causal_bias", "dropout", "last_token", "pool",
                  "split_seed"],
})
