"""Word vectors in the text format of word2vec, GloVe and fastText: a word and its numbers a line;
of word2vec and fastText the first line has the number of words and the width. Shapes: E width of a
vector, K tokens that have one."""

from collections.abc import Callable, Iterator

import numpy as np

from bert_tf.errors import InputError
from bert_tf.files import open_unpacked
from bert_tf.tokenization.base import Tokenizer


def read_word_vectors(path: str, flag: str, is_wanted: Callable[[str], bool] = lambda word: True
                      ) -> Iterator[tuple[str, np.ndarray]]:
    """Yields the words of a file, plain or compressed, that are wanted, and their vectors, float32
    [E]. A word may hold spaces, as some of GloVe's do. InputErrors name file and line."""
    width, is_empty = 0, True
    with open_unpacked(path) as file:
        for number, line in enumerate(file, 1):
            # Files hold words that were cut within a character.
            text = line.decode("utf-8", "replace").rstrip(" \t\r\n")
            if number == 1 and len(parts := text.split(" ")) == 2 and all(map(str.isdigit, parts)):
                width = int(parts[1])
                continue
            width, is_empty = width or text.count(" "), False
            word, *values = text.rsplit(" ", width)
            if len(values) == width > 0 and not is_wanted(word):
                continue
            try:
                vector = np.array(values, np.float32)
            except ValueError:
                vector = np.zeros(0, np.float32)
            if not width or len(vector) != width or not np.isfinite(vector).all():
                raise InputError(f"--{flag}: {path}, line {number} is not a word and {width} "
                                 "numbers; correct the line.")
            yield word, vector
    if is_empty:
        raise InputError(f"--{flag}: {path} has no vectors; name a file of word vectors.")


def vectors_of_tokens(path: str, tokenizer: Tokenizer, width: int, flag: str
                      ) -> tuple[np.ndarray, np.ndarray]:
    """Returns the ids of the tokens that a file has vectors of, int64 [K] in rising order, and
    these, float32 [K, E]; prints how many they are.

    The first line with exactly a token's text counts. Without such a line, if the tokenizer
    lower-cases, the first line counts whose word is the token in lower case. `width` is the E that
    the vectors must have, `flag` the name of the flag of the file, in errors."""
    _, first = next(read_word_vectors(path, flag))
    if len(first) != width:
        raise InputError(f"--{flag}: {path} has vectors of width {len(first)}, but the student's "
                         f"embedding_size is {width}; make them equal.")
    ids, lowers = tokenizer.vocabulary.ids, tokenizer.do_lower_case

    exact: dict[int, np.ndarray] = {}
    lowered: dict[int, np.ndarray] = {}
    for word, vector in read_word_vectors(
            path, flag, lambda word: word in ids or lowers and word.lower() in ids):
        if word in ids:
            exact.setdefault(ids[word], vector)
        else:
            lowered.setdefault(ids[word.lower()], vector)
    vectors = lowered | exact
    if not vectors:
        raise InputError(f"--{flag}: {path} has none of the vocabulary's tokens; name vectors for "
                         "the language of the vocabulary.")
    others = len(vectors) - len(exact)
    size = tokenizer.vocabulary.size
    print(f"{path}: vectors of {len(vectors):,} of {size:,} tokens ({len(vectors) / size:.1%})"
          f"{f', {others:,} of them in lower case alone' if others else ''}", flush=True)
    order = np.array(sorted(vectors), np.int64)
    return order, np.stack([vectors[index] for index in order.tolist()])
