"""The records of recipes that read a text as a stream, such as xlnet: one shard for each task and
pass. A task is every --num_task-th input file, as in the original, and a piece of work."""

import collections
import dataclasses
import functools
import random
from typing import Any

import google_crc32c
import numpy as np

from bert_tf.data.records import manifest
from bert_tf.data.records.tfrecord import write_shard
from bert_tf.data.segments import stream_records, streams
from bert_tf.data.segments.pairing import PAIRINGS
from bert_tf.data.text import corpus, places
from bert_tf.errors import InputError
from bert_tf.files import identity, open_unpacked, relative
from bert_tf.flags import Scope, option
from bert_tf.options import defaults_of
from bert_tf.recipes import Recipe
from data_prep.pretraining_flags import PretrainingDataFlags
from data_prep.pretraining_manifest import describe_all, options_of
from data_prep.text_job import piece_seed

_ROWS = Scope("recipes that read rows side by side, such as xlnet and elmo", lambda recipe: (
    PAIRINGS[recipe.segments.pairing].in_streams or PAIRINGS[recipe.segments.pairing].in_rows))
_of_streams = functools.partial(option, for_=Scope(
    "recipes that read a text as a stream, such as xlnet",
    lambda recipe: PAIRINGS[recipe.segments.pairing].in_streams))


@dataclasses.dataclass
class StreamFlags:
    """Streams of text, and rows that are read side by side (XLNet)."""

    bsz_per_host: int = option(
        32, "Number of records in a batch. Row r of each batch continues row r of the batch "
        "before, so --train_batch_size must be the same number.",
        for_=_ROWS, least=1)
    num_core_per_host: int = _of_streams(
        1, "Number of devices that share the rows. With --bi_data half of the rows of each device "
        "run backward.", least=1, rare=True)
    reuse_len: int = _of_streams(
        0, "Tokens at the beginning of a sequence that the network keeps for the next batch. 0: "
        "half of --max_seq_length, the only length allowed.", least=0)
    bi_data: bool = _of_streams(True, "Half of the rows hold the text backward.")
    mask_alpha: int = _of_streams(
        6, "A run of n predicted tokens has a context of n * mask_alpha / mask_beta tokens, which "
        "includes the run.", least=1)
    mask_beta: int = _of_streams(1, "See --mask_alpha.", least=1)
    max_gram: int = _of_streams(
        5, "Maximum length of a run of predicted tokens; 1 predicts single tokens.", least=1)
    whole_grams: bool = _of_streams(
        False, "Runs consist of whole words. The original and its released models count sub-words.")
    use_eod: bool = _of_streams(
        True, "A blank line becomes the token <eod>; if false, it is left out.")
    from_raw_text: bool = _of_streams(
        True, "The input is text; if false, ids separated by blanks.", rare=True)
    num_task: int = _of_streams(
        1, "Number of parts into which the input files are divided, each with its own records. "
        "--task=i makes the records of part i alone.", least=1)
    pass_id: int = _of_streams(
        0, "Number of the first pass over the text; --dupe_factor is the number of passes.",
        least=0, rare=True)

    def shape(self, job) -> stream_records.Shape:
        """Returns the form of the records."""
        size, rows = job.max_seq_length, self.bsz_per_host
        if size % 2 or size < 10:
            raise InputError(f"--max_seq_length is {size}; it must be even, and at least 10.")
        reuse = self.reuse_len or size // 2
        if reuse != size // 2:
            raise InputError(f"--reuse_len is {reuse}, but it must be half of --max_seq_length, "
                             f"{size // 2}.")
        if rows % (self.num_core_per_host * (1 + self.bi_data)):
            raise InputError(
                f"--bsz_per_host={rows} can't be divided among --num_core_per_host="
                f"{self.num_core_per_host}{' with --bi_data, in two halves each' * self.bi_data}; "
                f"give a multiple of {self.num_core_per_host * (1 + self.bi_data)}.")
        if self.mask_alpha < self.mask_beta:
            raise InputError(f"--mask_alpha={self.mask_alpha} is less than "
                             f"--mask_beta={self.mask_beta}: a masked token would not fit into its "
                             "context; raise --mask_alpha.")
        if job.max_predictions_per_seq > size:
            raise InputError(f"--max_predictions_per_seq={job.max_predictions_per_seq} is more "
                             f"than --max_seq_length={size}.")
        given = {name: getattr(self, name) for name in (
            "num_core_per_host", "bi_data", "mask_alpha", "mask_beta", "max_gram", "whole_grams")}
        return stream_records.Shape(size, reuse, job.max_predictions_per_seq or None, rows, **given)

    def parts(self, job) -> list[tuple[int, int]]:
        """Lists (task, pass) of each shard."""
        tasks = list(range(self.num_task))
        if job.task:
            if job.task not in map(str, tasks):
                raise InputError(f"--task={job.task} must be below --num_task={self.num_task}.")
            tasks = [int(job.task)]
        return [(task, self.pass_id + turn) for turn in range(job.dupe_factor) for task in tasks]


