"""The sentencepiece.bpe.model of XLM-RoBERTa and CamemBERT, which the library tokenizers reads, in
fairseq's numbering: its own tokens come first, then the file's pieces, and <mask> last."""

import dataclasses
import os
import struct
from collections.abc import Sequence
from typing import Any

from bert_tf.errors import InputError
from bert_tf.protobuf import fields
from bert_tf.tokenization.library_settings import kind_beside
from bert_tf.tokenization.library_tokenizer import LibraryTokenizer, LibraryVocabulary, described_by
from bert_tf.tokenization.vocabulary import read_vocabulary_file

FILE = "sentencepiece.bpe.model"
# Fields of SentencePiece's protocol buffer: ModelProto.pieces with text, score and type;
# trainer_spec with model_type; normalizer_spec with precompiled_charsmap.
_PIECES, _TRAINER, _NORMALIZER = 1, 2, 3
_TEXT, _SCORE, _TYPE, _USER_DEFINED = 1, 2, 3, 4
_MODEL_TYPE, _IS_UNIGRAM, _CHARSMAP = 3, 1, 2


@dataclasses.dataclass(frozen=True)
class _Numbering:
    """How a class of transformers numbers the pieces of a file."""

    library_class: str
    first: tuple[str, ...]  # the tokens before the file's
    replaced: int   # number of the file's pieces that these replace
    takes_blank: bool = False   # <mask> takes the blank before it (transformers 5)


# By the kinds of `kind_beside`.
_NUMBERINGS = {
    "xlmroberta": _Numbering("XLMRobertaTokenizer", ("<s>", "<pad>", "</s>", "<unk>"), 3),
    "camembert": _Numbering("CamembertTokenizer", (
        "<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED"), 1, takes_blank=True)}
_UNKNOWN_ID = 3
_SCORES = {"<unk>NOTUSED": -100.0}      # as in transformers


class UnigramTokenizer(LibraryTokenizer):
    """Text -> ids of such a file, as transformers computes them."""

    @classmethod
    def reads(cls, path):
        return kind_beside(path) in _NUMBERINGS

    @staticmethod
    def read_vocabulary(path):
        content = read_vocabulary_file(path, f"give the path of a {FILE}")
        source, numbering = f"vocabulary {path!r}", _NUMBERINGS[kind_beside(path)]
        if not is_unigram(content):
            raise InputError(f"{source} is not a Unigram model of SentencePiece; give the path of "
                             f"a {FILE}.")
        from tokenizers import AddedToken, processors

        pieces = [{number: value for number, _, value in fields(piece)}
                  for number, _, piece in fields(content) if number == _PIECES]
        scored = [*((token, _SCORES.get(token, 0.0)) for token in numbering.first),
                  *((piece[_TEXT].decode(), *struct.unpack("<f", piece[_SCORE]))
                    for piece in pieces[numbering.replaced:]), ("<mask>", 0.0)]
        made = pipeline(scored, _UNKNOWN_ID, charsmaps(content))
        made.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>",
                                 AddedToken("<mask>", lstrip=numbering.takes_blank)])
        made.add_tokens([AddedToken(piece[_TEXT].decode(), normalized=False) for piece in pieces
                         if piece.get(_TYPE) == _USER_DEFINED])
        made.post_processor = processors.TemplateProcessing(
            "<s> $A </s>", "<s> $A </s> </s> $B </s>",
            [(token, made.token_to_id(token)) for token in ("<s>", "</s>")])
        described, named = described_by(os.path.dirname(path))
        return LibraryVocabulary(
            made.to_str().encode(), source,
            {"tokenizer_class": numbering.library_class, **described}, named, {FILE: content})


def pipeline(pieces: Sequence[tuple[str, float]], unk_id: int, steps: Sequence[Any]) -> Any:
    """Returns a `tokenizers.Tokenizer` that normalises a text by `steps`, and cuts its words into
    pieces, given with their scores, as SentencePiece's Unigram does."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

    made = Tokenizer(models.Unigram(pieces, unk_id))
    made.normalizer = normalizers.Sequence(list(steps))
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    made.decoder = decoders.Metaspace()
    return made


def charsmaps(content: bytes) -> list[Any]:
    """Returns the step that changes characters as a model of SentencePiece does, if it does."""
    from tokenizers import normalizers

    return [normalizers.Precompiled(table)
            for table in _values(content, _NORMALIZER, _CHARSMAP) if table]


def is_unigram(content: bytes) -> bool:
    """Whether the content of a file is a model of SentencePiece of this kind."""
    try:
        return {*_values(content, _TRAINER, _MODEL_TYPE)} <= {_IS_UNIGRAM}
    except (TypeError, ValueError):     # no protocol buffer
        return False


def _values(content, message, field):
    """The values of a field in the messages with a number."""
    return [value for number, _, within in fields(content)
            if number == message for inner, _, value in fields(within) if inner == field]
