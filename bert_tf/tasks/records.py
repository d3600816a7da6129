"""The records of one split of a task: planned, which finds all that is wrong, and then made."""

import collections
import dataclasses
import functools
import hashlib
import os

from bert_tf.config import defaults_of
from bert_tf.data import manifest
from bert_tf.data.shards import make_shards
from bert_tf.data.tfrecord import write_shard
from bert_tf.errors import InputError
from bert_tf.tasks.encoding import encode
from bert_tf.tasks.reading import read_examples
from bert_tf.tasks.rows import Omissions

_SHARD_EXAMPLES = 1 << 16
_BLOCK_EXAMPLES = 1 << 11       # made into bytes at a time


@dataclasses.dataclass(frozen=True)
class Source:
    """One split of a task and the file that it is read from.

    Attributes:
        task: `Task`, its labels known.
        split: the split's name.
        path: its file.
        skip_malformed_lines: count them; otherwise the first is an error.
    """

    task: object
    split: str
    path: str
    skip_malformed_lines: bool = False

    def examples(self, omissions=None):
        """Yields the `Example`s; `omissions`, if given, counts the lines that gave none."""
        return read_examples(self.task, self.split, self.path,
                             omissions or Omissions(self.skip_malformed_lines))


@dataclasses.dataclass(frozen=True)
class Options:
    """What examples become.

    Attributes:
        max_seq_length, document_context: see `encode`.
        do_lower_case: that of the tokenizer.
    """

    max_seq_length: int
    do_lower_case: bool = True
    document_context: bool = False


def _cut(examples, size, by_document):
    """Yields lists of `size` examples, longer where a document would be cut in two."""
    piece = []
    for example in examples:
        if len(piece) >= size and not (by_document and example.document == piece[-1].document):
            yield piece
            piece = []
        piece.append(example)
    if piece:
        yield piece


class _PieceWriter:
    """Makes the shard of one piece; every worker process has one."""

    def __init__(self, task, options, tokenizer, output_file, count):
        self._task, self._options, self._tokenizer = task, options, tokenizer
        self._output_file, self._count = output_file, count

    def __call__(self, index, examples):
        """Writes the shard of piece `index`; returns its entry and counts for the manifest."""
        counts = collections.Counter(examples=len(examples))
        path = manifest.shard_name(self._output_file, index, self._count)
        try:
            shard = write_shard(path, os.path.dirname(path), self._blocks(examples, counts))
        except OSError as error:
            raise InputError(f"--output_dir: {path} can't be written ({error}); make room and "
                             "start the command again, finished pieces are kept.") from error
        return {"shards": [shard], "counts": {**counts, "records": shard["records"]}}

    def _blocks(self, examples, counts):
        for block in _cut(examples, _BLOCK_EXAMPLES, self._options.document_context):
            features, cut = encode(self._task, block, self._tokenizer,
                                   self._options.max_seq_length, self._options.document_context)
            counts["cut_to_fit"] += cut
            counts["tokens"] += int(features["input_mask"].sum())
            yield features


class SplitRecords:
    """The records of a split; building one reads all its examples once.

    Args:
        source: `Source`.
        options: `Options`.
        tokenizer: `WordpieceTokenizer`.

    Raises:
        InputError: see `read_examples`.
    """

    def __init__(self, source, options, tokenizer):
        self._source, self._options, self._tokenizer = source, options, tokenizer
        self._omissions = Omissions(source.skip_malformed_lines)
        self._sizes, self._labels, self._num_choices = [], collections.Counter(), 1
        digest = hashlib.sha256()
        for piece in self._pieces(self._omissions):
            self._sizes.append(len(piece))
            for example in piece:
                digest.update(repr(example).encode("utf-8", "surrogatepass"))
                self._count_labels(example.label)
            if source.task.kind == "multiple_choice":
                self._num_choices = len(piece[0].texts) - 1
        self._sha256 = digest.hexdigest()

    def make(self, output_dir, num_workers=0, may_replace=True):
        """Writes `split`.tfrecord and its manifest, unless they are there.

        Returns:
            The manifest, and whether it was there already.

        Raises:
            InputError: other records are there, and may not be replaced.
        """
        output_file = os.path.join(os.path.abspath(output_dir), f"{self._source.split}.tfrecord")
        task, vocabulary = self._source.task, self._tokenizer.vocabulary
        fingerprint = {
            "options": dataclasses.asdict(self._options),
            "task": [task.name, task.kind, task.multi_label, list(task.labels)],
            "vocabulary": vocabulary.hash, "examples": self._sha256,
            "omissions": dataclasses.asdict(self._omissions),
            "pieces": self._sizes, "output_file": [os.path.basename(output_file)]}
        writer = _PieceWriter(task, self._options, self._tokenizer, output_file, len(self._sizes))
        return make_shards(manifest.manifest_path(output_file), fingerprint, self._pieces(), writer,
                           num_workers, functools.partial(self._describe, vocabulary),
                           may_replace, defaults_of(Options))

    def _pieces(self, omissions=None):
        return _cut(self._source.examples(omissions), _SHARD_EXAMPLES,
                    self._options.document_context)

    def _count_labels(self, label):
        """By id; the words', in tagging."""
        if self._source.task.multi_label:
            self._labels.update(index for index, has in enumerate(label) if has)
        else:
            self._labels.update(label if isinstance(label, list) else [label])

    def _describe(self, vocabulary, results):
        """What the manifest says besides its shards."""
        task, split = self._source.task, self._source.split
        totals = sum((collections.Counter(r["counts"]) for r in results), collections.Counter())
        counts = {name: totals[name] for name in ("examples", "records", "cut_to_fit", "tokens")}
        counts["malformed_lines"] = self._omissions.malformed
        counts["lines_without_label"] = self._omissions.without_label
        labelled = task.split(split).label is not None
        if labelled and task.labels:
            counts["labels"] = {name: self._labels[i] for i, name in enumerate(task.labels)}
        return {
            "format": "bert_tf fine-tuning records 1",
            "options": dataclasses.asdict(self._options),
            "task": {"name": task.name, "kind": task.kind, "split": split, "labels": task.labels,
                     "labelled": labelled, "multi_label": task.multi_label,
                     "num_choices": self._num_choices, "metrics": task.metrics},
            "vocabulary": {"size": vocabulary.size, "sha256": vocabulary.hash},
            "inputs": [{"name": self._source.path}],
            "counts": counts,
            "notes": self._notes(counts),
        }

    def _notes(self, counts):
        notes, path = [], self._source.path
        official = self._source.task.split(self._source.split).size
        if official and counts["examples"] != official:
            notes.append(f"{path} holds {counts['examples']:,} examples, the official file "
                         f"{official:,}.")
        if counts["malformed_lines"]:
            notes.append(f"{counts['malformed_lines']:,} malformed lines of {path} were left out.")
        return notes
