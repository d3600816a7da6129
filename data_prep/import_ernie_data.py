"""Turns pre-training data in ERNIE's own format into records.

The data are gzip files with one sample per line, token_ids;sentence_type_ids;position_ids;
seg_labels;label, and a list of these files. Each line of the list has a file's name, a tab and the
probability of masking units instead of single tokens. In the first pass, samples, their order,
negative pairs and masks are exactly those that the reader of PaddlePaddle/ERNIE gives; further
passes (--dupe_factor) have other seeds. Each record is one sample, with its masks from the
original's batch. Label 1 means that the second segment follows the first, the opposite of BERT's
labels.

Example:
    bert-create-pretraining-data --train_filelist=filelist --output_file=/tmp/ernie.tfrecord \\
        --vocab_file=vocab.txt --max_seq_length=512 --generate_neg_sample
    bert-run-pretraining --recipe=ernie --input_file=/tmp/ernie.tfrecord --max_seq_length=512 \\
        --max_predictions_per_seq=126 --model_size=base --do_train --output_dir=/tmp/ernie
"""

import collections
import dataclasses
import functools
import hashlib
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from bert_tf import flags, recipes
from bert_tf.data import masking
from bert_tf.data.instances.pretraining import describe_records, instances_of
from bert_tf.data.masking.base import MASK, Masks
from bert_tf.data.records import manifest
from bert_tf.data.records.shards import make_shards
from bert_tf.data.records.tfrecord import file_checksum, write_shard
from bert_tf.errors import InputError, counted
from bert_tf.files import absolute, is_file, make_folder, relative
from bert_tf.flags import REQUIRED, option
from bert_tf.models.ernie import samples as ernie_samples
from bert_tf.models.ernie.masks import gather_masks
from bert_tf.tokenization.base import open_tokenizer
from bert_tf.tokenization.coverage import join
from bert_tf.tokenization.vocabulary import Vocabulary
from data_prep.create_pretraining_data import keep_tokenizer


@dataclasses.dataclass
class ImportErnieDataFlags:
    """Data of ERNIE's code, and the records that are made of it."""

    train_filelist: str = option(
        REQUIRED, "The list of files: name, tab, probability.", alias="input_file")
    output_file: str = option(
        REQUIRED, "TFRecord file; .gz compresses. Several passes give one shard each.")
    vocab_file: str = option(REQUIRED, "The vocabulary of the ids.", alias="vocab_path")
    vocab_size: int = option(
        0, "Rows of the model's word embeddings, from which random tokens are drawn. Default: the "
        "size of --vocab_file.")
    data_dir: str = option("", "Folder of the files in the list; default: the folder of the list.")
    max_seq_length: int = option(
        512, "Maximum length; longer samples are left out.", alias="max_seq_len", least=5)
    max_predictions_per_seq: int = option(
        0, "Maximum predictions in a record. Default: four standard deviations above their mean "
        "number. Further predictions are left out and counted.", least=0)
    batch_size: int = option(
        8192, "Number of tokens, with padding, that are masked together.", least=1)
    generate_neg_sample: bool = option(
        False, "Make a negative pair for each sample, from two samples. The data must then hold "
        "only positive samples.")
    random_seed: int = option(12345, "Seed of NumPy's random generator.")
    dupe_factor: int = option(
        1, "Number of passes, each with other masks and negative pairs.", least=1)
    masked_lm_prob: float = option(0.15, "Probability of masking a unit.", least=0)
    num_workers: int = option(1, "Number of processes; 0: one per core.", least=0, most=4096)


@dataclasses.dataclass
class PassWriter:
    """Writes the records of one pass; every worker process has one."""

    job: ImportErnieDataFlags
    recipe: recipes.Recipe
    vocabulary: Vocabulary
    folder: str

    def __call__(self, index: int, files: list[tuple[str, float]]) -> dict[str, Any]:
        counts: collections.Counter = collections.Counter()
        name = manifest.shard_name(self.job.output_file, index, self.job.dupe_factor)
        shard = write_shard(name, self.folder, self._blocks(files, index, counts))
        return {"shards": [shard], "counts": dict(counts)}

    def _blocks(self, files, index, counts) -> Iterator[dict[str, np.ndarray]]:
        job = self.job
        rng = np.random.RandomState((job.random_seed + index) % 2**32)
        samples = ernie_samples.read_samples(
            files, rng, job.max_seq_length, job.generate_neg_sample,
            lambda name: counts.update([name]))
        for batch in ernie_samples.batches(samples, job.batch_size):
            chosen, shown = ernie_samples.mask_batch(
                batch, rng, job.vocab_size, masked_lm_prob=job.masked_lm_prob,
                shares=self.recipe.corruption.shares)
            lengths = np.array([len(sample.ids) for sample in batch])
            masks, cut = gather_masks(chosen, shown, lengths, job.max_predictions_per_seq)
            counts.update(instances=len(batch), positions=int(lengths.sum()), cut_predictions=cut,
                          follows=sum(sample.label for sample in batch),
                          predictions=int(masks.counts.sum()),
                          masked=int((masks.replacements[masks.used] == MASK).sum()))
            yield self._features(batch, lengths, masks)

    def _features(self, batch, lengths, masks: Masks):
        size, vocabulary = self.job.max_seq_length, self.vocabulary
        input_mask = np.arange(size) < lengths[:, None]
        ids = np.full(input_mask.shape, vocabulary.pad_id, np.int32)
        ids[input_mask] = np.concatenate([sample.ids for sample in batch])
        segments = np.zeros(input_mask.shape, bool)
        segments[input_mask] = np.concatenate([sample.segments for sample in batch])
        if ids.min() < 0 or ids.max() >= self.job.vocab_size:
            raise InputError(f"the samples hold the id {ids.max()}, but {self.job.vocab_file} has "
                             f"{self.job.vocab_size} tokens; give the vocabulary that made the "
                             "data.")
        arrays = {"segment_ids": segments, "input_mask": input_mask, "input_ids": ids,
                  "next_sentence_labels": np.array([[sample.label] for sample in batch])}
        arrays |= masks.hide(ids, vocabulary.mask_id)
        return {name: arrays[name] for name in instances_of(self.recipe).feature_names(
            self.recipe)}


