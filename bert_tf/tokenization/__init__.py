"""From text to vocabulary ids, one file an algorithm."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submod_attrs={
    "base": ["Tokenizer", "find_vocabulary", "open_tokenizer"],
    "byte_bpe": ["ByteBpeTokenizer"],
    "sentencepiece": ["SentencepieceTokenizer"],
    "vocabulary": ["Layout", "Vocabulary", "check_case", "check_fits", "is_unused",
                   "looks_lower_case"],
    "wordpiece": ["WordpieceTokenizer", "split_chunks", "split_words"],
    "wordpiece_graph": ["WordpieceGraph"],
})
