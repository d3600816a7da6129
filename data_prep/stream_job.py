"""The records of recipes that read a text as a stream, such as xlnet: one shard for each task and
pass. A task is every --num_task-th input file, as in the original, and a piece of work."""

import collections
import dataclasses
import functools
import random
from typing import Any

import google_crc32c
import numpy as np

from bert_tf.data.records import manifest, tfrecord
from bert_tf.data.text import corpus
from bert_tf.errors import InputError, counted
from bert_tf.files import identity, open_unpacked
from bert_tf.models.xlnet import records as xlnet_records
from bert_tf.tokenization.coverage import Coverage, join
from data_prep.text_job import RecordJob, piece_seed


def _read_lines(path):
    with open_unpacked(path) as file:
        read = file.read()
    lines = corpus.decode(read, [path])
    # No line begins after the last newline, nor do carriage returns alone, which are dropped.
    if not lines[-1].strip("\r"):
        del lines[-1]
    return lines, google_crc32c.Checksum(read).digest().hex()


@functools.cache
def _checksum(path, version):
    with open_unpacked(path) as file:
        return tfrecord.checksum(file)


# A task, a pass, and the files of the task.
StreamPiece = tuple[int, int, list[str]]


class StreamJob(RecordJob):
    """A piece is one task in one pass.

    The original does not seed Python's generator; its seed here is the piece's. Numpy's is the
    original's seed, 100 * task + pass.
    """

    in_order = "a stream"

    @staticmethod
    def report(record: dict[str, Any]) -> str:
        counts, options = record["counts"], record["options"]
        passes = len(record["shards"])
        coverage = Coverage(record["coverage"])
        used = counts["batches"] * options["bsz_per_host"] * options["reuse_len"] / (
            1 + options["bi_data"])
        lines = [
            f"{counted(counts['documents'], 'document')}, {counted(counts['lines'], 'sentence')}, "
            f"{counts['tokens']:,} tokens, {coverage.shares}, in {counted(passes, 'stream')}",
            f"{counted(counts['instances'], 'record')} of {options['max_seq_length']} tokens in "
            f"{counts['batches']:,} batches of {options['bsz_per_host']}; "
            f"{counts['in_order'] / counts['instances']:.1%} of the second segments follow the "
            f"first; {counts['targets'] / counts['positions']:.1%} of the tokens are predicted"]
        lines += [f"warning: {text}" for text in coverage.warnings(("vocab_file", "do_lower_case"))]
        if counts.get("repeated_lines", 0) > 0.1 * max(counts["lines"], 1):
            lines.append("warning: many lines are repeated: the model will learn them by heart; "
                         "remove them first.")
        if used < 0.7 * counts["tokens"]:
            lines.append(f"warning: {1 - used / counts['tokens']:.0%} of the tokens are left out, "
                         "at the ends of rows that are short: give more text, or fewer rows "
                         "(--bsz_per_host).")
        return "\n".join(lines)

    def own_options(self) -> dict[str, Any]:
        return {**dataclasses.asdict(self.stream), "task": self.job.task,
                "reuse_len": self.stream.shape(self.job).reuse_len}

    def __post_init__(self):
        self.stream.shape(self.job)
        super().__post_init__()
        files = sorted(self.job.input_file)
        self.pieces = [(task, turn, files[task::self.stream.num_task])
                       for task, turn in self.stream.parts(self.job)]
        if self.stream.use_eod and "eod" not in self.tokenizer.vocabulary.special:
            raise InputError(f"--vocab_file: {self.job.vocab_file} has no <eod>; give a "
                             "SentencePiece model of XLNet, or --nouse_eod.")
        for task, _, paths in self.pieces:
            if not paths:
                raise InputError(f"--num_task={self.stream.num_task}: task {task} has no file, "
                                 f"there are {len(files)}.")
        pieces = [[task, turn, len(paths)] for task, turn, paths in self.pieces]
        self.fingerprint = self._fingerprint(pieces)
        self.versions = {path: identity(path) for path in self.job.input_file}

    def checksum(self, piece: StreamPiece) -> list:
        task, turn, paths = piece
        return [task, turn, [_checksum(path, self.versions[path]) for path in paths]]

    def version(self, piece: StreamPiece) -> list[str]:
        return [self.versions[path] for path in piece[2]]

    def check_text(self) -> None:
        for path in self.versions:
            _read_lines(path)

    def __call__(self, index: int, piece: StreamPiece) -> dict[str, Any]:
        task, turn, paths = piece
        vocabulary, shape = self.tokenizer.vocabulary, self.stream.shape(self.job)
        eod_id = vocabulary.ids[vocabulary.special["eod"]] if self.stream.use_eod else None
        streams, checksums, counts, coverage = [], [], collections.Counter[str](), Coverage()
        tokenizer = coverage.watch(self.tokenizer)
        for path in paths:
            lines, checksum = _read_lines(path)
            checksums.append(checksum)
            try:
                streams.append(xlnet_records.read_stream(lines, tokenizer, eod_id,
                                                         not self.stream.from_raw_text))
            except ValueError as error:
                raise InputError(f"{path} has a line that is not a list of ids ({error}); leave "
                                 "--nofrom_raw_text out for text.") from error
            if len(streams[-1].ids) and streams[-1].ids.max() >= vocabulary.size:
                raise InputError(f"{path} holds the id {streams[-1].ids.max()}, but the vocabulary "
                                 f"has {vocabulary.size} tokens; give the vocabulary of the ids.")
            texts = [line.strip().encode() for line in lines if line.strip()]
            counts.update(lines=len(texts), repeated_lines=len(texts) - len(set(texts)))
        numpy_draws = np.random.RandomState(100 * task + turn)
        streams = [stream for stream in streams if stream.lines]
        text = xlnet_records.join(streams, numpy_draws.permutation(len(streams)))
        counts.update(documents=text.documents, tokens=len(text.ids),
                      unknown_tokens=int((text.ids == vocabulary.unk_id).sum()))
        records = xlnet_records.make_records(
            *xlnet_records.cut_rows(text, shape.bsz_per_host, shape.num_core_per_host,
                                    shape.bi_data),
            shape, vocabulary.cls_id, vocabulary.sep_id,
            xlnet_records.MaskSampler(shape, self.tokenizer.continues, numpy_draws),
            random.Random(piece_seed(self.job.random_seed, index)))
        name = manifest.shard_name(self.job.output_file[0], index, len(self.pieces))
        shard = tfrecord.write_shard(name, self.folder, self._counted(records, counts))
        return {"shards": [{**shard, "task": task, "pass": turn}], "counts": dict(counts),
                "coverage": coverage.totals(), "checksum": [task, turn, checksums],
                "version": self.version(piece)}

    def _counted(self, batches, counts):
        for batch in batches:
            counts.update(
                instances=len(batch["input"]), positions=batch["input"].size, batches=1,
                targets=int((batch["is_masked"] & (batch["seg_id"] < 2)).sum()),
                in_order=int(batch["label"].sum()))
            yield batch

    def describe(self, results: list[dict]) -> dict[str, Any]:
        empty = [result["shards"][0] for result in results if not result["counts"].get("batches")]
        if empty:
            size = self.job.max_seq_length
            raise InputError(
                f"--input_file: task {empty[0]['task']} is too short for a batch of "
                f"{self.stream.bsz_per_host} rows of {size} tokens each; give more text, a smaller "
                "--bsz_per_host, or fewer tasks.")
        return super().describe(results) | {
            name: join(result[name] for result in results) for name in ("counts", "coverage")}
