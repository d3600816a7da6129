"""Trains a WordPiece, byte-level BPE or SentencePiece vocabulary on your own text.

Words are cut exactly as the tokenizer cuts them, so the tokenizer can produce every token. The same
text and flags give the same files. Byte-level BPE has the special tokens of RoBERTa, and gpt_bpe is
GPT's encoding; both write merges.txt next to --output_file. SentencePiece has the special tokens of
ALBERT, XLNet or T5. elmo_words are words between white space, for the recipe elmo; sequence_words
are the words of the recipes lm_lstm and sa_lstm. In both the most frequent words come first.

The file tokenizer_config.json beside the vocabulary says how text is read: all commands, and
transformers, follow it. If --output_file does not have the usual name, or the folder holds another
vocabulary, the file begins with the vocabulary's name, as in my.txt.tokenizer_config.json.

With --init_vocab_file it adds words to a vocabulary: bert-build-vocab --init_vocab_file --help.

Example:
    bert-build-vocab --input_file=text.txt --output_file=vocab.txt --vocab_size=8000
    bert-build-vocab --input_file=text.txt --tokenizer=byte_bpe --output_file=bpe/vocab.json
    bert-build-vocab --input_file=text.txt --tokenizer=sentencepiece --output_file=spiece.model
"""

import collections
import dataclasses
import functools
import io
import json
import os
import tempfile
import typing
from collections.abc import Mapping, Sequence

import lazy_loader
import sentencepiece

from bert_tf import files, flags, signals
from bert_tf.data.text import corpus
from bert_tf.errors import InputError, warn
from bert_tf.flags import REQUIRED, only, option
from bert_tf.models.gpt import tokenizer as gpt_bpe
from bert_tf.models.recurrent.tokenizer import split_sequence
from bert_tf.tokenization import Tokenizer, byte_bpe, open_tokenizer, wordpiece
from bert_tf.tokenization.coverage import Coverage
from bert_tf.tokenization.encoding import slices
from bert_tf.tokenization.library_settings import new_settings_file
from bert_tf.tokenization.sentencepiece import ALBERT, T5, XLNET, Style, prepare
from bert_tf.tokenization.vocabulary import CLS, MASK, PADDING, SEP, UNKNOWN

tokenizers = lazy_loader.load("tokenizers")

_PIECE_BYTES = 1 << 22
_REPEATED = 1024        # of a word in one text of the library, which takes much memory for each
_ENDINGS = {"wordpiece": "", "byte_bpe": ".json", "sentencepiece": ".model", "gpt_bpe": ".json",
            "elmo_words": "", "sequence_words": ""}
# Advice where a tokenizer drops the marks of letters; the quickstart has --do_lower_case too.
_KEEPING_MARKS = {
    "wordpiece": "give --do_lower_case=False, which keeps them; bert-build-vocab "
                 "--strip_accents=False keeps them in lower-cased text",
    "sentencepiece": "bert-build-vocab --tokenizer=wordpiece --strip_accents=False keeps them"}
# Files next to --output_file.
_BESIDE = dict.fromkeys(("byte_bpe", "gpt_bpe"), [byte_bpe.MERGES_FILE])
# The marks that the vocabularies of ALBERT and XLNet hold as pieces of their own.
_MARKS = list("()\"-.–£€")


class _Pieces(typing.NamedTuple):
    """Pieces that a SentencePiece model needs in addition to the text's: `reserved`, the library's
    arguments for the ids of <unk> and others, -1 for none; `control`, which no text becomes; and
    `defined`, which text becomes wherever they are in it."""

    style: Style
    reserved: dict[str, int]
    control: list[str]
    defined: list[str]


