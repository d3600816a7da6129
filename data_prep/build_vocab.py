"""Trains a WordPiece vocabulary on one's own text and writes it as vocab.txt.

The words are cut exactly as `WordpieceTokenizer` cuts them, so every piece can be reached. The
same text and flags give the same file.

Example:
    bert-build-vocab --input_file=text.txt --output_file=vocab.txt --vocab_size=8000
"""

import collections
import dataclasses
import os

from bert_tf import flags
from bert_tf.data import corpus
from bert_tf.errors import InputError
from bert_tf.files import find_files, make_folder, write_aside
from bert_tf.flags import REQUIRED, option
from bert_tf.tokenization.vocabulary import CLS, MASK, PADDING, SEP, UNKNOWN, Vocabulary
from bert_tf.tokenization.wordpiece import (
    MAX_WORD_CHARS,
    WordpieceTokenizer,
    split_chunks,
    split_words,
)

_PIECE_BYTES = 1 << 22


@dataclasses.dataclass
class Job:
    """The flags."""

    input_file: list[str] = option(REQUIRED, "Text: files, globs or folders, plain or .gz.")
    output_file: str = option(REQUIRED, "Where vocab.txt goes.")
    vocab_size: int = option(30522, "Most tokens, special and unused ones included. A small text "
                             "gives fewer.")
    do_lower_case: bool = option(True, "Lower-case the text and drop accents.")
    min_frequency: int = option(2, "How often two pieces must meet to become one.")
    limit_alphabet: int = option(1000, "Most different characters; words that hold a rarer one "
                                 "become [UNK].")
    num_unused: int = option(0, "Slots [unused0], [unused1], ... to fill later (Google's "
                             "vocabularies have 994).")

    def check(self):
        """Raises InputError for values that cannot work."""
        for name, least in (("vocab_size", 6), ("min_frequency", 1), ("limit_alphabet", 1),
                            ("num_unused", 0)):
            if getattr(self, name) < least:
                raise InputError(f"--{name} is {getattr(self, name)}; it must be at least {least}.")


def count_words(paths, lower):
    """How often each word stands in the files.

    Raises:
        InputError: a file is not UTF-8, is a damaged .gz, or no file has a word.
    """
    chunks = collections.Counter()
    for piece in corpus.read_pieces(paths, _PIECE_BYTES):
        for line in corpus.decode(piece, paths):
            chunks.update(split_chunks(line))
    words = collections.Counter()
    for chunk, count in chunks.items():
        for word in split_words(chunk, lower):
            words[word] += count
    if not words:
        raise InputError(f"there is no word in {', '.join(map(str, paths))}; give files with text.")
    return words


def alphabet(words, limit):
    """The `limit` most frequent characters of `words`, and those that continue a word."""
    counts, inside = collections.Counter(), set()
    for word, count in words.items():
        inside.update(word[1:])
        for char in word:
            counts[char] += count
    kept = sorted(sorted(counts), key=lambda char: -counts[char])[:limit]
    return sorted(kept), sorted(inside.intersection(kept))


def train(words, job):
    """The tokens of a vocabulary for `words`, in the order of their ids.

    Raises:
        InputError: --vocab_size has no room for the characters alone.
    """
    # Imported here, so that those who only tokenize don't need the library.
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    starts, continuations = alphabet(words, job.limit_alphabet)
    first = [PADDING, UNKNOWN, CLS, SEP, MASK, *(f"[unused{i}]" for i in range(job.num_unused)),
             *starts, *(f"##{char}" for char in continuations)]
    if len(first) > job.vocab_size:
        raise InputError(
            f"--vocab_size={job.vocab_size} is too small: special tokens and single characters "
            f"take {len(first)}; raise it or lower --limit_alphabet.")
    known = set(starts)
    trained = (f"{word} " * count for word, count in sorted(words.items())
               if len(word) <= MAX_WORD_CHARS and known.issuperset(word))
    tokenizer = Tokenizer(models.WordPiece(unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    # The trainer numbers continuing characters in the random order of a hash table, and breaks
    # ties by these numbers; as "special tokens" they are numbered in our order.
    tokenizer.train_from_iterator(trained, trainers.WordPieceTrainer(
        vocab_size=job.vocab_size, min_frequency=job.min_frequency, special_tokens=first,
        show_progress=False))
    ids = tokenizer.get_vocab()
    return sorted(ids, key=ids.get)


def report(words, vocabulary, lower):
    """A sentence on how `vocabulary` covers `words`."""
    tokenizer = WordpieceTokenizer(vocabulary, lower)
    pieces = unknown = 0
    for word, count in words.items():
        ids = tokenizer.encode(word)
        pieces += count * len(ids)
        unknown += count * ids.count(vocabulary.unk_id)
    total = sum(words.values())
    return (f"{vocabulary.size} tokens from {total} words ({len(words)} different): "
            f"{pieces / total:.3f} pieces a word, {100 * unknown / total:.3f}% [UNK].")


def main(job):
    """Trains and writes the vocabulary.

    Raises:
        InputError: a flag, a file or the text can't be used.
    """
    job.check()
    paths = find_files(job.input_file, "input_file")
    make_folder(os.path.dirname(job.output_file), "output_file")
    words = count_words(paths, job.do_lower_case)
    vocabulary = Vocabulary(train(words, job))
    with write_aside(job.output_file, newline="\n") as file:
        file.writelines(f"{token}\n" for token in vocabulary.tokens)
    print(f"{job.output_file}: {report(words, vocabulary, job.do_lower_case)}")
    if vocabulary.size < job.vocab_size:
        print(f"The text gave fewer tokens than --vocab_size={job.vocab_size}.")


def run():
    """The command bert-build-vocab."""
    flags.run(main, Job)


if __name__ == "__main__":
    run()
