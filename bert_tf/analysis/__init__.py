"""Measures of a network's attention and vectors, taken as the papers took them. Shapes in this
package: n real tokens of a text, N heads, L layers, H hidden, D width of a head. Attention maps are
[..., from, to], and their rows sum to 1."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submod_attrs={
    "effective_attention": ["effective_attention", "left_null_space", "numerical_rank"],
    "gradients": ["attention_gradients", "mask_tokens"],
    "identifiability": ["Identification", "compare_maps", "identify", "summarize_attribution",
                        "token_attribution"],
    "identification": ["LinearProbe", "MlpProbe", "identified"],
    "interventions": ["disabled", "looks_at_distances", "sharing", "switch_off"],
    "reading": ["Reading", "read", "read_decoder", "word_attention"],
    "significance": ["p_value"],
    "statistics": ["Statistics", "agreement", "cosine", "distance_of_maximum", "jensen_shannon",
                   "largest_between", "largest_to", "pairwise_divergence", "scale", "token_kinds"],
    "windows": ["clark_segments", "encode_documents", "pack", "windows"],
})