_PIECES = {
    "albert": _Pieces(ALBERT, {"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1},
                      ["[CLS]", "[SEP]", "[MASK]"], _MARKS),
    "xlnet": _Pieces(XLNET, {"unk_id": 0, "bos_id": 1, "eos_id": 2, "pad_id": -1},
                     ["<cls>", "<sep>", "<pad>", "<mask>", "<eod>"], ["<eop>", *_MARKS]),
    "t5": _Pieces(T5, {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}, [], [])}


@dataclasses.dataclass
class BuildVocabFlags:
    """Text, and the vocabulary that is made of it."""

    input_file: list[str] = option(REQUIRED, "Text: files, globs or folders, plain or compressed.")
    output_file: str = option(
        REQUIRED, "File for the vocabulary: vocab.txt, vocab.json with byte_bpe, spiece.model "
        "with sentencepiece.")
    tokenizer: str = option("wordpiece", "The kind of tokenizer to train.", choices=tuple(_ENDINGS))
    sentencepiece_style: str = only("tokenizer", "sentencepiece")(
        "albert", "Model that sets the special tokens and the text normalisation of a "
        "SentencePiece model.",
        choices=tuple(_PIECES))
    vocab_size: int = option(
        30522, "Maximum number of tokens, special and unused ones included. A small text gives "
        "fewer.", least=6)
    do_lower_case: bool = option(
        True, "Lower-case the text and drop accents (byte_bpe, elmo_words and T5's SentencePiece "
        "keep the text as it is).")
    strip_accents: bool | None = only("tokenizer", "wordpiece")(
        None, "Drop accents: é becomes e, a Hangul syllable its letters. Default: as "
        "--do_lower_case.")
    min_frequency: int = only("tokenizer", *(kind for kind in _ENDINGS if kind != "sentencepiece"))(
        2, "Merge only pairs of pieces with at least this frequency; of whole words, keep only "
        "words with it.", least=1)
    limit_alphabet: int = only("tokenizer", "wordpiece", "gpt_bpe")(
        1000, "Maximum number of different characters; words with rarer characters become "
        "unknown.", least=1)
    num_unused: int = only("tokenizer", "wordpiece")(
        0, "Number of free tokens [unused0], [unused1], ... for words that are added later "
        "(Google's vocabularies have 994).", least=0)

    def check(self):
        flags.check(self)
        ending = _ENDINGS[self.tokenizer]
        if not self.output_file.endswith(ending):
            raise InputError(f"--output_file is {self.output_file}; with --tokenizer="
                             f"{self.tokenizer} its name must end in {ending}.")
        if self.num_unused > self.vocab_size:
            raise InputError(f"--num_unused={self.num_unused} is above --vocab_size="
                             f"{self.vocab_size}; give less.")


def count_words(paths: Sequence[str], job: BuildVocabFlags) -> collections.Counter:
    parts: collections.Counter = collections.Counter()
    style = _PIECES[job.sentencepiece_style].style

    def pieces_of(line):
        line = line.replace("\0", "")
        if style.prepares:
            line = prepare(line, job.do_lower_case, style.quotes)
        return line.split()

    cut = {"wordpiece": wordpiece.split_chunks,
           "byte_bpe": lambda line: [word.group() for word in byte_bpe.find_words(line)],
           "gpt_bpe": gpt_bpe.split_words, "elmo_words": str.split,
           "sequence_words": lambda line: split_sequence(line, job.do_lower_case),
           "sentencepiece": pieces_of}[job.tokenizer]
    boundary = wordpiece.BOUNDARY if job.tokenizer == "wordpiece" else byte_bpe.BOUNDARY
    for piece in corpus.read_pieces(paths, _PIECE_BYTES):
        for line in corpus.decode(piece, paths):
            for part in slices(line, boundary):
                parts.update(cut(part))
    words = parts
    if job.tokenizer == "wordpiece":
        words = collections.Counter()
        for chunk, count in parts.items():
            for word in wordpiece.split_words(chunk, job.do_lower_case, job.strip_accents):
                words[word] += count
    if not any(map(str.strip, words)):
        raise InputError(f"there is no word in {', '.join(map(str, paths))}; give files with text.")
    return words


def alphabet(words: Mapping[str, int], limit: int) -> tuple[list[str], list[str]]:
    """The `limit` most frequent characters of `words`, and those that continue a word."""
    counts, inside = collections.Counter[str](), set[str]()
    for word, count in words.items():
        inside.update(word[1:])
        for char in word:
            counts[char] += count
    frequent = sorted(sorted(counts), key=lambda char: -counts[char])[:limit]
    return sorted(frequent), sorted(inside.intersection(frequent))


def _check_room(first, job, what, advice):
    if len(first) > job.vocab_size:
        raise InputError(f"--vocab_size={job.vocab_size} is too small: {what} take {len(first)}; "
                         f"{advice}.")


def train_wordpiece(words: Mapping[str, int], job: BuildVocabFlags) -> dict[str, str]:
    starts, continuations = alphabet(words, job.limit_alphabet)
    first = [PADDING, UNKNOWN, CLS, SEP, MASK, *(f"[unused{i}]" for i in range(job.num_unused)),
             *starts, *(f"##{char}" for char in continuations)]
    _check_room(first, job, "special tokens and single characters",
                "raise it or lower --limit_alphabet")
    known = set(starts)
    model = tokenizers.models.WordPiece(unk_token=UNKNOWN)
    trained = _train(model, tokenizers.trainers.WordPieceTrainer, first, job, {
        word: count for word, count in words.items()
        if len(word) <= wordpiece.MAX_WORD_CHARS and known.issuperset(word)})
    ids = trained.get_vocab()
    return {"": "".join(f"{token}\n" for token in sorted(ids, key=ids.get))}


def train_byte_bpe(words: Mapping[str, int], job: BuildVocabFlags) -> dict[str, str]:
    first = [*byte_bpe.ANGLE_ROLES.values(), *byte_bpe.byte_characters()]
    _check_room(first, job, "special tokens and single bytes", "raise it")
    trained = _train(tokenizers.models.BPE(), tokenizers.trainers.BpeTrainer, first, job,
                     {"".join(byte_bpe.spell(word)): count for word, count in words.items()})
    return _bpe_files(trained)


def train_gpt_bpe(words: Mapping[str, int], job: BuildVocabFlags) -> dict[str, str]:
    known, _ = alphabet(words, job.limit_alphabet)
    first = ["<unk>", *known, *(char + gpt_bpe.END for char in known)]
    room = dataclasses.replace(job, vocab_size=job.vocab_size - len(gpt_bpe.ROLES))
    _check_room([*first, *gpt_bpe.ROLES], job, "single characters and special tokens",
                "raise it or lower --limit_alphabet")
    trained = _train(tokenizers.models.BPE(end_of_word_suffix=gpt_bpe.END),
                     functools.partial(tokenizers.trainers.BpeTrainer,
                                       end_of_word_suffix=gpt_bpe.END), first, room, {
        word: count for word, count in words.items() if set(known).issuperset(word)})
    return _bpe_files(trained)


def _bpe_files(trained):
    ids = trained.get_vocab()
    merges = json.loads(trained.to_str())["model"]["merges"]
    return {"": json.dumps({token: ids[token] for token in sorted(ids, key=ids.get)}),
            byte_bpe.MERGES_FILE: "#version: 0.2\n" + "".join(
                f"{left} {right}\n" for left, right in merges)}


def _train(model, trainer, first, job, words):
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    # The trainer numbers single characters in the random order of a hash table, and breaks ties by
    # these numbers; as "special tokens" they are numbered in our order.
    tokenizer.train_from_iterator(
        (f"{word} " * min(count - start, _REPEATED) for word, count in sorted(words.items())
         for start in range(0, count, _REPEATED)),
        trainer(vocab_size=job.vocab_size, min_frequency=job.min_frequency, special_tokens=first,
                show_progress=False))
    return tokenizer


def train_sentencepiece(words: Mapping[str, int], job: BuildVocabFlags) -> dict[str, bytes]:
    pieces, file = _PIECES[job.sentencepiece_style], io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=(f"{word}\t{count}" for word, count in sorted(words.items())),
            input_format="tsv", model_writer=file, model_type="unigram", vocab_size=job.vocab_size,
            hard_vocab_limit=False, **pieces.reserved, control_symbols=pieces.control,
            user_defined_symbols=pieces.defined, character_coverage=0.99995,
            max_sentence_length=1 << 20, num_threads=1, minloglevel=2)
    except RuntimeError as error:
        raise InputError(f"--vocab_size={job.vocab_size}: the text gives no vocabulary ({error}); "
                         "raise --vocab_size or give more text.") from error
    return {"": file.getvalue()}


