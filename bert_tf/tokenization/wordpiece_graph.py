"""WordPiece inside a TensorFlow graph, for exported models that take text. The normaliser of
tensorflow-text is not used: it folds characters (ß, full-width forms, ™) that the original keeps.
"""

import functools
import itertools
import re
import unicodedata

import tensorflow as tf
import tensorflow_text as tf_text

from bert_tf.errors import InputError
from bert_tf.tokenization import wordpiece
from bert_tf.tokenization.wordpiece import MAX_WORD_CHARS, split_words

_MOST_BYTES = 256       # of a token in FastWordpieceTokenizer, without ##
_UNKNOWN_WORD = "\0"    # in the place of words that are too long: cleaned text does not hold it
# The characters that text is made of. The planes left out hold only private and unassigned ones.
# Ideographs have no case, and most have no decomposition.
_NOT_ASCII = [char for char in map(chr, (*range(0x80, 0xD800), *range(0xE000, 0x32000),
                                         *range(0xE0000, 0xE0200)))
              if unicodedata.decomposition(char) or not wordpiece.is_cjk(char)]


def valid(strings):
    """Drops bytes that are not UTF-8 from string [B], as the original does."""
    return tf.strings.unicode_transcode(strings, "UTF-8", "UTF-8", errors="ignore")


def refuse(wrong, text, reason):
    """`text`, string [B], with an assertion that names the rows where `wrong`, bool [B], holds."""
    message = f"{reason}; leave it out or use the Python model"
    check = tf.debugging.Assert(~tf.reduce_any(wrong), [message, tf.boolean_mask(text, wrong)])
    with tf.control_dependencies([check]):
        return tf.identity(text)


class WordsGraph:
    """Valid UTF-8, string [B] -> normalised string [B], with a space around every word.

    Character classes are Python's. `tf.strings.lower` knows Unicode 13 only, and NFD is
    tensorflow-text's. So a younger capital is not lower-cased, a younger accent may stay, or change
    places with another, and a capital sigma next to a younger letter or mark may become the other
    one of σ and ς. `is_unsure` finds such strings.
    """

    def __init__(self, lower, strip_accents=None, drop_category_c=False,
                 tokenize_chinese_chars=True):
        """Takes the settings of `wordpiece.split_words`."""
        self._lower = lower
        self._strips = strip_accents or lower and strip_accents is None
        self._settings = {"strip_accents": strip_accents, "drop_category_c": drop_category_c,
                          "tokenize_chinese_chars": tokenize_chinese_chars}
        self._deleted = _regex(wordpiece.is_category_c if drop_category_c else wordpiece.is_deleted)
        self._cjk = f"({_regex(wordpiece.is_cjk)})" if tokenize_chinese_chars else ""
        self._marks = _regex(wordpiece.is_mark)
        self._punctuation = f"({_regex(wordpiece.is_punctuation)})"
        self._spaces = _regex(wordpiece.SPACES.__contains__) + "+"

    def __call__(self, text):
        replace = tf.strings.regex_replace
        text = replace(text, self._deleted, "")
        if self._cjk:
            text = replace(text, self._cjk, r" \1 ")
        if self._lower:
            text = tf.strings.lower(text, encoding="utf-8")
        if self._strips:
            text = replace(tf_text.normalize_utf8(text, "NFD"), self._marks, "")
        text = replace(text, self._punctuation, r" \1 ")
        return replace(text, self._spaces, " ")

    def is_unsure(self, text):
        """Whether Python might make other words from a string [B]: bool [B]."""
        if not (self._lower or self._strips):
            return tf.zeros_like(text, tf.bool)
        with tf.init_scope():
            anywhere, beside_sigma = self._unsure_characters

        def holds(regex):
            return tf.strings.regex_replace(clean, regex, "") != clean

        clean = tf.strings.regex_replace(text, self._deleted, "")
        return holds(anywhere) | holds(beside_sigma) & holds("Σ")

    @functools.cached_property
    def _unsure_characters(self):
        """Classes of the characters that give other words, and that do so near a capital sigma."""
        def differ(*contexts):
            unsure = set()
            for context in contexts:
                before, after = context.split("x")
                text = before + f"{after} 0 {before}".join(_NOT_ASCII) + after
                graph = self(text).numpy().decode("utf-8").split()
                python = split_words(text, self._lower, **self._settings)
                unsure.update(char for char, one, other in zip(
                    _NOT_ASCII, _lines(graph), _lines(python), strict=True) if one != other)
            return _character_class(sorted(map(ord, unsure)))

        # Between U+302E and U+16FF0, marks that stay change places if their class is known.
        return differ("x", "\u302ex\U00016ff0"), differ("axΣ", "xΣ", "aΣx", "aΣxa")


def _lines(words):
    return [line.strip() for line in re.split(r"(?<!\S)0(?!\S)", " ".join(words))]


@functools.cache
def words_graph(lower, **settings):
    """Returns the one `WordsGraph` of these settings; it is slow to make."""
    return WordsGraph(lower, **settings)


@functools.cache
def _regex(predicate):
    """Returns an RE2 class of the characters that satisfy `predicate`, without surrogates."""
    return _character_class([ord(char) for char in wordpiece.members(predicate)
                             if not 0xD800 <= ord(char) < 0xE000])


def _character_class(codes):
    ranges = []
    for _, run in itertools.groupby(enumerate(codes), lambda pair: pair[1] - pair[0]):
        run = [code for _, code in run]
        ranges.append(rf"\x{{{run[0]:X}}}-\x{{{run[-1]:X}}}")
    # RE2 knows no empty class; a character that text never holds takes its place.
    return f"[{''.join(ranges) or chr(0)}]"


