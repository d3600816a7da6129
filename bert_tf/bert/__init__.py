"""BERT itself, without its relatives: its sizes, layers, network, and pre-training objectives."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submod_attrs={
    "config": ["BertConfig"],
    "layers": ["Embeddings", "LayerNorm", "Residual", "SelfAttention", "TransformerLayer"],
    "network": ["Bert"],
    "objective": ["MaskedLM", "SentencePrediction"],
})