def _frequent(words, job, first=(), last=()):
    special = {*first, *last}
    frequent = [word for word, count in sorted(words.items(), key=lambda item: (-item[1], item[0]))
                if count >= job.min_frequency and word not in special]
    frequent = frequent[:job.vocab_size - len(special)]
    return {"": "".join(f"{token}\n" for token in (*first, *frequent, *last))}


_TRAINERS = {"wordpiece": train_wordpiece, "byte_bpe": train_byte_bpe,
             "sentencepiece": train_sentencepiece, "gpt_bpe": train_gpt_bpe,
             "elmo_words": functools.partial(_frequent, first=("<S>", "</S>", "<UNK>")),
             "sequence_words": functools.partial(_frequent, last=("</s>",))}


def report(words: Mapping[str, int], tokenizer: Tokenizer) -> str:
    vocabulary, total = tokenizer.vocabulary, sum(words.values())
    if tokenizer.name.endswith("_words"):
        known = set(vocabulary.tokens[:vocabulary.size])
        share = sum(count for word, count in words.items() if word in known) / total
        return (f"{vocabulary.size:,} tokens of {len(words):,} different words: {share:.2%} of "
                f"{total:,} words.")
    pieces = unknown = 0
    for word, count in words.items():
        ids = tokenizer.encode(word)
        pieces += count * len(ids)
        unknown += count * ids.count(vocabulary.unk_id)
    return (f"{vocabulary.size:,} tokens from {total:,} words ({len(words):,} different): "
            f"{pieces / total:.3f} pieces a word, {100 * unknown / max(pieces, 1):.3f}% "
            f"{vocabulary.special['unk']}.")


