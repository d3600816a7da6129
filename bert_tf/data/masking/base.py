"""Masks of records, and the interface of a masking, a class of `MASKINGS`.

A masking draws masks while records are made, while training, or both; flags refuse the form that it
does not define.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from bert_tf import recipes
from bert_tf.data import masking
from bert_tf.data.text.corpus import Documents
from bert_tf.data.text.python_random import PythonRandom
from bert_tf.errors import InputError
from bert_tf.recipes.recipe import MaskTokens, Segments
from bert_tf.tokenization.vocabulary import Vocabulary

MASK, KEEP = -2, -1     # replacements that are no token ids, as `PythonRandom.take_throws` gives


def quotas(max_seq_length: int, masked_lm_prob: float, max_predictions_per_seq: int,
           raised_without: int | None = None) -> list[int]:
    """The most predictions in a sequence of 0 .. S tokens, special tokens counted: list [S + 1].
    With `raised_without` special tokens that do not count, shares are rounded up."""
    if raised_without is not None:
        return [min(max_predictions_per_seq, math.ceil(masked_lm_prob * max(length, 0)))
                for length in range(-raised_without, max_seq_length - raised_without + 1)]
    return [min(max_predictions_per_seq, max(1, int(round(length * masked_lm_prob))))
            for length in range(max_seq_length + 1)]


@dataclasses.dataclass
class Masks:
    """The predictions of M sequences, by position."""

    positions: np.ndarray   # uint16 [M, P], with special tokens counted; 0 where unused
    replacements: np.ndarray    # int16 or int32 [M, P]: a token id, MASK or KEEP
    counts: np.ndarray  # uint16 [M], how many of the P are used
    # Further features of the predictions, arrays [M, P] by name, 0 where unused.
    extra: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)

    @property
    def used(self) -> np.ndarray:
        """bool [M, P]."""
        return np.arange(self.positions.shape[1]) < self.counts[:, None]

    def rows(self, rows) -> "Masks":
        return Masks(self.positions[rows], self.replacements[rows], self.counts[rows],
                     {name: values[rows] for name, values in self.extra.items()})

    @classmethod
    def gather(cls, row: np.ndarray, positions: np.ndarray, replacements: np.ndarray, count: int,
               slots: int) -> tuple[Self, int]:
        """The first predictions of each of `count` sequences, and how many had no room. Arguments
        are of all predictions, [N], in the order of the sequences; `row` has the number of each
        one's sequence."""
        slot = np.arange(len(row)) - np.searchsorted(row, row)
        masks = cls(np.zeros((count, slots), np.uint16), np.full((count, slots), KEEP, np.int32),
                    np.minimum(np.bincount(row, minlength=count), slots).astype(np.uint16))
        fits = slot < slots
        masks.positions[row[fits], slot[fits]] = positions[fits]
        masks.replacements[row[fits], slot[fits]] = replacements[fits]
        return masks, int((~fits).sum())

    @classmethod
    def join(cls, parts: Sequence["Masks"]) -> "Masks":
        """Takes the arrays out of the parts: few of them are in memory twice."""
        arrays = [np.concatenate([vars(part).pop(name) for part in parts])
                  for name in ("positions", "replacements", "counts")]
        return cls(*arrays, {name: np.concatenate([part.extra.pop(name) for part in parts])
                             for name in list(parts[0].extra)})

    def hide(self, input_ids: np.ndarray, mask_id: int) -> dict[str, np.ndarray]:
        """Puts the replacements into `input_ids` [M, S], in place; returns masked_lm_positions and
        masked_lm_ids, int [M, P], and masked_lm_weights, float32 [M, P], the three 0 where unused;
        and `extra`."""
        positions, used = self.positions.astype(np.int64), self.used
        labels = np.take_along_axis(input_ids, positions, 1)
        shown = np.where(self.replacements == KEEP, labels, self.replacements)
        shown = np.where(shown == MASK, mask_id, shown)
        row = np.broadcast_to(np.arange(len(input_ids))[:, None], used.shape)
        input_ids[row[used], positions[used]] = shown[used]
        return {"masked_lm_positions": positions, "masked_lm_ids": np.where(used, labels, 0),
                "masked_lm_weights": used.astype(np.float32), **self.extra}


