"""BERT's masks with a coin for each unit, as `torch.bernoulli` draws in the collators of many later
codes, in place of a share of each sequence: the number of predictions varies, and may be 0."""

import dataclasses

from bert_tf.data.masking import base, bert
from bert_tf.models.ernie.masks import CoinMasksInTraining


class CoinMasks(bert.StaticMasks):
    """Draws masks while records are made."""

    def draw(self, a_start, a_length, b_start, b_length):
        begins = self._begins(a_start, a_length, b_start, b_length)
        chosen = [candidate for first, end in zip(begins, begins[1:])
                  if self._stream.random() < self._prob for candidate in range(first, end)]
        self.cut += max(0, len(chosen) - self._slots)
        self._chosen += chosen[:self._slots]
        self._note(a_length, min(len(chosen), self._slots))


@dataclasses.dataclass(frozen=True)
class Masking(base.Masking):
    always_predicts, by_coins = False, True
    static_class, dynamic_class = CoinMasks, CoinMasksInTraining
