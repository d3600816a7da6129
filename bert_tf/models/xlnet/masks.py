"""XLNet's order of prediction, which decides the visible tokens of each position. It is drawn again
for every record that is read (zihangdai/xlnet, data_utils.py, _local_perm and the parser of
get_input_fn). Or BERT's masks on the same records.

Shapes: B batch, S sequence, P predictions.
"""

import dataclasses

import lazy_loader

from bert_tf.data.masking import base
from bert_tf.data.masking.dynamic import DynamicMasks, draw_uniforms, positions_of
from bert_tf.models.xlnet.records import is_backward

tf = lazy_loader.load("tensorflow")


def indices(ranks, hidden, target, reuse_len: int):
    """Two numbers for each position, key_order and query_order, int32 [B, S], which decide its
    visible tokens: position i sees key j unless query_order[i] <= key_order[j].

    The two parts of a sequence are ordered apart; the second sees all of the first, which sees
    nothing of the second. In its part a position sees the tokens that are not hidden and the hidden
    ones of lower rank; only [SEP] and [CLS] see themselves if they are hidden.

    Args:
        ranks: int32 [B, S], the place of each position in the order of its part.
        hidden: bool [B, S], tokens that are predicted, and [SEP] and [CLS].
        target: bool [B, S], tokens that are predicted.
    """
    rev = tf.where(hidden, ranks, -1)
    own = tf.where(target, rev, rev + 1)
    # No number of the first part is above reuse_len, none of the second below it.
    after = tf.where(tf.range(ranks.shape[1]) < reuse_len, 0, reuse_len + 1)
    return rev + after, own + after


@dataclasses.dataclass(frozen=True)
class Masking(base.Masking):
    """XLNet's: the records say which tokens are predicted, each from the tokens before it in an
    order that is drawn while training. Masks hide other tokens of the same records."""

    hides = False

    def slots(self, max_predictions_per_seq, max_seq_length):
        return max_predictions_per_seq or max_seq_length

    def dynamic_masks(self, record, max_seq_length, max_predictions_per_seq):
        options = record["options"]
        return StreamMasks.of(
            self, record, max_seq_length,
            self.slots(max_predictions_per_seq, max_seq_length), rows=options["bsz_per_host"],
            cores=options["num_core_per_host"], bi_data=options["bi_data"])


def _of_rows(masks, batch, numbers):
    """The features is_backward, int32 [B, 1], and is_real_example if it exists."""
    backward = is_backward(numbers % masks.rows, masks.rows, masks.cores, masks.bi_data)
    return {"is_backward": tf.cast(backward, tf.int32)[:, None],
            **{name: batch[name] for name in ("is_real_example",) if name in batch}}


@dataclasses.dataclass(frozen=True)
class Permutations:
    """Draws the order of prediction while training, for whole batches of records. A record's order
    depends on the seed and on the record's number in the stream alone. `perm_size` tokens are
    permuted together; longer parts have the same permutation in each of their windows of this
    length."""

    max_seq_length: int
    reuse_len: int
    perm_size: int
    slots: int
    cls_id: int
    sep_id: int
    rows: int
    cores: int
    bi_data: bool
    adds = ("input_ids", "input_mask", "segment_ids", "key_order", "query_order", "is_backward",
            "next_sentence_labels")

    def __call__(self, batch: dict, seed: int, numbers) -> dict:
        """The features of `order`, is_backward, int32 [B, 1], and is_real_example if it exists. A
        batch has input, is_masked and seg_id, int32 [B, S], and label, int32 [B, 1]. `numbers`,
        int64 [B], are those of its records in the stream."""
        size = self.perm_size
        uniforms = tf.reshape(draw_uniforms(seed, numbers, 2 * size), [-1, 2, size])
        # The place of each in the order of the uniforms.
        ordered = self.order(batch, tf.argsort(tf.argsort(uniforms, stable=True), stable=True))
        return {**ordered, **_of_rows(self, batch, numbers)}

    def order(self, batch: dict, permutations) -> dict:
        """input_ids, input_mask (ones), segment_ids, key_order and query_order, int32 [B, S];
        masked_lm_positions and masked_lm_ids, int32 [B, P], masked_lm_weights, float32 [B, P];
        next_sentence_labels, int32 [B, 1]. `permutations`, int32 [B, 2, perm_size], has the rank of
        each position of a window, of the first part and of the second."""
        ids, size = batch["input"], self.max_seq_length
        special = (ids == self.cls_id) | (ids == self.sep_id)
        masked = batch["is_masked"] > 0
        target = masked & ~special
        column = tf.range(size)
        second = tf.cast(column >= self.reuse_len, tf.int32)
        place = column - second * self.reuse_len
        ranks = tf.gather(tf.reshape(permutations, [-1, 2 * self.perm_size]),
                          second * self.perm_size + place % self.perm_size, axis=1)
        rev, own = indices(ranks + place // self.perm_size * self.perm_size, masked | special,
                           target, self.reuse_len)
        positions, used = positions_of(target, self.slots)
        return {"input_ids": ids, "input_mask": tf.ones_like(ids),
                "segment_ids": batch["seg_id"], "key_order": rev, "query_order": own,
                "masked_lm_positions": positions,
                "masked_lm_ids": tf.where(used, tf.gather(ids, positions, batch_dims=1), 0),
                "masked_lm_weights": tf.cast(used, tf.float32),
                "next_sentence_labels": batch["label"]}


@dataclasses.dataclass(frozen=True)
class StreamMasks(DynamicMasks):
    """Hides tokens of XLNet's records as BERT does, whichever the records predict: the denoising
    objective of the paper's table 6. Every token sees all of its record."""

    rows: int
    cores: int
    bi_data: bool
    adds = ("is_backward", "next_sentence_labels")

    def __call__(self, batch: dict, seed: int, numbers) -> dict:
        """Returns the features of a batch as `Permutations` does, without the two orders."""
        ids = batch["input"]
        return {**super().__call__({"input_ids": ids, "input_mask": tf.ones_like(ids)}, seed,
                                   numbers),
                "segment_ids": batch["seg_id"], "next_sentence_labels": batch["label"],
                **_of_rows(self, batch, numbers)}
