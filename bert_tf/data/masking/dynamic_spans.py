"""SpanBERT's masks, drawn anew for every record that is read, in TensorFlow.

The distribution is that of `data.masking.span_masks`; the random numbers are others.
"""

import dataclasses

import lazy_loader
import numpy as np

from bert_tf.data.masking.dynamic_masks import choose_tokens_batch, draw_uniforms, positions_of
from bert_tf.data.masking.masks import quotas
from bert_tf.data.masking.span_masks import length_limits
from bert_tf.recipes.corruption import MaskTokens

tf = lazy_loader.load("tensorflow")

_DRAWS = 4          # numbers of a turn: whether it is an entity, which, the length, the anchor


def cover_spans_batch(words, budget, limits, lower: int, draw, entity_prob=None,
                      entities=None):
    """`SpanChooser.spans` for a batch.

    Args:
        words: int32 [B, S], the number of each candidate's word, from 0; -1 for what is never
            predicted. The candidates of a row are neighbours and begin at position 1.
        budget: int32 [B], how many of them to cover.
        limits: float32 [n], the shares of lengths up to each one, see `length_limits`.
        lower: the first of these lengths.
        draw: function of the number of a turn that gives float32 [B, 4] in [0, 1).
        entity_prob: float32 [B], how often an entity is drawn, not a span; -1 for never.
        entities: int32 [B, S], the number of each candidate's entity, from 0, and -1 elsewhere;
            None if there are none.

    Returns:
        bool [B, S], the covered candidates.
    """
    candidates = words >= 0
    count = tf.reduce_sum(tf.cast(candidates, tf.int32), 1)

    def turn(number, covered, left):
        kind, which, length, anchor = tf.unstack(draw(number), axis=1)
        words_of_span = lower + tf.reduce_sum(
            tf.cast(length[:, None] >= limits, tf.int32), 1)
        position = 1 + tf.minimum(tf.cast(anchor * tf.cast(count, tf.float32), tf.int32),
                                  tf.maximum(count - 1, 0))
        word = tf.gather(words, position, batch_dims=1)
        inside = (words >= word[:, None]) & (words < (word + words_of_span)[:, None])
        inside &= ~tf.gather(covered, position, batch_dims=1)[:, None]
        if entities is not None:
            of_row = tf.reduce_max(entities, 1) + 1
            chosen = tf.minimum(tf.cast(which * tf.cast(of_row, tf.float32), tf.int32), of_row - 1)
            entity = (entities == chosen[:, None]) & (entities >= 0)
            inside = tf.where((kind <= entity_prob)[:, None], entity, inside)
        new = inside & candidates & ~covered
        new &= tf.cumsum(tf.cast(new, tf.int32), 1) <= left[:, None]
        return number + 1, covered | new, left - tf.reduce_sum(tf.cast(new, tf.int32), 1)

    return tf.while_loop(lambda _, covered, left: tf.reduce_any(left > 0), turn,
                         (tf.constant(0), tf.zeros_like(candidates), budget))[1]