def _read_lines(path):
    """The lines of a file, and the checksum of its bytes."""
    with open_unpacked(path) as file:
        read = file.read()
    lines = corpus.decode(read, [path])
    # No line begins after the last newline.
    return lines if lines[-1] else lines[:-1], google_crc32c.Checksum(read).digest().hex()


@functools.cache
def _checksum(path, version):
    digest = google_crc32c.Checksum()
    with open_unpacked(path) as file:
        for _ in digest.consume(file, 1 << 20):
            pass
    return digest.digest().hex()


def _report(record: dict[str, Any]) -> str:
    """Returns the text of the report on a manifest."""
    counts, options = record["counts"], record["options"]
    passes = len(record["shards"])
    kept = counts["batches"] * options["bsz_per_host"] * options["reuse_len"] / (
        1 + options["bi_data"])
    lines = [
        f"{counts['documents']:,} documents, {counts['lines']:,} sentences, {counts['tokens']:,} "
        f"tokens, {counts['unknown_tokens'] / max(counts['tokens'], 1):.2%} unknown "
        f"tokens, in {passes} stream{'s' * (passes > 1)}",
        f"{counts['instances']:,} records of {options['max_seq_length']} tokens in "
        f"{counts['batches']:,} batches of {options['bsz_per_host']}; "
        f"{counts['in_order'] / counts['instances']:.1%} of the second segments follow the first; "
        f"{counts['targets'] / counts['positions']:.1%} of the tokens are predicted"]
    if counts["unknown_tokens"] > 0.01 * counts["tokens"]:
        lines.append("warning: many tokens are unknown: the vocabulary or --do_lower_case does "
                     "not fit the text.")
    if counts.get("repeated_lines", 0) > 0.1 * max(counts["lines"], 1):
        lines.append("warning: many lines are repeated: the model will learn them by heart; "
                     "remove them first.")
    if kept < 0.7 * counts["tokens"]:
        lines.append(f"warning: {1 - kept / counts['tokens']:.0%} of the tokens are left out, at "
                     "the ends of rows that are short: give more text, or fewer rows "
                     "(--bsz_per_host).")
    return "\n".join(lines)


# A task, a pass, and the files of the task.
StreamPiece = tuple[int, int, list[str]]


