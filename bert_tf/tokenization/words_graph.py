"""From text to words inside a TensorFlow graph: the steps of `words.split_words`.

tensorflow-text's own normaliser is not used: it folds characters (ß, full-width forms, ™) that the
original keeps.
"""

import functools
import itertools

import tensorflow as tf
import tensorflow_text as tf_text

from bert_tf.tokenization import characters
from bert_tf.tokenization.words import split_words

# The characters that text is made of: of the planes left out, none is assigned but private ones.
_NOT_ASCII = [chr(code) for code in (*range(0x80, 0xD800), *range(0xE000, 0x32000),
                                     *range(0xE0000, 0xE0200))]


def valid(strings):
    """string [B] without the bytes that are not UTF-8, which the original drops."""
    return tf.strings.unicode_transcode(strings, "UTF-8", "UTF-8", errors="ignore")


def refuse(wrong, text, reason):
    """`text` (string [B]), with an error that names those for which `wrong` (bool [B]) holds."""
    message = f"{reason}; leave it out or use the Python model"
    check = tf.debugging.Assert(~tf.reduce_any(wrong), [message, tf.boolean_mask(text, wrong)])
    with tf.control_dependencies([check]):
        return tf.identity(text)


class WordsGraph:
    """Valid UTF-8, string [B] -> string [B], normalised, with a space around every word.

    Character classes are Python's, but `tf.strings.lower` knows Unicode 13 only, and NFD that of
    tensorflow-text. What follows from that, for letters and marks that they and Python don't all
    know:

    - a younger capital is not lower-cased, which shows only if the vocabulary holds its small form;
    - a younger accent may stay, or change places with another;
    - a capital sigma with a younger letter or mark beside it may become the other of σ and ς.

    `is_unsure` tells the strings that hold such things.
    """

    def __init__(self, lower):
        """`lower`: whether text is lower-cased and stripped of accents."""
        self._lower = lower
        self._deleted = _regex(characters.is_deleted)
        self._cjk = f"({_regex(characters.is_cjk)})"
        self._marks = _regex(characters.is_mark)
        self._punctuation = f"({_regex(characters.is_punctuation)})"
        self._spaces = _regex(characters.SPACES.__contains__) + "+"

    def __call__(self, text):
        replace = tf.strings.regex_replace
        text = replace(text, self._deleted, "")
        text = replace(text, self._cjk, r" \1 ")
        if self._lower:
            text = tf.strings.lower(text, encoding="utf-8")
            text = replace(tf_text.normalize_utf8(text, "NFD"), self._marks, "")
        text = replace(text, self._punctuation, r" \1 ")
        return replace(text, self._spaces, " ")

    def is_unsure(self, text):
        """Whether string [B] holds characters of which Python could make other words (bool [B])."""
        if not self._lower:
            return tf.zeros_like(text, tf.bool)
        with tf.init_scope():
            anywhere, beside_sigma = self._unsure_characters

        def holds(regex):
            return tf.strings.regex_replace(clean, regex, "") != clean

        clean = tf.strings.regex_replace(text, self._deleted, "")
        return holds(anywhere) | holds(beside_sigma) & holds("Σ")

    @functools.cached_property
    def _unsure_characters(self):
        """Two classes of characters, found by asking Python: those of which it makes other words,
        and those of which it does if a capital sigma stands near.
        """
        def differ(*contexts):
            found = set()
            for context in contexts:
                lines = [context.replace("x", char) for char in _NOT_ASCII]
                found.update(char for char, line, words in zip(_NOT_ASCII, lines,
                                                               self(lines).numpy())
                             if words.decode("utf-8").split() != split_words(line, lower=True))
            return _regex(found.__contains__)

        # Between U+302E and U+16FF0, marks that stay change places if their class is known.
        return differ("x", "\u302ex\U00016ff0"), differ("axΣ", "xΣ", "aΣx", "aΣxa")


@functools.cache
def words_graph(lower):
    """The one `WordsGraph`, which is slow to make, for either `lower`."""
    return WordsGraph(lower)


def _regex(predicate):
    """An RE2 class of the characters that satisfy `predicate`; surrogates, no UTF-8, left out."""
    codes = [ord(char) for char in characters.members(predicate)
             if not 0xD800 <= ord(char) < 0xE000]
    ranges = []
    for _, run in itertools.groupby(enumerate(codes), lambda pair: pair[1] - pair[0]):
        run = [code for _, code in run]
        ranges.append(rf"\x{{{run[0]:X}}}-\x{{{run[-1]:X}}}")
    # RE2 knows no empty class; a character that text never holds stands for it.
    return f"[{''.join(ranges) or chr(0)}]"
