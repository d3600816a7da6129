"""Masks of DistilBERT: a share of all tokens of a batch, rare ones more often (arXiv:1910.01108;
transformers examples/research_projects/distillation, distiller.py, prepare_batch_mlm)."""

import dataclasses

import lazy_loader
import numpy as np

from bert_tf.data.masking import bert
from bert_tf.data.masking.dynamic import DynamicMasks, special_ids
from bert_tf.data.records import manifest

tf = lazy_loader.load("tensorflow")

_SMOOTHING = 0.7        # --mlm_smoothing


def token_weights(counts: np.ndarray, special_ids) -> np.ndarray:
    """The weights for drawing tokens, float32 [V]: their counts, at least 1, to the power -0.7; 0
    for special tokens.

    Args:
        counts: int [V], how often the text has each token.
        special_ids: ids of special tokens.
    """
    weights = np.maximum(counts, 1).astype(np.float64) ** -_SMOOTHING
    weights[list(special_ids)] = 0.0
    return weights.astype(np.float32)


@dataclasses.dataclass(frozen=True)
class BatchMasks(DynamicMasks):
    """Draws ceil(p * N) of the N tokens of a global batch, special tokens counted, without
    replacement and in proportion to weights. A sequence may have any number of predictions;
    predictions beyond P are left out.

    Which tokens are chosen depends on the other records of the batch, so all of a global batch must
    come at once, as `by_batch` says.

    Attributes:
        weights: float32 [V], see `token_weights`.
    """

    weights: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0), compare=False)
    by_batch = True
    takes = 2, 1

    def hide(self, input_ids, input_mask, uniforms, token_boundary=None):
        size = self.max_seq_length
        draws, die, drawn = tf.split(uniforms, [size, size, self.max_predictions_per_seq], 1)
        weights = tf.gather(tf.constant(self.weights), input_ids)
        candidates = (input_mask > 0) & (weights > 0)
        # The first of exponential times with these rates, as in drawing one after the other.
        times = tf.where(candidates, -tf.math.log(draws + 2.0**-25) / weights, np.inf)
        count = tf.cast(tf.reduce_sum(input_mask), tf.float64)
        count = tf.cast(tf.math.ceil(self.masked_lm_prob * count), tf.int32)
        ordered = tf.sort(tf.reshape(times, [-1]))
        last = ordered[tf.clip_by_value(count, 1, tf.size(ordered)) - 1]
        return self.throw(input_ids, candidates & (times <= last) & (count > 0), die, drawn,
                          by_position=True)


@dataclasses.dataclass(frozen=True)
class Masking(bert.Masking):
    """DistilBERT's masking; BERT's where records hold the masks."""

    by_rarity = by_coins = True

    def dynamic_masks(self, record, max_seq_length, max_predictions_per_seq):
        weights = token_weights(manifest.token_counts(record),
                                (*special_ids(record), record["vocabulary"]["mask_id"]))
        return BatchMasks.of(self, record, max_seq_length, max_predictions_per_seq, weights=weights)
