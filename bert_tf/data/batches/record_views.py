"""Records as a step reads them: with masks or an order drawn, with all tokens shown, or with the
records that a teacher learns from beside them."""

import dataclasses
from collections.abc import Mapping

import tensorflow as tf

from bert_tf import recipes
from bert_tf.data import masking
from bert_tf.data.batches.pipeline import RecordSet, as_it_is
from bert_tf.data.masking.dynamic import add_at
from bert_tf.data.records.features import without_autotune
from bert_tf.errors import InputError
from bert_tf.models.xlnet.masks import Permutations

_BESIDE = "beside/"

def draw_masks(records: RecordSet, flag: str,
               max_predictions_per_seq: int | None = None) -> RecordSet:
    """Returns records that hold whole texts, with masks drawn as their manifest describes, P as it
    says if None. InputError if there is no manifest, or P is less than masks can need."""
    record = records.manifest
    if not record:
        raise InputError(f"the records of --{flag} hold no masks, and no manifest beside "
                         f"{records.paths[0]} describes how to draw the masks; put the manifest "
                         "there, or make the records again.")
    options, size = record["options"], records.format.sizes["max_seq_length"]
    chosen = masking.find(recipes.of_manifest(record).corruption)
    slots = max_predictions_per_seq or options["max_predictions_per_seq"]
    chosen.check_slots(slots, size, options["masked_lm_prob"])
    return dataclasses.replace(records, masks=chosen.dynamic_masks(record, size, slots))


def draw_orders(records: RecordSet, flag: str, perm_size: int = 0,
                max_predictions_per_seq: int | None = None) -> RecordSet:
    """Returns records of streams, with a random order of prediction for their tokens: `perm_size`
    are permuted together, 0 for the whole of each half; P is the manifest's if None. InputError if
    there is no manifest, another P, or parts of that size are impossible."""
    record = records.manifest
    if not record:
        raise InputError(f"the records of --{flag} are in order, but no manifest beside "
                         f"{records.paths[0]} states their batches; put the manifest there, or "
                         "make the records again.")
    options, vocabulary = record["options"], record["vocabulary"]
    size, reuse = options["max_seq_length"], options["reuse_len"]
    if perm_size < 0 or reuse % (perm_size or 1) or (size - reuse) % (perm_size or 1):
        raise InputError(f"--perm_size={perm_size} must divide both parts of the sequences of "
                         f"--{flag}, {reuse} and {size - reuse} tokens.")
    slots = masking.find(recipes.of_manifest(record).corruption).slots(
        options["max_predictions_per_seq"], size)
    if max_predictions_per_seq not in (None, slots):
        raise InputError(f"--max_predictions_per_seq is {max_predictions_per_seq}, but the records "
                         f"of --{flag} were made with {slots} ({records.paths[0]}); give {slots}.")
    return dataclasses.replace(records, masks=Permutations(
        size, reuse, perm_size or reuse, slots, vocabulary["cls_id"], vocabulary["sep_id"],
        options["bsz_per_host"], options["num_core_per_host"], options["bi_data"]))


def show_tokens(records: RecordSet) -> RecordSet:
    """Returns records that show all of their tokens; masks in records are undone."""
    if not records.format.is_masked:
        return records

    def unmask(batch, seed, numbers):
        ids, positions = batch["input_ids"], batch["masked_lm_positions"]
        change = batch["masked_lm_ids"] - tf.gather(ids, positions, batch_dims=1)
        change = tf.where(batch["masked_lm_weights"] > 0, change, 0)
        others = {name: value for name, value in batch.items() if not name.startswith("masked_lm")}
        return {**others, "input_ids": add_at(ids, positions, change)}

    return dataclasses.replace(records, masks=unmask)


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
