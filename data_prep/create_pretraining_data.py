"""Turns text into pre-training records, as BERT's original code does or by another recipe.

The input has one sentence a line and a blank line between documents. The records of --recipe=bert
are those of google-research/bert create_pretraining_data.py, value for value, for a text that fits
one piece (--piece_bytes); a larger text is cut into pieces of whole documents, each treated as the
original would treat a separate file. The same command, started again, continues where it stopped.

With --recipe=xlnet the text is read as a stream, and the records are those of zihangdai/xlnet
data_utils.py.

With --masking=dynamic the records hold the text without masks, and bert-run-pretraining draws new
masks each time that it reads a record.

With --train_filelist it reads ERNIE's own data: bert-create-pretraining-data --train_filelist
--help lists the flags.

Example:
    bert-create-pretraining-data --input_file=text.txt --output_file=/tmp/text.tfrecord \\
        --vocab_file=vocab.txt --max_seq_length=128 --max_predictions_per_seq=20
"""

import functools
import hashlib
import os
from typing import Any

import google_crc32c
import numpy as np

from bert_tf import flags, recipes
from bert_tf.data import masking
from bert_tf.data.denoising.text_pairs import create_pairs
from bert_tf.data.instances import statistics
from bert_tf.data.instances.pretraining import create_instances
from bert_tf.data.records import manifest
from bert_tf.data.records.shards import make_shards
from bert_tf.data.records.tfrecord import write_shard
from bert_tf.data.segments.pairing import PAIRINGS
from bert_tf.data.text import corpus
from bert_tf.data.text.python_random import PythonRandom
from bert_tf.data.text.token_labels import capitals
from bert_tf.data.text.units import BOUNDARY, PhraseList, TaggedText, make_marker
from bert_tf.errors import InputError
from bert_tf.files import find_files, make_folder
from bert_tf.options import defaults_of
from bert_tf.tokenization.base import check_sentinels, open_tokenizer
from bert_tf.tokenization.dual import DualTokenizer
from data_prep import stream_job
from data_prep.denoising_flags import DenoisingFlags
from data_prep.pretraining_flags import PretrainingDataFlags, needs_tags, recipe_defaults
from data_prep.pretraining_manifest import (
    describe,
    describe_all,
    draws_of_corpus,
    fingerprint_of,
    options_of,
)
from data_prep.stream_job import StreamFlags, StreamJob

_ROWS = 8192            # instances made into bytes at a time
_SEEDS = 1 << 62        # what seeds of data sets are below


class PieceWriter:
    """Makes the shards of one piece; every worker process has one.

    Args:
        job: `PretrainingDataFlags`.
        recipe: `Recipe`.
        tokenizer: `WordpieceTokenizer`.
        count: number of pieces.
        folder: of the manifest; shards are named from there.
        phrases: units of the text, or None.
        target_length: of records that are inputs and targets.
        rows: of a batch, for recipes whose sequences go on from batch to batch.
    """

    def __init__(self, job: PretrainingDataFlags, recipe: recipes.Recipe, tokenizer, count: int,
                 folder: str, phrases: PhraseList | None = None, target_length: int = 0,
                 rows: int = 0) -> None:
        self._rows = rows
        self._job, self._recipe, self._tokenizer = job, recipe, tokenizer
        self._count, self._folder, self._phrases = count, folder, phrases
        self._target_length = target_length

    def __call__(self, index: int, piece: bytes) -> dict[str, Any]:
        """Writes the shards of piece `index`; returns their entries and counts for the manifest."""
        lines = corpus.decode(piece, self._job.input_file)
        tokenize = (corpus.tokenize_sentences if self._recipe.segments.sentence_ends
                    else corpus.tokenize_documents)
        text = None
        if self._job.input_format == "columns":
            tags = needs_tags(self._recipe)
            text = TaggedText(lines, self._tokenizer, self._job.tag_column if tags else None,
                              self._job.input_file)
            lines = text.lines
        documents = tokenize(lines, self._tokenizer, self._job.blanks_separate_docs,
                             make_marker(text, self._phrases, self._label))
        vocabulary = self._tokenizer.vocabulary
        counts, sample = statistics.count_text(
            lines, documents, vocabulary.unk_id,
            self._recipe.segments.pairing == "doc_blocks")
        del lines
        instances, more = self._make(documents, _piece_seed(self._job.random_seed, index))
        counts.update(more)
        try:
            shards = self._write(index, instances)
        except OSError as error:
            raise InputError(
                f"--output_file: piece {index + 1} can't be written ({error}); make room and start "
                "the command again, finished pieces are kept.") from error
        result = {"shards": shards, "counts": counts, "line_sample": sample}
        if draws_of_corpus(self._recipe):
            # DistilBERT's code counts lines that it leaves out, too.
            is_whole = masking.find(self._recipe.corruption).by_rarity
            result["token_counts"] = np.bincount(
                documents.tokens if is_whole else instances.counted_tokens,
                minlength=vocabulary.size).tolist()
        return result

    def _make(self, documents, seed):
        """The instances of the piece, and counts of them."""
        vocabulary, size = self._tokenizer.vocabulary, self._job.max_seq_length
        if self._recipe.denoising:
            pairs = create_pairs(documents, vocabulary, seed % _SEEDS, self._recipe.denoising, size,
                                 self._target_length, self._job.dupe_factor)
            return pairs, pairs.counts()
        instances = create_instances(documents, vocabulary, seed, self._recipe, self._job,
                                     self._rows)
        return instances, statistics.count_instances(instances, size, instances.layout)

    @property
    def _label(self):
        """What gives labels to the tokens of a text, if the task has such."""
        task = self._recipe.tasks[self._recipe.task] if self._recipe.task else None
        if task and task.token_labels == "capitalization":
            return functools.partial(capitals, tokenizer=self._tokenizer)
        return None

    def _write(self, index, instances):
        """Spreads the instances over the output files in turn, as the original does."""
        names = [manifest.shard_name(name, index, self._count) for name in self._job.output_file]
        shards = []
        # One file at a time: each takes every len(names)-th instance.
        for turn, name in enumerate(names):
            order = instances.order[turn::len(names)]
            blocks = (instances.features(order[start:start + _ROWS], self._job.max_seq_length,
                                         self._tokenizer.vocabulary)
                      for start in range(0, len(order), _ROWS))
            shards.append(write_shard(name, self._folder, blocks))
        return shards