def _opened(contents, job):
    """The tokenizer of a vocabulary's files, by the names in `_TRAINERS`' results."""
    accents = {} if job.strip_accents is None else {"strip_accents": job.strip_accents}
    name = os.path.basename(job.output_file)
    with tempfile.TemporaryDirectory() as folder:
        for beside, content in contents.items():
            with files.write_aside(os.path.join(folder, beside or name), "wb") as file:
                file.write(content)
        return open_tokenizer(os.path.join(folder, name), job.do_lower_case, saved=accents)


def main(job: BuildVocabFlags) -> None:
    job.check()
    files.check_file(job.output_file, "output_file")
    folder = os.path.dirname(job.output_file)
    places = {"": job.output_file, **{name: os.path.join(folder, name)
                                      for name in _BESIDE.get(job.tokenizer, ())}}
    outputs = list(places.values())
    paths = files.find_files(job.input_file, "input_file", outputs)
    files.warn_of_tables(paths)
    files.make_folder(folder, "output_file")
    with files.locked(job.output_file, "--output_file"):
        flags.keep(job, folder, os.path.basename(job.output_file) + ".")
        files.announce_replacing([*outputs, new_settings_file(job.output_file)])
        words = count_words(paths, job)
        with signals.left_to_the_system():      # SentencePiece may train for minutes
            contents = {name: content if isinstance(content, bytes) else content.encode("utf-8")
                        for name, content in _TRAINERS[job.tokenizer](words, job).items()}
        tokenizer = _opened(contents, job)
        tokenizer.describe_beside(job.output_file)
        # The vocabulary comes last: where there is one, all that belongs to it is there too.
        for name in sorted(contents, reverse=True):
            with files.write_aside(places[name], "wb") as file:
                file.write(contents[name])
    print(f"{job.output_file}: {report(words, tokenizer)}")
    sentinels = sum("<extra_id_" in token for token in tokenizer.vocabulary.tokens)
    if sentinels:
        print(f"{sentinels} of them are the sentinels of T5, beside --vocab_size.")
    if tokenizer.vocabulary.size - sentinels < job.vocab_size:
        print(f"The text gave fewer tokens than --vocab_size={job.vocab_size}.")
    if job.tokenizer in _KEEPING_MARKS and job.strip_accents is None:
        piece, coverage = next(iter(corpus.read_pieces(paths, _PIECE_BYTES))), Coverage()
        coverage.watch(tokenizer).encode_lines([
            line[:_PIECE_BYTES] for line in corpus.decode(piece, paths)])
        if coverage.loses_marks:
            warn(f"{coverage.lost_letters}: {_KEEPING_MARKS[tokenizer.name]}.")


if __name__ == "__main__":
    flags.run(main, BuildVocabFlags)
