"""The parts of a network, written with keras.ops alone so that they run on every Keras backend."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submod_attrs={
    "activations": ["ACTIVATIONS"],
    "attention": ["SelfAttention", "padding_bias"],
    "base": ["FromConfig", "register"],
    "dropout": ["dropout", "split_seed"],
    "embeddings": ["Embeddings"],
    "layer_norm": ["LayerNorm"],
    "transformer": ["Residual", "TransformerLayer"],
})