def _piece_seed(seed, index):
    """The first piece has the seed itself, so that a text of one piece equals the original's."""
    if index == 0:
        return seed
    return int.from_bytes(hashlib.sha256(f"{seed}/{index}".encode()).digest()[:8], "big")


def _scan(job, recipe):
    """Reads the text once: its pieces' checksums.

    Raises:
        InputError: it is not UTF-8.
    """
    checksums = []
    for piece in _read_pieces(job, recipe):
        corpus.decode(piece, job.input_file)
        checksums.append(google_crc32c.value(piece))
    return checksums


def _check_vocabulary(job, recipe, vocabulary):
    """Raises InputError for a vocabulary without the special tokens of a sequence."""
    layout = vocabulary.layout
    needed = ["cls"] * (layout.before > 0 or layout.cls_last) + ["sep"]
    needed = (["sep"] if recipe.denoising else
              needed * (not recipe.segments.bare)
              + ["mask"] * masking.find(recipe.corruption).hides)
    missing = [role for role in needed if role not in vocabulary.special]
    if missing:
        raise InputError(f"--vocab_file: {job.vocab_file} has no special token for the role "
                         f"{', '.join(missing)}; give the vocabulary of BERT or of a relative.")


def _check_output(job):
    """Raises InputError for output files that can't be written."""
    outputs = list(map(os.path.realpath, job.output_file))
    if len(set(outputs)) < len(outputs):
        raise InputError("--output_file names a file twice.")
    for name, path in zip(job.output_file, outputs):
        if os.path.isdir(name) or name.endswith(os.sep):
            raise InputError(f"--output_file: {name!r} is a folder; name a file in it.")
        if path in map(os.path.realpath, job.input_file):
            raise InputError(f"--output_file: {name!r} is also an input file.")
        make_folder(os.path.dirname(path), "output_file")


def _read_pieces(job, recipe):
    """The text in pieces."""
    by_column = job.input_format == "columns"
    return corpus.read_pieces(job.input_file, job.piece_bytes, by_file=by_column or (
        PAIRINGS[recipe.segments.pairing].in_order),
        boundary=BOUNDARY if by_column else corpus.BLANK_LINE)


def _open_tokenizer(job, recipe):
    """The tokenizer of the flags.

    Raises:
        InputError: the vocabulary can't be read, or two can't be mixed.
    """
    if not job.second_vocab_file:
        return open_tokenizer(job.vocab_file, job.do_lower_case, **recipe.tokenizer_settings)
    if recipe.tokenizer_settings:
        raise InputError("--second_vocab_file is for words as BERT splits them; leave out "
                         f"{', '.join(f'--{name}' for name in recipe.tokenizer_settings)}, or the "
                         "recipe.")
    return DualTokenizer.open(job.vocab_file, job.second_vocab_file, job.do_lower_case,
                              job.second_share)