@dataclasses.dataclass
class StreamJob:
    """Makes the shard of one task in one pass at a call, for `make_shards`; every worker process
    has a copy.

    The original does not seed Python's generator; its seed here is the piece's. Numpy's is the
    original's seed, 100 * task + pass.

    Attributes:
        folder: the manifest's; shards are named relative to it.
        fingerprint: values that the shards depend on.
        defaults: defaults of the fingerprint's options.
    """

    job: PretrainingDataFlags
    recipe: Recipe
    tokenizer: Any
    folder: str
    stream: StreamFlags
    report = staticmethod(_report)

    def __post_init__(self):
        self.stream.shape(self.job)
        if len(self.job.output_file) > 1:
            raise InputError("--output_file: the records of a stream are in order, so there is one "
                             "file; name one.")
        self._parts = self.stream.parts(self.job)
        if self.stream.use_eod and "eod" not in self.tokenizer.vocabulary.special:
            raise InputError(f"--vocab_file: {self.job.vocab_file} has no <eod>; give a "
                             "SentencePiece model of XLNet, or --nouse_eod.")
        for task, _ in self._parts:
            if not self._files(task):
                raise InputError(f"--num_task={self.stream.num_task}: task {task} has no file, "
                                 f"there are {len(self.job.input_file)}.")
        self.options = {**options_of(self.job), **dataclasses.asdict(self.stream),
                        "reuse_len": self.stream.shape(self.job).reuse_len, "task": self.job.task}
        self.fingerprint = {
            "options": self.options, "vocabulary": self.tokenizer.vocabulary.hash,
            "pieces": [[task, turn, len(self._files(task))] for task, turn in self._parts],
            "output_file": [
                relative(name, self.folder) for name in self.job.output_file],
            "recipe": self.recipe.describe()}
        self.defaults = defaults_of(PretrainingDataFlags) | defaults_of(StreamFlags)
        self._versions = {path: identity(path) for path in self.job.input_file}

    def _files(self, task):
        return sorted(self.job.input_file)[task::self.stream.num_task]

    def pieces(self) -> list[StreamPiece]:
        """Returns the tasks and passes with the files of each."""
        return [(task, turn, self._files(task)) for task, turn in self._parts]

    def checksum(self, piece: StreamPiece) -> list:
        """Reads a piece's files; returns its entry in the manifest."""
        task, turn, paths = piece
        return [task, turn, [_checksum(path, self._versions[path]) for path in paths]]

    def version(self, piece: StreamPiece) -> list[str]:
        """Returns a value that changes with the files of a piece."""
        return [self._versions[path] for path in piece[2]]

    def check_text(self) -> None:
        """Raises InputError if a file can't be read or is not UTF-8."""
        for path in self._versions:
            _read_lines(path)

    def check_unchanged(self) -> None:
        """Raises InputError if a file has changed since the job began."""
        places.check_versions(self._versions)

    def __call__(self, index: int, piece: StreamPiece) -> dict[str, Any]:
        """Writes a shard; returns its entry and counts for the manifest."""
        task, turn, paths = piece
        vocabulary, shape = self.tokenizer.vocabulary, self.stream.shape(self.job)
        eod_id = vocabulary.ids[vocabulary.special["eod"]] if self.stream.use_eod else None
        found, checksums, counts = [], [], collections.Counter[str]()
        for path in paths:
            lines, checksum = _read_lines(path)
            checksums.append(checksum)
            try:
                found.append(streams.read_stream(lines, self.tokenizer, eod_id,
                                                 not self.stream.from_raw_text))
            except ValueError as error:
                raise InputError(f"{path} has a line that is not a list of ids ({error}); leave "
                                 "--nofrom_raw_text out for text.") from error
            if len(found[-1].ids) and found[-1].ids.max() >= vocabulary.size:
                raise InputError(f"{path} holds the id {found[-1].ids.max()}, but the vocabulary "
                                 f"has {vocabulary.size} tokens; give the vocabulary of the ids.")
            texts = [line.strip().encode() for line in lines if line.strip()]
            counts.update(lines=len(texts), repeated_lines=len(texts) - len(set(texts)))
        numpy_draws = np.random.RandomState(100 * task + turn)
        found = [stream for stream in found if stream.lines]
        text = streams.join(found, numpy_draws.permutation(len(found)))
        counts.update(documents=text.documents, tokens=len(text.ids),
                      unknown_tokens=int((text.ids == vocabulary.unk_id).sum()))
        records = stream_records.make_records(
            *streams.cut_rows(text, shape.bsz_per_host, shape.num_core_per_host, shape.bi_data),
            shape, vocabulary.cls_id, vocabulary.sep_id,
            stream_records.MaskSampler(shape, self.tokenizer.continues, numpy_draws),
            random.Random(piece_seed(self.job.random_seed, index)))
        name = manifest.shard_name(self.job.output_file[0], index, len(self._parts))
        try:
            shard = write_shard(name, self.folder, self._counted(records, counts))
        except OSError as error:
            raise InputError(f"--output_file: {name} can't be written ({error}); make room and run "
                             "the command again: finished shards are kept.") from error
        return {"shards": [{**shard, "task": task, "pass": turn}], "counts": dict(counts),
                "checksum": [task, turn, checksums], "version": self.version(piece)}

    def _counted(self, batches, counts):
        """Yields the batches, and counts them."""
        for batch in batches:
            counts.update(
                instances=len(batch["input"]), positions=batch["input"].size, batches=1,
                targets=int((batch["is_masked"] & (batch["seg_id"] < 2)).sum()),
                in_order=int(batch["label"].sum()))
            yield batch

    def describe(self, results: list[dict]) -> dict[str, Any]:
        """Returns the manifest without its shards, made from the calls' results."""
        counts = collections.Counter[str]()
        for result in results:
            counts.update(result["counts"])
        empty = [result["shards"][0] for result in results if not result["counts"].get("batches")]
        if empty:
            size = self.job.max_seq_length
            raise InputError(
                f"--input_file: task {empty[0]['task']} is too short for a batch of "
                f"{self.stream.bsz_per_host} rows of {size} tokens each; give more text, a smaller "
                "--bsz_per_host, or fewer tasks.")
        return {**describe_all(self.job, self.recipe, self.tokenizer.vocabulary, self.options),
                "counts": dict(counts)}
