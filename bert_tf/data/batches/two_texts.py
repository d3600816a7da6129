"""Records for a network and, beside them, records for its teacher, which learns too."""

import dataclasses
from collections.abc import Mapping

import tensorflow as tf

from bert_tf.data.batches.pipeline import RecordSet
from bert_tf.data.records.features import without_autotune
from bert_tf.errors import InputError

_BESIDE = "beside/"


def beside(batch: Mapping) -> dict:
    """The features of the second text in a batch, under their own names; {} if there is none."""
    return {name.removeprefix(_BESIDE): value for name, value in batch.items()
            if name.startswith(_BESIDE)}


def check_mixes(records: RecordSet, other: RecordSet, vocab_size: int, flag: str) -> None:
    """Checks that records are of the teacher's vocabulary and of the network's.

    Args:
        records: of the network.
        other: those to be checked.
        vocab_size: of the teacher.
        flag: that of `other`, for messages.

    Raises:
        InputError: they are not.
    """
    parts = ((other.manifest or {}).get("vocabulary") or {}).get("parts", [])
    if not parts or parts[0]["size"] != vocab_size or (
            records.vocab_hash not in (None, parts[1]["sha256"])):
        raise InputError(
            f"--{flag}: {other.paths[0]} does not mix the {vocab_size} tokens of the teacher's "
            "vocabulary with that of --input_file; make it by bert-create-pretraining-data with "
            "--vocab_file of the teacher and --second_vocab_file of the network.")


@dataclasses.dataclass(frozen=True)
class TwoTexts(RecordSet):
    """A `RecordSet` whose training batches also have as many records of another. Scores are those
    of the first alone.

    Attributes:
        other: the other `RecordSet`.
    """

    other: RecordSet | None = None

    @classmethod
    def of(cls, records: RecordSet, other: RecordSet) -> "TwoTexts":
        """The records of two sets."""
        values = {field.name: getattr(records, field.name)
                  for field in dataclasses.fields(RecordSet)}
        return cls(**values, other=other)

    def identity(self) -> dict:
        return {**super().identity(), "other": self.other and self.other.identity()}

    def locate_damage(self, most: int | None = None) -> None:
        super().locate_damage(most)
        if self.other:
            self.other.locate_damage(most)

    def training_batches(self, seed: int, taken: int, global_batch: int, replicas: int,
                         worker: int = 0, workers: int = 1) -> tf.data.Dataset:
        """See `RecordSet`; the features of the other are found by `beside`."""
        assert self.other is not None
        given = seed, taken, global_batch, replicas, worker, workers

        @tf.autograph.experimental.do_not_convert
        def join(batch, other):
            return {**batch, **{_BESIDE + name: value for name, value in other.items()}}

        return without_autotune(tf.data.Dataset.zip(
            super().training_batches(*given), self.other.training_batches(*given)).map(join))
