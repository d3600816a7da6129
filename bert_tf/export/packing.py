"""Sequences of one or two texts, made inside a TensorFlow graph.

Shapes: B batch, S sequence.
"""

from typing import Any

import tensorflow as tf

from bert_tf.tokenization.vocabulary import Vocabulary


class Packer:
    """Joins text A, and B where it has pieces, to sequences by the vocabulary's `Layout`.

    Overlong texts lose pieces at their ends, one by one from the longer text (google-research/bert,
    `_truncate_seq_pair`).
    """

    def __init__(self, vocabulary: Vocabulary, max_seq_length: int):
        """`max_seq_length` counts special tokens too."""
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
                         repeated(sep, layout.between * pair), part(b, 0, of_b),
                         repeated(sep, (layout.after - layout.cls_last) * one),
                         repeated(cls, layout.cls_last * one)], axis=1)
        lengths = ids.row_lengths()                                     # [B]
        ids = ids.to_tensor(self._vocabulary.pad_id)                    # [B, S]
        # Even without text there is a first position, which the pooler reads.
        ids = tf.pad(ids, [[0, 0], [0, tf.cast(tf.equal(tf.shape(ids)[1], 0), tf.int32)]])
        positions = tf.range(tf.shape(ids, tf.int64)[1])                # [S]
        mask = tf.cast(positions < lengths[:, None], tf.int32)
        in_b = (positions >= layout.b_offset(of_a)[:, None]) & (pair[:, None] > 0)
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
