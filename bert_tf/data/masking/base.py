"""The interface of a masking: the class `Masking` of a module of `MASKINGS`.

A masking draws masks while records are made, while training, or both; flags refuse the form that it
does not define.
"""

import dataclasses
import importlib
from typing import Any, ClassVar, Self

from bert_tf.data import masking
from bert_tf.data.text.corpus import Documents
from bert_tf.data.text.python_random import PythonRandom
from bert_tf.errors import InputError
from bert_tf.recipes.corruption import MaskTokens, Segments
from bert_tf.tokenization.vocabulary import Vocabulary


@dataclasses.dataclass(frozen=True)
class Masking(MaskTokens):
    """`MaskTokens` with the masking's own settings as further fields.

    Attributes:
        called: the noun for the masked units, for messages.
        hides_special: whether special tokens are predicted like any other.
        spares_special: whether no special token is predicted, in texts either.
        always_predicts: whether each sequence has a prediction.
        counts_cut: whether masks are drawn with the records even where training draws others, so
            that the predictions that have no room are counted.
        by_rarity: whether training needs how often the whole text has each token.
        by_coins: whether a sequence has any number of predictions, as if a coin chose each unit.
        when_static: the masking of records that hold masks, where it is another one.
        extra_features: features of the predictions beyond the three of every mask.
        static_class, dynamic_class: classes that draw the masks; None where the method for it is
            overridden, or there are no such masks.
    """

    called: ClassVar[str] = ""
    hides: ClassVar[bool] = True
    hides_special: ClassVar[bool] = False
    spares_special: ClassVar[bool] = False
    always_predicts: ClassVar[bool] = True
    counts_cut: ClassVar[bool] = False
    by_rarity: ClassVar[bool] = False
    by_coins: ClassVar[bool] = False
    when_static: ClassVar[str] = ""
    extra_features: ClassVar[tuple[str, ...]] = ()
    static_class: ClassVar[Any] = None
    dynamic_class: ClassVar[Any] = None

    @classmethod
    def own_settings(cls) -> list[str]:
        """Returns the names of the settings that only this masking has."""
        shared = {field.name for field in dataclasses.fields(MaskTokens)}
        return [field.name for field in dataclasses.fields(cls) if field.name not in shared]

    @classmethod
    def of(cls, corruption: MaskTokens) -> Self:
        """Returns the masking with the values of `corruption`.

        Raises:
            InputError: the masking has no such setting.
        """
        if unknown := sorted(corruption.settings.keys() - set(cls.own_settings())):
            raise InputError(
                f"in this version the masking {corruption.masking} has no setting "
                f"{', '.join(unknown)}: a later version made the records. Update bert_tf.")
        return cls(**vars(corruption), **corruption.settings)

    def static_masks(self, documents: Documents, vocabulary: Vocabulary, stream: PythonRandom,
                     options: Any, room: int) -> Any:
        """An object that draws a piece's masks: `draw` notes a sequence, `place` returns `Masks`.

        Args:
            stream: shared with the pairing.
            options: has max_seq_length, max_predictions_per_seq, masked_lm_prob.
            room: most tokens of a sequence without its special ones.
        """
        return self.static_class(self, documents, vocabulary, stream, options, room)

    def dynamic_masks(self, record: dict[str, Any], max_seq_length: int,
                      max_predictions_per_seq: int) -> Any:
        """Returns the `DynamicMasks` for records of this manifest, with S and P."""
        return self.dynamic_class.of(self, record, max_seq_length, max_predictions_per_seq)

    @property
    def can_be_static(self) -> bool:
        is_own = type(self).static_masks is not Masking.static_masks
        return is_own or bool(self.static_class or self.when_static)

    @property
    def can_be_dynamic(self) -> bool:
        is_own = type(self).dynamic_masks is not Masking.dynamic_masks
        return is_own or self.dynamic_class is not None

    def check(self, segments: Segments) -> None:
        """Raises InputError for settings and segments that the masking can't have."""
        if self.dynamic and self.hides and not self.can_be_dynamic:
            raise InputError(f"--masking=dynamic: the recipe masks {self.called}, which are drawn "
                             "while records are made; leave out --masking=dynamic.")
        if not (self.dynamic or self.can_be_static):
            raise InputError("--masking=static: the recipe's masks are drawn while the model "
                             "trains; leave out --masking=static.")
        if segments.sentence_ends and not self.dynamic and not self.hides_special:
            raise InputError(f"--segments={segments.pairing} puts separators between sentences, "
                             "and static masks would mask the separators; give "
                             "--masking=dynamic.")

    def features(self) -> list[str]:
        """Returns the names of the features that records have for the masking, in their order."""
        names = []
        if not self.dynamic:
            names = ["masked_lm_positions", "masked_lm_ids", "masked_lm_weights",
                     *self.extra_features]
        elif self.units != "subwords":
            names = ["token_boundary"]
        return names

    def slots(self, max_predictions_per_seq: int, max_seq_length: int) -> int:
        """Returns the number of predictions that a record has room for."""
        return max_predictions_per_seq

    def most_predictions(self, max_seq_length: int, masked_lm_prob: float) -> int | None:
        """Returns the most predictions of a sequence where the masking decides, not a flag. With
        coins few sequences exceed it: it is four standard deviations above the mean, of units of
        two tokens."""
        if not self.by_coins:
            return None
        spread = (2 * max_seq_length * masked_lm_prob) ** 0.5
        return min(int(masked_lm_prob * max_seq_length + 4 * spread), max_seq_length)

    def least_slots(self, max_seq_length: int, masked_lm_prob: float) -> int:
        """Returns how many predictions records must have room for; 0 where the last predictions of
        a sequence may be left out."""
        return 0

    def check_slots(self, max_predictions_per_seq: int, max_seq_length: int,
                    masked_lm_prob: float) -> None:
        """Raises InputError where predictions are drawn that records have no room for."""
        least = self.least_slots(max_seq_length, masked_lm_prob)
        if max_predictions_per_seq < least:
            raise InputError(f"--max_predictions_per_seq is {max_predictions_per_seq}, but a "
                             f"sequence of {max_seq_length} tokens can have {least} predictions; "
                             "give that many, or leave the flag out.")

    def takes(self, made: MaskTokens) -> bool:
        """Returns whether records that were made for `made` can be trained on."""
        return not self.hides or self.describe() == made.describe()


def find(corruption: MaskTokens) -> Masking:
    """Returns the masking that `corruption` names.

    Raises:
        InputError: this version has no such masking, or the masking has no such setting.
    """
    if corruption.masking not in masking.MASKINGS:
        raise InputError(f"this version has no masking {corruption.masking!r}: a later version "
                         "made the records. Update bert_tf.")
    module = importlib.import_module(f"bert_tf.{masking.MASKINGS[corruption.masking]}")
    return module.Masking.of(corruption)
