"""Records for a network, with records for its teacher, which learns too."""

import dataclasses
from collections.abc import Mapping

import tensorflow as tf

from bert_tf.data.batches.pipeline import RecordSet, as_it_is
from bert_tf.data.records.features import without_autotune
from bert_tf.errors import InputError

_BESIDE = "beside/"


def beside(batch: Mapping) -> dict:
    """Returns the features of a batch's second text, under their own names; {} without one."""
    return {name.removeprefix(_BESIDE): value for name, value in batch.items()
            if name.startswith(_BESIDE)}


def check_mixes(records: RecordSet, other: RecordSet, vocab_size: int, flag: str) -> None:
    """Checks that records were made with the teacher's vocabulary, of `vocab_size` tokens, and the
    network's."""
    parts = ((other.manifest or {}).get("vocabulary") or {}).get("parts", [])
    if not parts or parts[0]["size"] != vocab_size or (
            records.vocab_hash not in (None, parts[1]["sha256"])):
        raise InputError(
            f"--{flag}: {other.paths[0]} does not mix the teacher's {vocab_size} tokens with the "
            "vocabulary of --input_file; make it with bert-create-pretraining-data, the teacher's "
            "--vocab_file, and the network's vocabulary as --second_vocab_file.")


@dataclasses.dataclass(frozen=True)
class TwoTexts(RecordSet):
    """A `RecordSet` whose training batches also have as many records of `other`. Scores use the
    first records alone."""

    other: RecordSet | None = None

    @classmethod
    def of(cls, records: RecordSet, other: RecordSet) -> "TwoTexts":
        return cls(**vars(records), other=other)

    def identity(self) -> dict:
        return {**super().identity(), "other": self.other and self.other.identity()}

    def locate_damage(self, most: int | None = None) -> None:
        super().locate_damage(most)
        if self.other:
            self.other.locate_damage(most)

    def training_batches(self, seed: int, taken: int, global_batch: int, replicas: int,
                         worker: int = 0, workers: int = 1) -> tf.data.Dataset:
        """Returns batches; see `RecordSet`, and see `beside` for the features of the other text."""
        assert self.other is not None
        place = seed, taken, global_batch, replicas, worker, workers

        return without_autotune(tf.data.Dataset.zip(
            super().training_batches(*place), self.other.training_batches(*place)).map(
                as_it_is(lambda batch, other: {**batch, **{
                    _BESIDE + name: value for name, value in other.items()}})))
