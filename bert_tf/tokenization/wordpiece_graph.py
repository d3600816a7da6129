"""WordPiece inside a TensorFlow graph, for exported models that take text.

The same steps as `wordpiece.WordpieceTokenizer`, on batches of UTF-8 strings. tensorflow-text's own
BertTokenizer is not used: it folds characters (ß, full-width forms, ™) that the original keeps.
"""

import itertools

import tensorflow as tf
import tensorflow_text as tf_text

from bert_tf.tokenization import characters
from bert_tf.tokenization.wordpiece import MAX_WORD_CHARS

_UNKNOWN_WORD = "\0"    # stands for words that are too long: cleaned text has no such character


class WordpieceGraph(tf.Module):
    """UTF-8 strings -> WordPiece ids, equal to `WordpieceTokenizer.encode`.

    Bytes that are not UTF-8 are dropped, as the original does. Character classes are Python's, but
    `tf.strings.lower` knows Unicode 13 only. What follows from that, for letters and marks younger
    than Unicode 13 (2020) and lower-casing vocabularies:

    - a younger capital is not lower-cased, which shows only if the vocabulary holds its small form;
    - a capital sigma with a younger mark beside it may become the other of σ and ς.
    """

    def __init__(self, vocabulary, do_lower_case=True):
        """
        Args:
            vocabulary: a `Vocabulary`.
            do_lower_case: whether text is lower-cased and stripped of accents.
        """
        super().__init__()
        self._do_lower_case = do_lower_case
        self._deleted = _regex(characters.is_deleted)
        self._cjk = f"({_regex(characters.is_cjk)})"
        self._marks = _regex(characters.is_mark)
        self._punctuation = f"({_regex(characters.is_punctuation)})"
        self._spaces = _regex(characters.SPACES.__contains__) + "+"
        self._wordpiece = tf_text.FastWordpieceTokenizer(
            vocabulary.tokens, unknown_token=vocabulary.tokens[vocabulary.unk_id],
            token_out_type=tf.int32, no_pretokenization=True, max_bytes_per_word=1 << 20)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def __call__(self, strings):
        """Tokenizes a batch.

        Args:
            strings: string [B].

        Returns:
            RaggedTensor int32 [B, pieces].
        """
        words = tf.strings.split(self._words(strings))
        too_long = tf.strings.length(words.values, unit="UTF8_CHAR") > MAX_WORD_CHARS
        words = words.with_values(tf.where(too_long, _UNKNOWN_WORD, words.values))
        return self._wordpiece.tokenize(words).merge_dims(-2, -1)

    def _words(self, text):
        """string [B] -> string [B], normalised, with a space around every word."""
        replace = tf.strings.regex_replace
        text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8", errors="ignore")
        text = replace(text, self._deleted, "")
        text = replace(text, self._cjk, r" \1 ")
        if self._do_lower_case:
            text = tf.strings.lower(text, encoding="utf-8")
            text = replace(tf_text.normalize_utf8(text, "NFD"), self._marks, "")
        text = replace(text, self._punctuation, r" \1 ")
        return replace(text, self._spaces, " ")


def _regex(predicate):
    """An RE2 class of the characters that satisfy `predicate`; surrogates, no UTF-8, left out."""
    codes = [ord(char) for char in characters.members(predicate)
             if not 0xD800 <= ord(char) < 0xE000]
    ranges = []
    for _, run in itertools.groupby(enumerate(codes), lambda pair: pair[1] - pair[0]):
        run = [code for _, code in run]
        ranges.append(rf"\x{{{run[0]:X}}}-\x{{{run[-1]:X}}}")
    return f"[{''.join(ranges)}]"