class WordpieceGraph(tf.Module):
    """UTF-8 strings -> WordPiece ids, equal to `WordpieceTokenizer.encode`. Bytes that are not
    UTF-8 are dropped. Ids may differ for young letters and lower-casing vocabularies (see
    `WordsGraph`); `checked` refuses such strings."""

    def __init__(self, vocabulary, do_lower_case=True, **settings):
        """Takes the settings of `WordpieceTokenizer`; InputError if a token is too long."""
        super().__init__()
        # tensorflow-text takes each token once, and none that is long. Those that no word holds are
        # replaced: cleaned text does not hold U+0001.
        tokens = [token if 0 < len(token) <= MAX_WORD_CHARS + len("##") else f"\1{line}"
                  for line, token in enumerate(vocabulary.tokens, 1)]
        for line, token in enumerate(tokens, 1):
            if len(token.removeprefix("##").encode()) > _MOST_BYTES:
                raise InputError(f"{vocabulary.source}, line {line}: the token {token[:20]!r}... "
                                 f"has more than {_MOST_BYTES} bytes, which no exported text model "
                                 "can hold; give --format=ids, or use bert_tf.Predictor.")
        self.words = words_graph(do_lower_case, **settings)
        self._unknown = vocabulary.unk_id
        self._wordpiece = tf_text.FastWordpieceTokenizer(
            tokens, unknown_token=vocabulary.tokens[vocabulary.unk_id],
            token_out_type=tf.int32, no_pretokenization=True, max_bytes_per_word=1 << 20)

    @tf.function(autograph=False, input_signature=[tf.TensorSpec([None], tf.string)])
    def __call__(self, strings):
        """string [B] -> RaggedTensor int32 [B, pieces]."""
        return self.ids(valid(strings))

    def checked(self, strings):
        """Returns the valid UTF-8 in string [B]; tf.errors.InvalidArgumentError if a string's ids
        might differ from Python's."""
        text = valid(strings)
        return refuse(self.words.is_unsure(text), text, "a letter or an accent here is younger "
                      "than the Unicode of this TensorFlow, which can't lower-case it")

    def ids(self, text):
        """Valid UTF-8, string [B] -> RaggedTensor int32 [B, pieces]."""
        return self._pieces(tf.strings.split(self.words(text)))[0].merge_dims(-2, -1)

    def with_offsets(self, text):
        """Returns the ids of valid UTF-8, string [B], and each piece's first byte and the byte
        after its last, as `WordpieceTokenizer.encode_with_offsets`: RaggedTensors int32
        [B, pieces]; tf.errors.InvalidArgumentError if marks change places."""
        words = tf.strings.split(self.words(text))
        ids, first, last = self._pieces(words)

        # A character's result may depend on its neighbours, but not its number of bytes. So the
        # words, one after another, have as many bytes as the characters one by one.
        chars = tf.strings.unicode_split(text, "UTF-8")
        alone = tf.strings.regex_replace(self.words(chars.values), " ", "")
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

    def word_offsets(self, text):
        """`with_offsets` of each word between white space, as a tagger reads text, and whether each
        piece is its word's first, 0 or 1: RaggedTensor int32 [B, pieces]. A word without a token,
        such as a lone control character, has the unknown one, which covers all of it."""
        # The split would end at a NUL. U+0001 is deleted too.
        words, begin, end = tf_text.regex_split_with_offsets(
            tf.strings.regex_replace(text, r"\x00", "\1"), _regex(str.isspace) + "+")
        ids, first, last = self.with_offsets(words.values)
        begin, end = (tf.cast(offsets.values, tf.int32) for offsets in (begin, end))
        is_gap = ids.row_lengths() == 0
        number = words.with_values(tf.ragged.range(
            tf.maximum(ids.row_lengths(), 1))).merge_dims(1, 2)         # of a piece in its word

        def filled(pieces, values):
            gaps = tf.RaggedTensor.from_row_lengths(
                tf.boolean_mask(values, is_gap), tf.cast(is_gap, tf.int64))
            return words.with_values(tf.concat([pieces, gaps], axis=1)).merge_dims(1, 2)

        return (filled(ids, tf.fill(tf.shape(begin), self._unknown)),
                filled(first + begin[:, None], begin), filled(last + begin[:, None], end),
                number.with_values(tf.cast(number.values == 0, tf.int32)))

    def _pieces(self, words):
        """string [B, words] -> ids [B, words, pieces], their first and last bytes in the word."""
        too_long = tf.strings.length(words.values, unit="UTF8_CHAR") > MAX_WORD_CHARS
        known = words.with_values(tf.where(too_long, _UNKNOWN_WORD, words.values))
        ids, first, last = self._wordpiece.tokenize_with_offsets(known)
        # Where a word is too long, [UNK] covers all of it.
        sizes = tf.gather(tf.strings.length(words.values), ids.values.value_rowids())
        last = tf.where(tf.gather(too_long, ids.values.value_rowids()), sizes,
                        tf.cast(last.flat_values, tf.int32))
        return ids, ids.with_flat_values(tf.cast(first.flat_values, tf.int32)), (
            ids.with_flat_values(last))


def _joined(words):
    """Joins string [B, words] to string [B]; both small sigmas become one."""
    return tf.strings.regex_replace(tf.strings.reduce_join(words, axis=-1), "ς", "σ")
