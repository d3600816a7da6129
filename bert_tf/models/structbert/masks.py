"""StructBERT's masks: BERT's, and room for shuffled trigrams (arXiv:1908.04577, section 2.2)."""

import dataclasses
import math

from bert_tf.data.masking import bert
from bert_tf.errors import InputError
from bert_tf.flags import option
from bert_tf.recipes.recipe import Segments

WEIGHTS = "word_order_weights"      # the feature that is 1 at shuffled tokens


@dataclasses.dataclass(frozen=True)
class Masking(bert.Masking):
    """Shuffled trigrams (StructBERT)."""

    shuffle_prob: float = option(
        0.05, "Share of the visible tokens that are shuffled, three neighbours at a time, and "
        "predicted too.", least=0, most=1)

    @property
    def can_be_dynamic(self) -> bool:
        return super().can_be_dynamic and not self.shuffle_prob

    def check(self, segments: Segments) -> None:
        if self.dynamic and self.shuffle_prob:
            raise InputError("--masking=dynamic: the recipe shuffles trigrams, which are drawn "
                             "while records are made; leave out --masking=dynamic.")
        super().check(segments)

    def features(self) -> list[str]:
        return super().features() + ([WEIGHTS] if self.shuffle_prob and not self.dynamic else [])

    def slots(self, max_predictions_per_seq: int, max_seq_length: int) -> int:
        return max_predictions_per_seq + 3 * self.most_trigrams(max_predictions_per_seq,
                                                                max_seq_length)

    def most_trigrams(self, max_predictions_per_seq: int, max_seq_length: int) -> int:
        """The most trigrams of a sequence that are shuffled: of a full one with two segments."""
        visible = max(max_seq_length - 3 - max_predictions_per_seq, 0)
        return math.ceil(round(self.shuffle_prob * visible / 3, 9))
