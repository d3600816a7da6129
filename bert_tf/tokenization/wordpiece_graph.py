"""WordPiece inside a TensorFlow graph, for exported models that take text.

The same steps as `wordpiece.WordpieceTokenizer`, on batches of UTF-8 strings.
"""

import tensorflow as tf
import tensorflow_text as tf_text

from bert_tf.tokenization.wordpiece import MAX_WORD_CHARS
from bert_tf.tokenization.words_graph import refuse, valid, words_graph

_UNKNOWN_WORD = "\0"    # stands for words that are too long: cleaned text has no such character


class WordpieceGraph(tf.Module):
    """UTF-8 strings -> WordPiece ids, equal to `WordpieceTokenizer.encode`, bytes that are not
    UTF-8 being dropped.

    Lower-casing vocabularies and young letters are the exception (see `WordsGraph`); `checked`
    refuses strings that hold such.
    """

    def __init__(self, vocabulary, do_lower_case=True):
        """
        Args:
            vocabulary: a `Vocabulary`.
            do_lower_case: whether text is lower-cased and stripped of accents.
        """
        super().__init__()
        self._words = words_graph(do_lower_case)
        self._starts_word = tf.constant([not t.startswith("##") for t in vocabulary.tokens])
        self._wordpiece = tf_text.FastWordpieceTokenizer(
            vocabulary.tokens, unknown_token=vocabulary.tokens[vocabulary.unk_id],
            token_out_type=tf.int32, no_pretokenization=True, max_bytes_per_word=1 << 20)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def __call__(self, strings):
        """From string [B] to RaggedTensor int32 [B, pieces]."""
        return self.ids(valid(strings))

    def checked(self, strings):
        """The valid UTF-8 in string [B].

        Raises:
            tf.errors.InvalidArgumentError: of a string the ids could be others than Python's.
        """
        text = valid(strings)
        return refuse(self._words.is_unsure(text), text, "a letter or an accent here is younger "
                      "than the Unicode of this TensorFlow, which can't lower-case it")

    def ids(self, text):
        """From valid UTF-8, string [B], to RaggedTensor int32 [B, pieces]."""
        return self._pieces(tf.strings.split(self._words(text)))[0].merge_dims(-2, -1)

    def with_offsets(self, text):
        """Tokenizes a batch and tells where each piece comes from.

        Args:
            text: string [B], valid UTF-8.

        Returns:
            RaggedTensors int32 [B, pieces], as of `WordpieceTokenizer.encode_with_offsets`: the
            ids; the first byte of the text that went into each; the byte after the last.

        Raises:
            tf.errors.InvalidArgumentError: marks change places, so that bytes are not Python's.
        """
        words = tf.strings.split(self._words(text))
        ids, first, last = self._pieces(words)

        # What a character becomes may depend on its neighbours, but never how many bytes it
        # becomes. So the words, one after another, are as many bytes as the characters one by one.
        chars = tf.strings.unicode_split(text, "UTF-8")
        alone = tf.strings.regex_replace(self._words(chars.values), " ", "")
        exchanged = _joined(words) != _joined(chars.with_values(alone))
        text = refuse(exchanged, text, "accents or vowel signs change places here")
        sizes = tf.strings.length(chars.values)
        before = tf.cumsum(tf.strings.length(text), exclusive=True)
        ends = tf.cumsum(sizes) - tf.gather(before, chars.value_rowids())

        origin = tf.repeat(tf.range(tf.size(alone)), tf.strings.length(alone))
        starts = tf.gather(tf.cumsum(tf.strings.length(words.values), exclusive=True),
                           ids.values.value_rowids())
        first = tf.gather(ends - sizes, tf.gather(origin, starts + first.flat_values))
        last = tf.gather(ends, tf.gather(origin, starts + last.flat_values - 1))
        ids = ids.merge_dims(-2, -1)
        return ids, ids.with_values(first), ids.with_values(last)

    def starts_word(self, ids):
        """Whether pieces (int32) begin a word and don't continue it; bool of the same shape."""
        return tf.gather(self._starts_word, ids)

    def _pieces(self, words):
        """From string [B, words] to the ids [B, words, pieces] and their bytes in the word."""
        too_long = tf.strings.length(words.values, unit="UTF8_CHAR") > MAX_WORD_CHARS
        known = words.with_values(tf.where(too_long, _UNKNOWN_WORD, words.values))
        ids, first, last = self._wordpiece.tokenize_with_offsets(known)
        # Where a word is too long, [UNK] stands for all of it.
        sizes = tf.gather(tf.strings.length(words.values), ids.values.value_rowids())
        last = tf.where(tf.gather(too_long, ids.values.value_rowids()), sizes,
                        tf.cast(last.flat_values, tf.int32))
        return ids, ids.with_flat_values(tf.cast(first.flat_values, tf.int32)), (
            ids.with_flat_values(last))


def _joined(words):
    """From string [B, words] to string [B]; both small sigmas are one."""
    return tf.strings.regex_replace(tf.strings.reduce_join(words, axis=-1), "ς", "σ")
