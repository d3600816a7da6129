"""The parts of a network, written with keras.ops alone so that they run on every Keras backend."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submod_attrs={
    "activations": ["ACTIVATIONS"],
    "base": ["FromConfig", "Tensor", "register"],
    "masks": ["causal_bias", "last_token", "padding_bias"],
    "seeds": ["dropout", "split_seed"],
    "transformer": ["Embeddings", "LayerNorm", "Residual", "SelfAttention",
                    "TransformerLayer"],
})
