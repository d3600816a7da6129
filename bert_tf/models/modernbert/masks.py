"""ModernBERT's masks: one number for each place of a batch says whether its token is predicted, and
what the model sees (AnswerDotAI/ModernBERT, src/sequence_packer.py, mlm_masking)."""

import dataclasses

import lazy_loader
import numpy as np

from bert_tf.data.masking import base
from bert_tf.data.masking.base import KEEP, MASK, DrawnMasks, Masks
from bert_tf.data.masking.dynamic import DynamicMasks, hide_batch, positions_of
from bert_tf.data.segments.pairing import PAIRINGS
from bert_tf.errors import InputError
from bert_tf.flags import option

tf = lazy_loader.load("tensorflow")


def mask_places(ids: np.ndarray, candidates: np.ndarray, rng: np.random.Generator, mask_id: int,
                masked_lm_prob: float = 0.3, shares: tuple[float, float] = (0.8, 0.1),
                end: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Masks a batch. Padding is replaced as tokens are, but not predicted.

    Args:
        ids: int [R, S].
        candidates: bool [R, S], the places that may be predicted.
        end: random ids are below it; None: the largest id of the masked batch + 1.

    Returns:
        The masked ids, int [R, S], and the predicted places, bool [R, S].
    """
    masked, random = shares
    uniforms = rng.random(ids.shape)
    shown = np.where(uniforms < masked * masked_lm_prob, mask_id, ids)
    drawn = rng.integers(0, shown.max() + 1 if end is None else end, ids.shape)
    is_random = (uniforms >= masked * masked_lm_prob) & (
        uniforms < (masked + random) * masked_lm_prob)
    return np.where(is_random, drawn, shown), candidates & (uniforms < masked_lm_prob)


class BatchMasks(DrawnMasks):
    """Draws the masks of the packed rows of a piece, batch by batch; see `Masking.static_masks`.
    Each reading of the text, an epoch, has a generator of its own."""

    def begin(self, epoch: int) -> None:
        self._rng = np.random.default_rng((self._stream.seed + epoch) % 2**64)

    def place(self, ids: np.ndarray, is_token: np.ndarray) -> Masks:
        """Returns the masks of the next batch of rows, int and bool [R, S]."""
        candidates, end = is_token, None
        if not self._masking.mask_special_tokens:
            vocabulary, end = self._vocabulary, self._vocabulary.size
            candidates = is_token & ~np.isin(ids, (vocabulary.cls_id, vocabulary.sep_id))
        shown, chosen = mask_places(ids, candidates, self._rng, self._vocabulary.mask_id,
                                    self._prob, self._masking.shares, end)
        row, positions = np.nonzero(chosen)
        before, after = ids[row, positions], shown[row, positions]
        shown = np.where(after == self._vocabulary.mask_id, MASK, after)
        masks, cut = Masks.gather(row, positions, np.where(after == before, KEEP, shown), len(ids),
                                  self._slots)
        self.cut += cut
        return masks


class BatchMasksInTraining(DynamicMasks):
    """Draws such masks while training, from the numbers of its rows."""

    by_batch = True     # for the largest id of a global batch
    takes = 2, 0

    def hide(self, input_ids, input_mask, uniforms, token_boundary=None):
        coins, drawn = tf.split(uniforms, 2, 1)
        is_token, coins = input_mask > 0, coins / self.masked_lm_prob
        masked, random = self.masking.shares
        candidates, end = self.candidates(input_ids, input_mask), self.vocab_size
        if self.masking.mask_special_tokens:
            candidates = is_token
            end = 1 + tf.reduce_max(tf.where(coins < masked, self.mask_id, input_ids))
        positions, used = positions_of(candidates & (coins < 1), self.max_predictions_per_seq)
        labels, coins, drawn = (tf.gather(values, positions, batch_dims=1)
                                for values in (input_ids, coins, drawn))
        labels = tf.where(used, labels, 0)
        drawn = tf.minimum(tf.cast(drawn * tf.cast(end, tf.float32), tf.int32), end - 1)
        shown = tf.where(coins < masked, self.mask_id,
                         tf.where(coins < masked + random, drawn, labels))
        return hide_batch(input_ids, positions, labels, shown, used)


@dataclasses.dataclass(frozen=True)
class Masking(base.Masking):
    """A coin for each token of packed rows (ModernBERT)."""

    always_predicts = False
    hides_special = by_coins = True
    static_class, dynamic_class = BatchMasks, BatchMasksInTraining

    mask_special_tokens: bool = option(
        True, "Predict [CLS] and [SEP] like words, and draw random tokens from the ids up to the "
        "largest id of a batch, as the original does. If false, neither is predicted, and random "
        "tokens come from the whole vocabulary.")

    def check(self, segments):
        super().check(segments)
        if PAIRINGS[segments.pairing].segments > 1:
            raise InputError(f"--segments={segments.pairing} makes pairs, but the sequences of "
                             "packed rows are single texts; leave the flag out, or give another "
                             "recipe.")
        if self.units != "subwords":
            raise InputError(f"--masking_units={self.units} (or --do_whole_word_mask): the masking "
                             "modernbert draws single tokens; leave the flag out.")
