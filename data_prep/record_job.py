"""Holds what all jobs that make pre-training records share, such as their manifest."""

import dataclasses
import hashlib
from typing import Any

from bert_tf.data import masking
from bert_tf.data.instances.pretraining import describe_records
from bert_tf.data.records.shards import PlacedWork
from bert_tf.data.text import places
from bert_tf.errors import InputError
from bert_tf.files import relative
from bert_tf.recipes import Recipe
from bert_tf.tokenization.base import Tokenizer
from data_prep.pretraining_flags import SHARE_FLAGS, PretrainingDataFlags
from data_prep.stream_flags import RowFlags

# Flags that leave the records as they are, and flags that the recipe in the manifest describes.
_NO_OPTIONS = ("input_file", "output_file", "num_workers", "vocab_file", "second_vocab_file",
               "recipe", "segments", "masking", "mask_by", "mask_shares", "random_next_sentence",
               "masking_units", "task", *SHARE_FLAGS)


@dataclasses.dataclass
class RecordJob(PlacedWork):
    """Makes the shards of one piece at a call, for `make_shards`; every worker process has a copy.

    Attributes:
        folder: the manifest's; shards are named relative to it.
        options: the manifest's `options`, the flags about records that are not the recipe's.
        in_order: what the records are read from in order, such as rows; "" for shuffled records.
    """

    job: PretrainingDataFlags
    recipe: Recipe
    tokenizer: Tokenizer
    folder: str
    stream: RowFlags
    target_length: int = 0
    pieces: Any = dataclasses.field(init=False)
    versions: dict[str, str] = dataclasses.field(init=False)
    options: dict[str, Any] = dataclasses.field(init=False)
    fingerprint: dict[str, Any] = dataclasses.field(init=False)
    has_sentences = True
    in_order = ""

    @classmethod
    def prepare(cls, job: PretrainingDataFlags, recipe: Recipe) -> Recipe:
        """Sets what flags leave to the input files, and their order; returns the recipe."""
        return recipe

    def __post_init__(self):
        if self.in_order and len(self.job.output_file) > 1:
            raise InputError(f"--output_file: the records of {self.in_order} are in order, so "
                             "there is one file; name one.")
        self.options = {
            **{name: value for name, value in dataclasses.asdict(self.job).items()
               if name not in _NO_OPTIONS},
            **self.own_options()}

    def own_options(self) -> dict[str, Any]:
        """Returns the options that jobs of other kinds do not have."""
        return {}

    def check_unchanged(self) -> None:
        places.check_versions(self.versions)

    def describe(self, results: list[dict]) -> dict[str, Any]:
        """Returns the manifest without its shards, given the results of the calls."""
        made, vocabulary = self.recipe.corruption, self.tokenizer.vocabulary
        described = describe_records(self.recipe, self.options, vocabulary, self.job.input_file)
        masks = masking.find(made)
        if made.replace_from == "words" or masks.by_rarity or masks.spares_special:
            described["vocabulary"]["special_ids"] = vocabulary.special_ids
        if vocabulary.parts:
            described["vocabulary"]["parts"] = [part.describe() for part in vocabulary.parts]
        return described

    def report(self, record: dict[str, Any]) -> str:
        raise NotImplementedError

    def _fingerprint(self, pieces):
        return {"options": self.options, "vocabulary": self.tokenizer.vocabulary.hash,
                "pieces": pieces, "recipe": self.recipe.describe(),
                "output_file": [relative(name, self.folder) for name in self.job.output_file]}


def piece_seed(seed: int, index: int) -> int:
    """Returns the seed of a piece. The first has the seed itself, so that the records of a text of
    one piece equal the original's."""
    if index == 0:
        return seed
    return int.from_bytes(hashlib.sha256(f"{seed}/{index}".encode()).digest()[:8], "big")
