"""From text to vocabulary ids, one file an algorithm."""

import lazy_loader

# class -> (module, endings of its vocabulary files, names of these files in a folder). The first
# row whose ending fits and whose class `reads` a file opens it, else WordPiece.
TOKENIZERS = {
    "LibraryTokenizer": ("tokenization.library_tokenizer", ("tokenizer.json",), ()),
    "GptTokenizer": ("models.gpt.tokenizer", (".json",), ("encoder_bpe_40000.json",)),
    "ByteBpeTokenizer": ("tokenization.byte_bpe", (".json",), ("vocab.json", "encoder.json")),
    "UnigramTokenizer": ("tokenization.unigram", (".model",), ()),
    "SentencepieceTokenizer": ("tokenization.sentencepiece", (".model",),
                               ("spiece.model", "spm.model", "*.model")),
    "WordpieceTokenizer": ("tokenization.wordpiece", ("",), ("vocab.txt",)),
    "ElmoTokenizer": ("models.recurrent.tokenizer", ("",), ()),
    "SequenceTokenizer": ("models.recurrent.tokenizer", ("",), ()),
}

_EXPORTS = {
    "tokenization.base": ["Tokenizer", "check_case", "check_sentinels", "default_case",
                          "find_vocabulary", "open_tokenizer"],
    "tokenization.added": ["AddingTokenizer"],
    "tokenization.dual": ["DualTokenizer", "DualVocabulary"],
    "tokenization.vocabulary": ["Layout", "Vocabulary", "check_fits", "is_unused"],
    "tokenization.wordpiece": ["split_chunks", "split_words"],
    "tokenization.wordpiece_graph": ["WordpieceGraph"],
}
for _name, (_module, *_) in TOKENIZERS.items():
    _EXPORTS.setdefault(_module, []).append(_name)

__getattr__, __dir__, __all__ = lazy_loader.attach("bert_tf", submod_attrs=_EXPORTS)
__all__ += ["TOKENIZERS"]
