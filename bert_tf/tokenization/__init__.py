"""From text to vocabulary ids, one file an algorithm."""

import lazy_loader

# class -> (module, endings of its vocabulary files, names of these files in a folder). The first
# row whose ending fits and whose class `reads` a file opens it.
TOKENIZERS = {
    "GptTokenizer": ("gpt_bpe", (".json",), ("encoder_bpe_40000.json",)),
    "ByteBpeTokenizer": ("byte_bpe", (".json",), ("vocab.json", "encoder.json")),
    "SentencepieceTokenizer": ("sentencepiece", (".model",), ("spiece.model", "*.model")),
    "ElmoTokenizer": ("words", ("",), ()),
    "SequenceTokenizer": ("words", ("",), ()),
    "WordpieceTokenizer": ("wordpiece", ("",), ("vocab.txt",)),
}

_EXPORTS = {
    "base": ["Tokenizer", "check_case", "check_sentinels", "default_case", "find_vocabulary",
             "open_tokenizer"],
    "added": ["AddingTokenizer"],
    "dual": ["DualTokenizer", "DualVocabulary"],
    "vocabulary": ["Layout", "Vocabulary", "check_fits", "is_unused"],
    "wordpiece": ["split_chunks", "split_words"],
    "wordpiece_graph": ["WordpieceGraph"],
}
for _name, (_module, *_) in TOKENIZERS.items():
    _EXPORTS.setdefault(_module, []).append(_name)

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submod_attrs=_EXPORTS)
__all__ += ["TOKENIZERS"]