class DrawnMasks:
    """Base of the masks that are drawn while records are made; see `Masking.static_masks` for the
    arguments. `cut` counts the predictions that had no room."""

    def __init__(self, masking: Any, documents: Documents, vocabulary: Vocabulary,
                 stream: PythonRandom, options: Any, room: int) -> None:
        self._masking, self._documents, self._vocabulary = masking, documents, vocabulary
        self._stream, self._room = stream, room
        self._prob, self._slots = options.masked_lm_prob, options.max_predictions_per_seq
        self._joins = documents.joins(masking.units)
        self.cut = 0


@dataclasses.dataclass(frozen=True)
class Masking(MaskTokens):
    """`MaskTokens` with the masking's own settings as further fields."""

    called: ClassVar[str] = ""  # the noun for the masked units, for messages
    hides: ClassVar[bool] = True
    hides_special: ClassVar[bool] = False   # special tokens are predicted like any other
    spares_special: ClassVar[bool] = False  # no special token is predicted, in texts either
    always_predicts: ClassVar[bool] = True  # each sequence has a prediction
    # Masks are drawn with the records even where training draws others, so that the predictions
    # that have no room are counted.
    counts_cut: ClassVar[bool] = False
    by_rarity: ClassVar[bool] = False   # training needs how often the whole text has each token
    # A sequence has any number of predictions, as if a coin chose each unit.
    by_coins: ClassVar[bool] = False
    when_static: ClassVar[str] = ""     # the masking of records that hold masks, if it is another
    extra_features: ClassVar[tuple[str, ...]] = ()  # of predictions, beyond the three of all masks
    # Classes that draw the masks; None where the method for it is overridden, or there are none.
    static_class: ClassVar[Any] = None
    dynamic_class: ClassVar[Any] = None

    @classmethod
    def own_settings(cls) -> list[str]:
        """Returns the names of the settings that only this masking has."""
        names = [field.name for field in dataclasses.fields(cls)]
        return names[len(dataclasses.fields(MaskTokens)):]

    @classmethod
    def of(cls, corruption: MaskTokens) -> Self:
        """Returns the masking with the values of `corruption`; InputError for a setting that it
        lacks."""
        if unknown := sorted(corruption.settings.keys() - set(cls.own_settings())):
            raise InputError(
                f"in this version the masking {corruption.masking} has no setting "
                f"{', '.join(unknown)}: a later version made the records. Update bert_tf.")
        return cls(**vars(corruption), **corruption.settings)

    def static_masks(self, documents: Documents, vocabulary: Vocabulary, stream: PythonRandom,
                     options: Any, room: int) -> Any:
        """Returns an object that draws a piece's masks: `draw` notes a sequence, `place` returns
        `Masks`.

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
    def can_be_dynamic(self) -> bool:
        return bool(self.dynamic_class or type(self).dynamic_masks is not Masking.dynamic_masks)

    def check(self, segments: Segments) -> None:
        """Raises InputError for settings and segments that the masking can't have."""
        if self.dynamic and self.hides and not self.can_be_dynamic:
            raise InputError(f"--masking=dynamic: the recipe masks {self.called}, which are drawn "
                             "while records are made; leave out --masking=dynamic.")
        if not (self.dynamic or self.static_class or self.when_static
                or type(self).static_masks is not Masking.static_masks):
            raise InputError("--masking=static: the recipe's masks are drawn while the model "
                             "trains; leave out --masking=static.")
        if segments.sentence_ends and not self.dynamic and not self.hides_special:
            raise InputError(f"--segments={segments.pairing} puts separators between sentences, "
                             "and static masks would mask the separators; give "
                             "--masking=dynamic.")

    def features(self) -> list[str]:
        """Returns the names of the features that records have for the masking, in their order."""
        if not self.dynamic:
            return ["masked_lm_positions", "masked_lm_ids", "masked_lm_weights",
                    *self.extra_features]
        return ["token_boundary"] * (self.units != "subwords")

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


class NoMasking(Masking):
    """The masking of inputs and targets, and of tasks without masks: no token is predicted."""

    always_predicts = False

    def static_masks(self, documents, vocabulary, stream, options, room):
        return None


class NextTokens(Masking):
    """The masking of language models from left to right: every token but the first is predicted
    from the tokens before it; none is hidden."""

    hides = False


def find(corruption: MaskTokens) -> Masking:
    """Returns the masking that `corruption` names; InputError if this version has no such masking
    or setting."""
    if corruption.masking not in masking.MASKINGS:
        raise InputError(f"this version has no masking {corruption.masking!r}: a later version "
                         "made the records. Update bert_tf.")
    return recipes.load(masking.MASKINGS[corruption.masking]).of(corruption)
