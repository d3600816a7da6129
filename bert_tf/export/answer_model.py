"""Answers in passages of any length, found inside a TensorFlow graph as in run_squad: see
`answer_spans`, `answer_finders` and `wordpiece.project`. Shapes: B questions, M windows of all
passages, W windows of the longest, S sequence, K considered starts and ends of a window."""

import tensorflow as tf

from bert_tf.export.packing import part
from bert_tf.export.text_model import TextModel, served

_BLANKS = r"[ \t\r\n\x{202F}]"      # that part a passage's words, as in `squad.passage_words`
_EMPTY = "empty"        # run_squad's answer where no start goes with an end


class AnswerModel(TextModel):
    """Takes `question` and `passage`, strings [B]. Returns `answer`; `score`, the sum of the logits
    of its start and end; `no_answer_score`, the least such sum at [CLS] of a window; and the
    window that holds the answer: `input_ids`, `start_logits` and `end_logits` [B, S].

    A passage that is too long is read in overlapping windows, and the answer is run_squad's. If a
    threshold is given, the answer is "" where `no_answer_score` exceeds `score` by more. A question
    of more than `max_query_length` tokens loses its last ones, as in the original. An empty passage
    is refused.
    """

    def __init__(self, model, vocabulary, max_query_length: int = 64, max_answer_length: int = 30,
                 doc_stride: int = 128, n_best_size: int = 20,
                 null_score_diff_threshold: float | None = None, **options):
        """Takes `TextModel`'s arguments; for `max_query_length` and `doc_stride` see
        `tasks.answer_spans.SpanOptions`, for `max_answer_length` and `n_best_size`
        `tasks.answer_finders.AnswerOptions`. The threshold is that of a model of questions that may
        have no answer."""
        self._max_query_length, self._max_answer_length = max_query_length, max_answer_length
        self._doc_stride, self._n_best_size = doc_stride, n_best_size
        self._threshold = null_score_diff_threshold
        self._tokens = vocabulary.tokens
        super().__init__(model, vocabulary, **options)

    def _make_functions(self):
        return {"serving_default": served(self._find, "question", "passage")}

    def _find(self, question, passage):
        tf.debugging.assert_equal(tf.size(question), tf.size(passage),
                                  "give as many questions as passages")
        passage = self._tokenizer.checked(passage)
        ids, starts, ends = self._tokenizer.with_offsets(passage)
        tf.debugging.assert_positive(ids.row_lengths(), "a passage is empty; leave it out")
        room = self._pack.room(ids)
        # A question leaves room for a token of the passage.
        asked = self._tokenizer.ids(self._tokenizer.checked(question))
        asked = part(asked, 0, tf.minimum(
            tf.minimum(asked.row_lengths(), room - 1), self._max_query_length))

        windows = _Windows(ids.row_lengths(), room - asked.row_lengths(), self._doc_stride)
        features = self._pack(tf.gather(asked, windows.row),
                              part(ids, windows.start, windows.length, windows.row))
        outputs = self._answers(features)
        offset = tf.gather(self._pack.layout.b_offset(asked.row_lengths()), windows.row)
        scores, start_logits, first, last = self._best(
            outputs, features["input_mask"], offset, windows)

        chosen = windows.best(scores)                                   # [B], of the M windows
        first, last, start_logits, score = (
            tf.gather(values, chosen) for values in (first, last, start_logits, scores))
        is_found = score > score.dtype.min
        answer = self._text(passage, ids, first, last, tf.gather(starts, first, batch_dims=1),
                            tf.gather(ends, last, batch_dims=1))
        answer = tf.where(is_found, answer, _EMPTY)
        of_class = (tf.reduce_sum(features["input_mask"], 1) - 1) * self._pack.layout.cls_last
        none = tf.add_n([tf.cast(tf.gather(outputs[name], of_class, batch_dims=1), tf.float64)
                         for name in ("start_logits", "end_logits")])
        none = tf.gather(none, windows.best(-none))
        if self._threshold is not None:     # subtracted one by one, as in `Finder`
            odds = none - tf.where(is_found, start_logits, 0) - tf.where(
                is_found, score - start_logits, 0)
            answer = tf.where((odds > self._threshold) | ~is_found, "", answer)
        outputs = {name: tf.gather(values, chosen) for name, values in outputs.items()}
        return {**outputs, "input_ids": tf.gather(features["input_ids"], chosen), "answer": answer,
                "score": tf.cast(tf.where(is_found, score, 0), tf.float32),
                "no_answer_score": tf.cast(none, tf.float32)}

    def _best(self, outputs, mask, offset, windows):
        """Of each window's best answer the sum of its logits and the start's, float64 [M], and its
        first and last token in the passage, int64 [M]. Without any the sum is the least float64."""
        count = tf.minimum(self._n_best_size, tf.shape(mask)[1])
        (starts, first), (ends, last) = (
            _top(outputs[name], mask, count) for name in ("start_logits", "end_logits"))
        first, last = (first - offset[:, None])[:, :, None], (last - offset[:, None])[:, None]
        allowed = (first >= 0) & (first <= last) & (last < windows.length[:, None, None])
        allowed &= last - first < self._max_answer_length
        begin = windows.start[:, None]
        allowed &= windows.have_most_context(first[:, :, 0] + begin)[:, :, None]
        sums = starts[:, :, None] + ends[:, None]                       # [M, K, K]
        sums = tf.reshape(tf.where(allowed, sums, sums.dtype.min), [-1, count * count])
        best = tf.argmax(sums, axis=1, output_type=tf.int32)
        start, end = best // count, best % count

        def placed(places, index):
            # A window without an answer has any token.
            return tf.clip_by_value(tf.gather(places + begin, index, batch_dims=1), 0,
                                    windows.start + windows.length - 1)

        return (tf.reduce_max(sums, axis=1), tf.gather(starts, start, batch_dims=1),
                placed(first[:, :, 0], start), placed(last[:, 0], end))

    def _text(self, passage, ids, first, last, start, end):
        """The text of tokens `first` to `last` of each passage, its bytes from `start` to `end`."""
        replace = tf.strings.regex_replace
        before = tf.strings.substr(passage, tf.zeros_like(start), start)
        before = replace(before, f"(?s)^.*{_BLANKS}", "")
        after = tf.strings.substr(passage, end, tf.strings.length(passage) - end)
        after = replace(after, f"(?s){_BLANKS}.*$", "")
        inside = tf.strings.substr(passage, start, end - start)
        original = replace(before + inside + after, f"{_BLANKS}+", " ")
        pieces = part(ids, first, last - first + 1)
        text = tf.strings.reduce_join(
            pieces.with_values(tf.gather(tf.constant(self._tokens), pieces.values)),
            axis=-1, separator=" ")
        text = replace(replace(text, " ##", ""), "##", "")
        return _project(text, original, tf.strings.strip(self._tokenizer.words(original)))


