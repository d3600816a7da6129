"""From text to vocabulary ids, one file an algorithm."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submod_attrs={
    "alignment": ["aligned_words"],
    "vocabulary": ["Vocabulary", "is_unused"],
    "wordpiece": ["WordpieceTokenizer"],
    "wordpiece_graph": ["WordpieceGraph"],
    "words": ["split_chunks", "split_words"],
})