def main(job: PretrainingDataFlags, stream: StreamFlags | None = None,
         denoising: DenoisingFlags | None = None) -> None:
    """Makes the records and prints a report on them."""
    stream, denoising = stream or StreamFlags(), denoising or DenoisingFlags()
    recipe = job.resolve()
    for given in (stream, denoising):
        flags.check(given, recipe)
    recipe, target_length = denoising.resolve(recipe, job)
    pairing = PAIRINGS[recipe.segments.pairing]
    in_streams = pairing.in_streams
    masking.find(recipe.corruption).check_slots(job.max_predictions_per_seq, job.max_seq_length,
                                                job.masked_lm_prob)
    tokenizer = _open_tokenizer(job, recipe)
    recipe = recipe.vary(tokenizer=tokenizer.name, tokenizer_settings=tokenizer.settings)
    vocabulary = tokenizer.vocabulary
    _check_vocabulary(job, recipe, vocabulary)
    if recipe.denoising:
        check_sentinels(tokenizer, f"--vocab_file={job.vocab_file}")
    job.input_file = find_files(job.input_file, "input_file")
    if PAIRINGS[recipe.segments.pairing].in_order:
        PythonRandom(job.random_seed).shuffle(job.input_file)
    _check_output(job)
    path = manifest.manifest_path(job.output_file[0])
    folder = os.path.dirname(os.path.abspath(path))

    print(f"reading {len(job.input_file)} input file{'s' * (len(job.input_file) > 1)}", flush=True)
    options = options_of(job)
    if in_streams:
        _make_streams(StreamJob(job, stream, recipe, tokenizer), path, options)
        return
    if target_length:
        options["max_target_length"] = target_length
    if pairing.in_rows:
        options["bsz_per_host"] = stream.bsz_per_host
        if len(job.output_file) > 1:
            raise InputError("--output_file: the records of rows are in order; name one file.")
    options["do_whole_word_mask"] = recipe.corruption.units == "words"
    phrases = None
    if job.phrase_file:
        phrases = PhraseList.read(job.phrase_file, tokenizer)
        options["phrase_file"] = phrases.hash
    fingerprint = fingerprint_of(job, recipe, options, vocabulary, _scan(job, recipe), folder)
    writer = PieceWriter(job, recipe, tokenizer, len(fingerprint["pieces"]), folder, phrases,
                         target_length, options.get("bsz_per_host", 0))
    record, was_there = _make_shards(
        job, path, fingerprint, _read_pieces(job, recipe), writer,
        job.num_workers, functools.partial(describe, job, recipe, vocabulary, options),
        defaults=defaults_of(PretrainingDataFlags))
    _report(path, record, was_there, statistics.report)


def _make_streams(made, path, options):
    """Makes the records of a `StreamJob`."""
    job, vocabulary = made.job, made.tokenizer.vocabulary
    options |= made.options()
    folder = os.path.dirname(os.path.abspath(path))
    fingerprint = {"options": options, "vocabulary": vocabulary.hash, "pieces": made.checksums(),
                   "output_file": [os.path.relpath(name, folder) for name in job.output_file],
                   "recipe": made.recipe.describe()}
    record, was_there = _make_shards(
        job, path, fingerprint, made.pieces(),
        made.writer(folder, functools.partial(_piece_seed, job.random_seed)), job.num_workers,
        functools.partial(made.describe, describe_all(job, made.recipe, vocabulary, options)),
        defaults=defaults_of(PretrainingDataFlags) | defaults_of(StreamFlags))
    _report(path, record, was_there, stream_job.report)


def _make_shards(job, path, *arguments, **options):
    """See `make_shards`; the flags are kept beside records that are made now."""
    keep = functools.partial(flags.keep, job, os.path.dirname(os.path.abspath(path)),
                             os.path.basename(path).removesuffix("manifest.json"))
    if not os.path.exists(path):
        keep()
    record, was_there = make_shards(path, *arguments, **options)
    if not was_there:
        keep()
    return record, was_there


def _report(path, record, was_there, report):
    """Prints what was made."""
    print(report(record))
    if was_there:
        print(f"{path} and its shards are there already, made from this text with these flags")
        return
    count = len(record["shards"])
    print(f"wrote {record['counts']['instances']:,} records to {count} file{'s' * (count > 1)}, "
          f"manifest {path}")


def run() -> None:
    """The console entry point."""
    flags.run(main, PretrainingDataFlags, StreamFlags, DenoisingFlags, defaults=recipe_defaults,
              recipe=lambda given: recipes.find(given.get("recipe", "bert")))


if __name__ == "__main__":
    run()