class _Windows:
    """The windows of passages, see `answer_spans.cut_spans`: the passage `row` of each, and its
    tokens in the passage from `start` on, int64 [M]. `lengths` are the passages' tokens and `room`
    the most of a window, int64 [B]."""

    def __init__(self, lengths, room, stride):
        step = tf.minimum(room, stride)
        counts = 1 + (tf.maximum(lengths - room, 0) + step - 1) // step
        self._number = tf.ragged.range(counts)                          # [B, windows]
        self.row = self._number.value_rowids()
        self.start = self._number.values * tf.gather(step, self.row)
        self.length = tf.minimum(tf.gather(room, self.row),
                                 tf.gather(lengths, self.row) - self.start)

    def best(self, scores):
        """Returns the first of each passage's windows with the highest score: int64 [B]."""
        return self._number.row_starts() + tf.argmax(self._dense(scores, scores.dtype.min), axis=1)

    def have_most_context(self, tokens):
        """Returns whether tokens of the windows' passages, int64 [M, K], have most context in their
        window, see `AnswerSpans.most_context`."""
        start, length = (tf.gather(self._dense(values), self.row)[:, None]
                         for values in (self.start, self.length))       # [M, 1, W]
        tokens = tokens[:, :, None]
        context = tf.minimum(tokens - start, start + length - 1 - tokens)
        score = tf.where(context >= 0, tf.cast(context, tf.float64)
                         + 0.01 * tf.cast(length, tf.float64), -1)
        return tf.argmax(score, axis=2) == self._number.values[:, None]

    def _dense(self, values, filler=0):
        """Returns values of the windows as [B, W]; W is 1 at least, for `argmax`."""
        width = tf.maximum(self._number.bounding_shape()[1], 1)
        return self._number.with_values(values).to_tensor(filler, shape=tf.stack([-1, width]))


def _top(logits, mask, count):
    """Returns the highest logits of tokens, float64 [M, K], and their places, int64 [M, K]."""
    values, places = tf.math.top_k(tf.where(mask > 0, logits, logits.dtype.min), count)
    return tf.cast(values, tf.float64), tf.cast(places, tf.int64)


def _project(text, original, normal):
    """The part of each `original`, string [B], whose normal form is `text`, of all `normal`."""
    size = _characters(text)
    places = tf.ragged.range(tf.maximum(_characters(normal) - size + 1, 0))
    rows = places.value_rowids()
    is_here = tf.gather(text, rows) == tf.strings.substr(
        tf.gather(normal, rows), places.values, tf.gather(size, rows), unit="UTF8_CHAR")
    start = tf.reduce_min(places.with_values(
        tf.where(is_here, places.values, tf.int32.max)), axis=1)        # int32 [B]
    chars = tf.strings.unicode_split(original, "UTF-8")
    marks = tf.ragged.boolean_mask(tf.ragged.range(chars.row_lengths()), chars != " ")
    is_exact = (size > 0) & (start < tf.int32.max) & (marks.row_lengths() == _marks(normal))
    first = _marks(tf.strings.substr(normal, tf.zeros_like(start), tf.where(is_exact, start, 0),
                                     unit="UTF8_CHAR"))
    begin, end = (tf.gather(marks.values, marks.row_starts() + tf.where(is_exact, place, 0))
                  for place in (first, first + _marks(text) - 1))
    exact = tf.strings.substr(original, begin, end - begin + 1, unit="UTF8_CHAR")
    return tf.where(is_exact, exact, original)


def _characters(text):
    return tf.strings.length(text, unit="UTF8_CHAR")


def _marks(text):
    """The number of characters that are not spaces."""
    return tf.cast(_characters(tf.strings.regex_replace(text, " ", "")), tf.int64)
