"""ELECTRA's masks: positions are drawn with replacement, so that one may come twice
(google-research/electra, pretrain_helpers.py, mask). Only training draws them."""

import dataclasses

import lazy_loader

from bert_tf.data.masking import base
from bert_tf.data.masking.dynamic import DynamicMasks, draw_uniforms
from bert_tf.errors import InputError

tf = lazy_loader.load("tensorflow")


class MasksWithDraws(DynamicMasks):
    """`DynamicMasks` that also draw for the learner."""

    takes = 1, 3

    def __call__(self, batch, seed, numbers):
        """Returns the features of a batch; see `DynamicMasks`. They also have draws, float32 [B, P]
        in [0, 1), with which ELECTRA samples tokens from its generator."""
        draws = draw_uniforms(seed, numbers, self.columns)[:, -self.max_predictions_per_seq:]
        return {**super().__call__(batch, seed, numbers), "draws": draws}

    def hide(self, input_ids, input_mask, uniforms, token_boundary=None):
        return super().hide(input_ids, input_mask, uniforms[:, :-self.max_predictions_per_seq],
                            token_boundary)


class RepeatedMasks(MasksWithDraws):
    """Draws the position of each prediction from all candidates."""

    def hide(self, input_ids, input_mask, uniforms, token_boundary=None):
        candidates = self.candidates(input_ids, input_mask) & (input_ids != self.mask_id)
        count = tf.reduce_sum(tf.cast(candidates, tf.int32), 1)[:, None]        # [B, 1]
        drawn, die = tf.split(uniforms[:, :2 * self.max_predictions_per_seq], 2, 1)
        rank = tf.minimum(tf.cast(drawn * tf.cast(count, tf.float32), tf.int32), count - 1)
        # The position of the candidate that has `rank` others before it.
        positions = tf.reduce_sum(tf.cast(
            tf.cumsum(tf.cast(candidates, tf.int32), 1)[:, None] <= rank[:, :, None], tf.int32), 2)
        return hide_with_repeats(input_ids, input_mask, tf.where(count > 0, positions, 0), die,
                                 self.masked_lm_prob, self.masking.shares[0], self.mask_id)


@dataclasses.dataclass(frozen=True)
class Masking(base.Masking):
    when_static = "bert"        # there, no position comes twice
    dynamic_class = RepeatedMasks

    def check(self, segments):
        super().check(segments)
        if self.shares[1]:
            raise InputError("--mask_shares: the masking electra never puts in random tokens; the "
                             "second share must be 0.")
        if self.units != "subwords":
            raise InputError(
                f"--masking_units={self.units} (or --do_whole_word_mask): the masking electra "
                "draws sub-words while the model trains; leave the flag out, or give "
                "--masking=static.")

    def most_predictions(self, max_seq_length, masked_lm_prob):
        return max(1, int((masked_lm_prob + 0.005) * max_seq_length))


def hide_with_repeats(input_ids, input_mask, positions, die, masked_lm_prob: float,
                      masked: float, mask_id: int) -> dict:
    """Hides tokens, int32 [B, S], whose positions were drawn with replacement, and returns
    input_ids and the three masked_lm features.

    A position that comes several times is predicted as often; it becomes [MASK] if one of the
    throws `die`, float32 [B, P] in [0, 1), is below `masked`, and stays otherwise. The number of
    predictions counts special tokens too. A row whose first of `positions`, int32 [B, P], is 0 has
    no candidates and no predictions.
    """
    slots = positions.shape[1]
    # In float32 and rounded half to even, as the original does.
    length = tf.cast(tf.reduce_sum(input_mask, 1), tf.float32)
    quota = tf.clip_by_value(tf.cast(tf.round(masked_lm_prob * length), tf.int32), 1, slots)
    used = (tf.range(slots) < quota[:, None]) & (positions[:, :1] > 0)
    positions = tf.where(used, positions, 0)
    labels = tf.where(used, tf.gather(input_ids, positions, batch_dims=1), 0)
    rows = tf.broadcast_to(tf.range(tf.shape(positions)[0])[:, None], tf.shape(positions))
    hidden = tf.scatter_nd(tf.stack([rows, positions], -1),
                           tf.cast(used & (die < masked), tf.int32), tf.shape(input_ids)) > 0
    return {"input_ids": tf.where(hidden, mask_id, input_ids), "masked_lm_positions": positions,
            "masked_lm_ids": labels, "masked_lm_weights": tf.cast(used, tf.float32)}