def _describe(job, recipe, vocabulary, options, files, results):
    counts = join(result["counts"] for result in results)
    if not counts.get("instances"):
        raise InputError(f"--train_filelist: the files of {job.train_filelist} hold no sample of "
                         f"at most {job.max_seq_length} tokens; give a larger --max_seq_length.")
    described = describe_records(recipe, options, vocabulary, [path for path, _ in files])
    described["vocabulary"]["size"] = job.vocab_size
    return {**described, "counts": counts, "notes": []}


def report(counts: dict[str, int]) -> str:
    lines = [f"{counted(counts['instances'], 'sample')}, "
             f"{counts['follows'] / counts['instances']:.1%} with a second segment that "
             "follows (label 1)",
             f"{counts['predictions']:,} predictions, "
             f"{counts['predictions'] / counts['positions']:.1%} of the tokens, "
             f"{counts['masked'] / max(counts['predictions'], 1):.1%} of them [MASK]; "
             f"{counts['cut_predictions']:,} had no room and were left out"]
    for name, text in (("too_long", "samples are longer than --max_seq_length and were left out"),
                       ("negatives_lost", "negative pairs were too long and were left out")):
        if counts.get(name):
            lines.append(f"{counts[name]:,} {text}")
    return "\n".join(lines)


def main(job: ImportErnieDataFlags) -> None:
    flags.check(job)
    tokenizer = open_tokenizer(job.vocab_file)
    vocabulary = tokenizer.vocabulary
    recipe = recipes.find("ernie").vary(corruption={"dynamic": False, "units": "tags"},
                                        tokenizer=tokenizer.name)
    job.max_predictions_per_seq = job.max_predictions_per_seq or (
        masking.find(recipe.corruption).most_predictions(job.max_seq_length, job.masked_lm_prob))
    job.vocab_size = job.vocab_size or vocabulary.size
    if job.vocab_size < vocabulary.size:
        raise InputError(f"--vocab_size is {job.vocab_size}, but {job.vocab_file} has "
                         f"{vocabulary.size} tokens; give at least as many.")
    files = ernie_samples.read_list(job.train_filelist, job.data_dir)
    for path, _ in files:
        if not is_file(path):
            raise InputError(f"{job.train_filelist} names {path}, which is missing; give the "
                             "folder of the files as --data_dir.")
    path = manifest.manifest_path(job.output_file)
    folder = os.path.dirname(absolute(path))
    make_folder(folder, "output_file")
    flags.keep(job, folder, os.path.basename(path).removesuffix("manifest.json"))
    options = {name: value for name, value in dataclasses.asdict(job).items() if name not in (
        "train_filelist", "output_file", "data_dir", "num_workers", "vocab_file")}
    sums = [[file_checksum(name), probability] for name, probability in files]
    fingerprint = {"options": options, "vocabulary": vocabulary.hash, "inputs": sums,
                   "pieces": [hashlib.sha256(str(index).encode()).hexdigest()[:8]
                              for index in range(job.dupe_factor)],
                   "output_file": [relative(job.output_file, folder)],
                   "recipe": recipe.describe()}
    record, was_there = make_shards(
        path, fingerprint, [files] * job.dupe_factor,
        PassWriter(job, recipe, vocabulary, folder), job.num_workers,
        functools.partial(_describe, job, recipe, vocabulary, options, files))
    keep_tokenizer(tokenizer, path)
    print(report(record["counts"]))
    if was_there:
        print(f"{path} and its shards are there already")
    else:
        print(f"wrote {counted(record['counts']['instances'], 'record')}, manifest {path}")


if __name__ == "__main__":
    flags.run(main, ImportErnieDataFlags)
