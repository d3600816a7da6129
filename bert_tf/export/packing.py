"""Ids of one or two texts in the form the network takes, inside a graph."""

import tensorflow as tf


class Packer:
    """One text A, or two where B has any pieces, by the vocabulary's `Layout`.

    What is too long loses pieces at its end, one by one from the longer text (google-research/bert,
    `_truncate_seq_pair`).
    """

    def __init__(self, vocabulary, max_seq_length):
        """
        Args:
            vocabulary: a `Vocabulary`.
            max_seq_length: most tokens, the special ones included.
        """
        self._vocabulary = vocabulary
        self.layout = vocabulary.layout
        self._longest = max_seq_length

    def room(self, b):
        """How many pieces of A and `b` (ragged [B, pieces]) there is room for (int64 [B])."""
        return self.layout.room(self._longest, tf.cast(b.row_lengths() > 0, tf.int64))

    def __call__(self, a, b):
        """
        Args:
            a, b: RaggedTensors int32 [B, pieces].

        Returns:
            dict of `input_ids`, `input_mask` and `segment_ids`, int32 [B, S]; S is as long as the
            longest needs.

        Raises:
            tf.errors.InvalidArgumentError: there are more of one than of the other.
        """
        tf.debugging.assert_equal(a.nrows(), b.nrows(), "give as many second texts as first ones")
        room = self.room(b)
        of_a = tf.minimum(a.row_lengths(), tf.maximum(room - b.row_lengths(), room - room // 2))
        of_b = tf.minimum(b.row_lengths(), room - of_a)
        cls, sep = self._vocabulary.cls_id, self._vocabulary.sep_id
        one, pair = tf.ones_like(of_a), tf.cast(of_b > 0, tf.int64)
        layout = self.layout
        ids = tf.concat([_repeated(cls, layout.before * one), _first(a, of_a),
                         _repeated(sep, layout.between * pair), _first(b, of_b),
                         _repeated(sep, (layout.after - layout.cls_last) * one),
                         _repeated(cls, layout.cls_last * one)], axis=1)
        lengths = ids.row_lengths()
        ids = ids.to_tensor(self._vocabulary.pad_id)
        # Even no text at all is to have a first position, which the pooler reads.
        ids = tf.pad(ids, [[0, 0], [0, tf.cast(tf.equal(tf.shape(ids)[1], 0), tf.int32)]])
        positions = tf.range(tf.shape(ids, tf.int64)[1])
        mask = tf.cast(positions < lengths[:, None], tf.int32)
        in_b = (positions >= layout.b_offset(of_a)[:, None]) & (pair[:, None] > 0)
        segments = mask * tf.cast(in_b, tf.int32)
        if layout.cls_last:
            segments = tf.where(positions == lengths[:, None] - 1, 2, segments)
        return {"input_ids": ids, "input_mask": mask, "segment_ids": segments}


def _first(ragged, counts):
    """The first `counts` [B] of each row."""
    return tf.gather(ragged, tf.ragged.range(counts), batch_dims=1)


def _repeated(value, counts):
    """Rows of `counts` [B] times `value`."""
    return tf.RaggedTensor.from_row_lengths(tf.fill([tf.reduce_sum(counts)], value), counts)
