"""Sequences of one or two texts, made inside a TensorFlow graph; texts longer than a sequence are
read as `tasks.kinds.windows` does in Python. Shapes: B batch, S sequence, N examples, C sequences
of an example, R records of all examples, L labels or choices."""

from typing import Any

import tensorflow as tf

from bert_tf.tokenization.encoding import HEAD, MAX
from bert_tf.tokenization.vocabulary import Vocabulary

_TINY = 1e-37       # its logarithm is finite in float32


class Packer:
    """Joins text A, and B where it has pieces, to sequences of `max_seq_length` with special tokens
    by the vocabulary's `Layout`. Overlong texts lose pieces at their ends, one by one from the
    longer text (google-research/bert, `_truncate_seq_pair`)."""

    def __init__(self, vocabulary: Vocabulary, max_seq_length: int):
        self._vocabulary = vocabulary
        self.layout = vocabulary.layout
        self._longest = max_seq_length

    def room(self, b: tf.RaggedTensor) -> tf.Tensor:
        """Returns how many pieces of A and `b`, ragged [B, pieces], fit: int64 [B]."""
        return self.layout.room(self._longest, tf.cast(b.row_lengths() > 0, tf.int64))

    def fitting(self, a: tf.RaggedTensor, b: tf.RaggedTensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns how many pieces of each text are kept, int64 [B] twice."""
        room = self.room(b)
        of_a = tf.minimum(a.row_lengths(), tf.maximum(room - b.row_lengths(), room - room // 2))
        return of_a, tf.minimum(b.row_lengths(), room - of_a)

    def __call__(self, a: tf.RaggedTensor, b: tf.RaggedTensor) -> dict[str, tf.Tensor]:
        """Packs ragged int32 [B, pieces] into `input_ids`, `input_mask` and `segment_ids`, int32
        [B, S], where S fits the longest. `a` and `b` have as many rows."""
        of_a, of_b = self.fitting(a, b)
        cls, sep = self._vocabulary.cls_id, self._vocabulary.sep_id
        one, pair = tf.ones_like(of_a), tf.cast(of_b > 0, tf.int64)
        layout = self.layout
        ids = tf.concat([repeated(cls, layout.before * one), part(a, 0, of_a),
                         repeated(sep, (layout.between - layout.cls_between) * pair),
                         repeated(cls, layout.cls_between * pair), part(b, 0, of_b),
                         repeated(sep, (layout.after - layout.cls_last) * one),
                         repeated(cls, layout.cls_last * one)], axis=1)
        lengths = ids.row_lengths()                                     # [B]
        ids = ids.to_tensor(self._vocabulary.pad_id)                    # [B, S]
        # Even without text there is a first position, which the pooler reads.
        ids = tf.pad(ids, [[0, 0], [0, tf.cast(tf.equal(tf.shape(ids)[1], 0), tf.int32)]])
        positions = tf.range(tf.shape(ids, tf.int64)[1])                # [S]
        mask = tf.cast(positions < lengths[:, None], tf.int32)
        b_start = layout.b_offset(of_a) - layout.of_b
        in_b = (positions >= b_start[:, None]) & (pair[:, None] > 0)
        segments = mask * tf.cast(in_b, tf.int32)
        if layout.cls_last:
            segments = tf.where(positions == lengths[:, None] - 1, 2, segments)
        return {"input_ids": ids, "input_mask": mask, "segment_ids": segments}


def part(ragged: tf.RaggedTensor, first: Any, counts: tf.Tensor, rows: tf.Tensor | None = None
         ) -> tf.RaggedTensor:
    """Returns a part of each row, or of each of `rows`: `counts` values from place `first` on."""
    begins = ragged.row_starts() if rows is None else tf.gather(ragged.row_starts(), rows)
    places = tf.ragged.range(counts)
    return places.with_values(tf.gather(
        ragged.values, places.values + tf.repeat(begins + first, counts)))


def repeated(value: int, counts: tf.Tensor) -> tf.RaggedTensor:
    """Returns ragged rows that repeat `value` `counts` [B] times."""
    return tf.RaggedTensor.from_row_lengths(tf.fill([tf.reduce_sum(counts)], value), counts)


def ends(a: tf.RaggedTensor, b: tf.RaggedTensor, pack: Packer
         ) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
    """Returns the first and the last pieces of long texts, as many as fit together. The texts are
    ragged int32 [N, pieces]."""
    def kept(text, counts):
        places = tf.ragged.range(counts)
        lengths, counts = (tf.gather(values, places.value_rowids())
                           for values in (text.row_lengths(), counts))
        skipped = tf.where(places.values < counts // HEAD, tf.cast(0, tf.int64), lengths - counts)
        starts = tf.gather(text.row_starts(), places.value_rowids())
        return places.with_values(tf.gather(text.values, starts + skipped + places.values))

    of_a, of_b = pack.fitting(a, b)
    return kept(a, of_a), kept(b, of_b)


def windows(a: tf.RaggedTensor, b: tf.RaggedTensor, pack: Packer, choices: int | tf.Tensor = 1
            ) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.Tensor]:
    """Returns the windows of texts, ragged int32 [R * C, pieces], and the number of records of each
    example, int64 [N]. A sequence with fewer windows than others of its example repeats its last.
    `a` and `b` are ragged int32 [N * C, pieces]."""
    of_a, of_b, room = a.row_lengths(), b.row_lengths(), pack.room(b)
    longer, shorter = tf.maximum(of_a, of_b), tf.minimum(of_a, of_b)
    window = tf.where(of_a + of_b <= room, longer, room - tf.minimum(shorter, room // 2))
    stride = tf.maximum(window * 3 // 4, 1)
    rest = longer - window
    last = (tf.maximum(rest, 0) + stride - 1) // stride     # the number of the last window, from 0
    counts = 1 + tf.reduce_max(tf.reshape(last, [-1, choices]), axis=1)

    number = tf.ragged.range(counts)                                    # [N, records]
    sequence = tf.reshape(number.value_rowids()[:, None] * tf.cast(choices, tf.int64) + tf.range(
        tf.cast(choices, tf.int64)), [-1])                              # [R * C]
    number = tf.repeat(number.values, choices)
    window, last, rest, is_first, of_shorter = (tf.gather(values, sequence) for values in (
        window, last, rest, of_a >= of_b, tf.minimum(shorter, room - window)))
    number = tf.minimum(number, last)
    # As `numpy.linspace` does: in steps, and exactly to the end.
    step = tf.cast(rest, tf.float64) / tf.cast(tf.maximum(last, 1), tf.float64)
    start = tf.cast(tf.round(tf.cast(number, tf.float64) * step), tf.int64)
    start = tf.where(number == last, tf.maximum(rest, 0), start)

    def of(text, is_longer):
        return part(text, start * tf.cast(is_longer, tf.int64),
                    tf.where(is_longer, window, of_shorter), sequence)

    return of(a, is_first), of(b, ~is_first), counts


def joined(outputs: dict[str, tf.Tensor], counts: tf.Tensor, way: str, labels_exclude: bool
           ) -> dict[str, tf.Tensor]:
    """Returns answers to examples, float32 [N, ...], from the `outputs` for their windows [R, ...]:
    `values`, or `logits` and `probabilities` [R, L]. `counts`, int64 [N], are the windows of each,
    `way` is "mean" or "max"."""
    owners = tf.ragged.range(counts).value_rowids()

    def join(values):
        if way == MAX:
            return tf.math.segment_max(values, owners)
        return tf.cast(tf.math.segment_mean(tf.cast(values, tf.float64), owners), values.dtype)

    if "values" in outputs:
        return {"values": join(outputs["values"])}
    likely = join(outputs["probabilities"])
    if way == MAX and labels_exclude:
        likely = likely / tf.reduce_sum(likely, axis=-1, keepdims=True)
    logits = _logarithm(likely) if labels_exclude else _logarithm(likely) - _logarithm(1 - likely)
    # A text with one window keeps its bits.
    is_one, first = counts[:, None] == 1, tf.cumsum(counts, exclusive=True)
    return {name: tf.where(is_one, tf.gather(outputs[name], first), values)
            for name, values in (("logits", logits), ("probabilities", likely))}


def _logarithm(probabilities):
    return tf.math.log(tf.maximum(probabilities, _TINY))