@dataclasses.dataclass(frozen=True)
class DynamicSpans:
    """Draws masks while training, as `DynamicMasks` does.

    Attributes:
        masking, max_seq_length, max_predictions_per_seq, masked_lm_prob, mask_id, special_ids: see
            `DynamicMasks`.
        token_counts: int64 [V], how often the text has each token; random tokens are drawn by them.
    """

    masking: MaskTokens
    max_seq_length: int
    max_predictions_per_seq: int
    masked_lm_prob: float
    mask_id: int
    special_ids: tuple[int, ...]
    token_counts: np.ndarray

    def __call__(self, batch: dict, seed: int, numbers) -> dict:
        """The features of a batch, masked; see `DynamicMasks`. They have those of spans, too."""
        ids, mask = batch["input_ids"], batch["input_mask"]
        size, slots = self.max_seq_length, self.max_predictions_per_seq
        uniforms = draw_uniforms(seed, numbers, 1 + 3 * slots + size)
        scheme, throws, drawn, keys = tf.split(uniforms, [1, slots, 2 * slots, size], 1)
        limits = quotas(size, self.masked_lm_prob, slots, raised_without=2)
        budget = tf.gather(limits, tf.reduce_sum(mask, 1))
        schemes = self.masking.schemes
        scheme = tf.cast(scheme[:, 0] * len(schemes), tf.int32)
        is_random = tf.gather([name == "random" for name in schemes], scheme)

        def draw(turn):
            return draw_uniforms(seed, numbers, _DRAWS, uniforms.shape[1] + _DRAWS * turn)

        candidates = tf.cast(mask, tf.bool)
        for special in self.special_ids:
            candidates &= ids != special
        chosen = tf.zeros_like(candidates)
        if "random" in schemes:
            chosen = choose_tokens_batch(candidates, budget, keys, slots) & is_random[:, None]
        if set(schemes) != {"random"}:
            entity_prob = tf.gather([self.masking.ner_masking_prob if name == "ner_span" else -1.0
                                     for name in schemes], scheme)
            chosen |= self._cover(batch, candidates, tf.where(is_random, 0, budget), draw,
                                  entity_prob)
        others = {name: value for name, value in batch.items()
                  if name not in ("token_boundary", "entities")}
        return {**others, **self._hide(ids, tf.reduce_sum(mask, 1), chosen, is_random, throws,
                                      drawn)}

    def _cover(self, batch, candidates, budget, draw, entity_prob):
        begins = candidates
        if "token_boundary" in batch:
            begins &= (batch["token_boundary"] > 0) | (
                tf.cumsum(tf.cast(candidates, tf.int32), 1) == 1)
        entities = None
        if "ner_span" in self.masking.schemes:
            named = candidates & (batch["entities"] > 0)
            first = named & ~tf.pad(named[:, :-1], [[0, 0], [1, 0]])
            entities = tf.where(named, tf.cumsum(tf.cast(first, tf.int32), 1) - 1, -1)
        words = tf.cumsum(tf.cast(begins, tf.int32), 1) - 1
        return cover_spans_batch(
            tf.where(candidates, words, -1), budget,
            tf.constant(length_limits(self.masking), tf.float32), self.masking.span_lower, draw,
            entity_prob, entities)

    def _hide(self, ids, length, chosen, is_random, throws, drawn):
        """The features, given chosen, bool [B, S], and the lengths of sequences, int32 [B]."""
        slots, masking = self.max_predictions_per_seq, self.masking
        positions, used = positions_of(chosen, slots)
        labels = tf.where(used, tf.gather(ids, positions, batch_dims=1), 0)
        # The slots of one span follow each other.
        follows = (positions[:, 1:] == positions[:, :-1] + 1) & used[:, 1:] & ~is_random[:, None]
        follows = tf.pad(follows, [[0, 0], [1, 0]])
        slot = tf.range(slots)
        later = slot[None, :] >= slot[:, None]                              # [P, P]
        first = tf.reduce_max(tf.where(tf.transpose(later) & ~follows[:, None], slot, 0), 2)
        ends = ~tf.pad(follows[:, 1:], [[0, 0], [0, 1]])
        last = tf.reduce_min(tf.where(later & ends[:, None], slot, slots - 1), 2)       # [B, P]
        own = throws if masking.replacement_method == "word_piece" else tf.gather(
            throws, first, batch_dims=1)
        throws = tf.where(is_random[:, None], throws, own)
        masked, random = masking.shares
        shown = tf.where(throws < masked, self.mask_id, tf.where(
            throws < masked + random, self._draw_ids(drawn), labels))
        rows = tf.broadcast_to(tf.range(tf.shape(ids)[0])[:, None], tf.shape(positions))
        hidden = tf.tensor_scatter_nd_add(ids, tf.stack([rows, positions], -1),
                                          tf.where(used, shown - labels, 0))
        return {"input_ids": hidden, "masked_lm_positions": positions, "masked_lm_ids": labels,
                "masked_lm_weights": tf.cast(used, tf.float32), **self._pairs(
                    positions, first, last, used & ~is_random[:, None], length)}

    def _pairs(self, positions, first, last, used, length):
        """SPAN_FEATURES, given the first and the last slot of each slot's span, int32 [B, P]."""
        left, right = (tf.gather(positions, slots, batch_dims=1) for slots in (first, last))
        offset = tf.range(self.max_predictions_per_seq) - first
        used &= offset < self.masking.max_pair_targets
        if self.masking.endpoints == "external":
            left, right = left - 1, right + 1
            used &= (left > 0) & (right < length[:, None] - 1)
        return {"span_left": tf.where(used, left, 0), "span_right": tf.where(used, right, 0),
                "span_offset": tf.where(used, offset, 0), "span_weights": tf.cast(used, tf.float32)}

    def _draw_ids(self, uniforms):
        """Tokens as often as the text has them, int32 [B, P], from float32 [B, 2P]."""
        high, low = tf.split(tf.cast(uniforms, tf.float64), 2, 1)
        limits = tf.constant(self.token_counts.cumsum(), tf.float64)
        drawn = (high + low * 2.0**-24) * limits[-1]
        return tf.reshape(tf.searchsorted(limits, tf.reshape(drawn, [-1]), "right"),
                          tf.shape(drawn))
