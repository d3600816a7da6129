"""The records of one split of a task: planned, which finds all errors of its file, then made."""

import array
import collections
import dataclasses
import functools
import hashlib
import os
import re
import typing

import numpy as np

from bert_tf.data.records import manifest
from bert_tf.data.records.features import known
from bert_tf.data.records.jobs import Runner
from bert_tf.data.records.shards import make_shards
from bert_tf.data.records.tfrecord import write_shard
from bert_tf.errors import InputError, counted, listed
from bert_tf.files import absolute
from bert_tf.tasks.reading import Example, KeptRows, read_examples
from bert_tf.tasks.rows import Omissions
from bert_tf.tokenization import coverage

_BLOCK_EXAMPLES = 1 << 11       # made into bytes at a time
_QUOTED = re.compile('"(?:[^"]|"")*"')      # a cell of CSV
_MOST_LABELS = 12               # that a report counts one by one


@dataclasses.dataclass(frozen=True)
class Source:
    """One split of a task and its file."""

    task: typing.Any    # `Task` whose labels are known
    split: str
    path: str
    skip_malformed_lines: bool = False  # count malformed lines; otherwise the first is an error
    both_orders: bool = False   # whether all examples come again with their two texts swapped
    # The share of examples taken at random; with one seed, a part of larger shares.
    fraction: float = 1.0
    seed: int = 0   # of the fraction
    # Keep the rows of the file once they were read.
    rows: KeptRows = dataclasses.field(default_factory=KeptRows, compare=False, repr=False)

    def examples(self, omissions: Omissions | None = None) -> typing.Iterator[Example]:
        """Yields the `Example`s; `omissions` counts the lines that gave no example."""
        yield from self._taken(omissions or Omissions(self.skip_malformed_lines))
        if self.both_orders:
            for example in self._taken(Omissions(self.skip_malformed_lines)):
                yield example._replace(texts=example.texts[::-1])

    def _all(self, omissions):
        return read_examples(self.task, self.split, self.path, omissions, self.rows)

    def _taken(self, omissions):
        for row, example in enumerate(self._all(omissions)):
            if self.fraction == 1 or row in self._rows:
                yield example

    @functools.cached_property
    def _rows(self):
        count = sum(1 for _ in self._all(Omissions(self.skip_malformed_lines)))
        order = np.random.default_rng(self.seed).permutation(count)
        return set(order[:max(int(count * self.fraction + 1e-9), 1)].tolist())

    def check_fraction(self) -> None:
        """Raises InputError if a label of the file has no example among those taken."""
        if self.fraction == 1 or not self.task.kind.has_labels:
            return
        labels, taken = (
            {label for example in examples for label in self.task.kind.counted(example.label)}
            for examples in (self._all(Omissions(self.skip_malformed_lines)), self.examples()))
        lost = [self.task.labels[label] for label in sorted(labels - taken)]
        if lost:
            raise InputError(f"--train_fraction={self.fraction:g} leaves {len(self._rows):,} "
                             f"examples of {self.path}, and none with the label {listed(lost)}; "
                             "give a larger --train_fraction, or another --train_fraction_seed.")


@dataclasses.dataclass(frozen=True)
class RecordOptions:
    """The settings for making records of examples."""

    max_seq_length: int     # S
    do_lower_case: bool = True
    document_context: bool = False      # a sentence to tag is read with the text around it
    max_qa_length: int | None = None    # as the next one, see `kinds.sentence.MultipleChoice`
    carry_choices: bool = False
    hypothesis_first: bool = False      # the second text comes first; see `encoding.encode_pairs`
    long_text: str | None = None        # how texts that do not fit are cut, see `kinds.windows`


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


class PieceWriter:
    """Makes one piece's shard; every worker process has a writer. `by_document`: whether sentences
    of a document are encoded together."""

    def __init__(self, task, options, tokenizer, output_file, by_document, count):
        self.coverage = coverage.Coverage()
        self._task, self._options, self._tokenizer = task, options, tokenizer
        self._output_file, self._by_document, self._count = output_file, by_document, count

    def __call__(self, index, examples):
        """Writes the shard of piece `index`; returns its entry and counts for the manifest."""
        counts, self.coverage = collections.Counter(examples=len(examples)), coverage.Coverage()
        path = manifest.shard_name(self._output_file, index, self._count)
        shard = write_shard(path, os.path.dirname(path), self._blocks(examples, counts))
        return {"shards": [shard], "counts": {**counts, "records": shard["records"]},
                "coverage": self.coverage.totals()}

    def _blocks(self, examples, counts):
        for block in _cut(examples, _BLOCK_EXAMPLES, self._by_document):
            features, cut = self.encode(block)
            counts["cut_to_fit"] += cut
            counts["tokens"] += int(features["input_mask"].sum())
            yield features

    def encode(self, examples):
        """Returns the features of examples, and how many were cut to fit."""
        texts = self.coverage.counts["texts"]
        features, cut = self._task.kind.encode(
            self._task, examples, self.coverage.watch(self._tokenizer),
            self._options.max_seq_length, dataclasses.asdict(self._options))
        if self.coverage.counts["texts"] == texts:      # words, or other parts of texts
            self.coverage.add_rows(features["input_ids"], self._tokenizer.vocabulary)
        return features, cut


class SplitRecords:
    """The records of a split. The constructor reads all examples, and raises `read_examples`'s
    errors."""

    shard_examples = 1 << 16
    workers = 0     # that make them; 0: as many as the caller says

    def __init__(self, source: Source, options: RecordOptions, tokenizer, output_dir: str):
        self.name = source.split
        self._source, self._options, self._tokenizer = source, options, tokenizer
        self._output_file = os.path.join(absolute(output_dir), f"{source.split}.tfrecord")
        self._omissions = Omissions(source.skip_malformed_lines)
        self._sizes: list[int] = []
        self._labels: collections.Counter = collections.Counter()
        self._num_choices, self._own, last = 1, 0, None
        self._without_text = self._quoted = 0
        texts, labelled, digest = array.array("q"), array.array("q"), hashlib.sha256()
        for piece in self._pieces(self._omissions):
            self._sizes.append(len(piece))
            for example in piece:
                digest.update(repr(example).encode("utf-8", "surrogatepass"))
                self._without_text += not any(map(str.strip, example.texts))
                self._quoted += any('""' in text[1:-1] and _QUOTED.fullmatch(text) is not None
                                    for text in example.texts)
                if getattr(example, "is_labelled", True):   # others are not part of the file
                    texts.append(hash(tuple(example.texts)))
                    labelled.append(hash((tuple(example.texts), repr(example.label))))
                    self._own += not source.task.kind.is_grouped or example.document != last
                    last = example.document
                    self._labels.update(source.task.kind.counted(example.label))
            self._num_choices = source.task.kind.num_choices(piece[0])
        # Hashes of the texts, and of the texts with their labels, int64 [N].
        self._sha256, self._texts, self._labelled = (
            digest.hexdigest(), np.array(texts), np.array(labelled))
        self._label_notes = source.task.kind.check_counted(source.task, self._labels, source.path)

    def make(self, num_workers: int = 0, may_replace: bool = True, runner: Runner | None = None
             ) -> tuple[dict, bool]:
        """Writes `split`.tfrecord and its manifest, unless they exist; returns the manifest, and
        whether it existed already. The records do not depend on `num_workers`, processes, 0 for one
        per core. Other records of this name are an error, unless they may be replaced."""
        return make_shards(
            manifest.manifest_path(self._output_file), self.fingerprint(), self._pieces(),
            self.writer(len(self._sizes)), self.workers or num_workers,
            functools.partial(self._describe, self._tokenizer.vocabulary), may_replace,
            runner=runner)

    def fingerprint(self) -> dict:
        """Returns all that the records depend on."""
        task = self._source.task
        return {
            "options": {**dataclasses.asdict(self._options), **self._tokenizer.told},
            "task": [task.name, *task.kind.on_disk.values(), list(task.labels)],
            "vocabulary": self._tokenizer.vocabulary.hash, "examples": self._sha256,
            "omissions": dataclasses.asdict(self._omissions),
            "pieces": self._sizes, "output_file": [os.path.basename(self._output_file)]}

    def writer(self, count: int) -> PieceWriter:
        return PieceWriter(self._source.task, self._options, self._tokenizer, self._output_file,
                           self.by_document, count)

    @property
    def features(self) -> tuple:
        return (*self._source.task.kind.features,
                *known(*self._tokenizer.vocabulary.further_features))

    def report(self, record: dict, was_there: bool) -> None:
        """Prints the report in the manifest `record`."""
        counts = record["counts"]
        print(f"{record['task']['split']}: {counted(counts['examples'], 'example')}, "
              f"{counted(counts['records'], 'record')}, {counts['cut_to_fit']:,} cut to fit"
              f"{', there already' if was_there else ''}", flush=True)
        labels = counts.get("labels", {})
        if 0 < len(labels) <= _MOST_LABELS:
            print("  labels: " + ", ".join(f"{label} ({n:,})" for label, n in labels.items()))
        elif labels:
            print(f"  labels: {len(labels):,}, each comes {min(labels.values()):,} to "
                  f"{max(labels.values()):,} times")
        for note in record["notes"]:
            print(f"  note: {note}")
        coverage.Coverage(record["coverage"]).report(record["task"]["split"])

    def report_repeats(self, train: typing.Any) -> None:
        """Prints how many examples have the texts of others: in the training file of earlier ones,
        in another file of training examples; and how many of them have another label there.
        `train`: the run's records to train on, or None."""
        if train is self:
            _, first, same = np.unique(self._texts, return_index=True, return_inverse=True)
            count, others = len(self._texts) - len(first), "earlier"
            differ = self._labelled != self._labelled[first[same]]
        elif isinstance(train, SplitRecords):
            is_known, others = np.isin(self._texts, train._texts), "training"
            count = int(is_known.sum())
            differ = is_known & ~np.isin(self._labelled, train._labelled)
        else:
            return
        if not count:
            return
        more = ""
        if differ.any() and self._source.task.split(self.name).label is not None:
            more = f", {differ.sum():,} of them with another label"
        size = counted(len(self._texts), "example")
        print(f"  note: the texts of {count:,} of {size} are also in {others} examples{more}.",
              flush=True)

    @property
    def by_document(self) -> bool:
        """Whether a shard ends at the end of a document."""
        return self._options.document_context

    def _pieces(self, omissions=None):
        return _cut(self._source.examples(omissions), self.shard_examples, self.by_document)

    def _describe(self, vocabulary, results):
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
            "task": {"name": task.name, "kind": task.kind.on_disk["kind"], "split": split,
                     "labels": task.labels, "labelled": labelled,
                     "multi_label": task.kind.on_disk["multi_label"],
                     "num_choices": self._num_choices,
                     "features": list(map(dataclasses.asdict, self.features))},
            "vocabulary": vocabulary.describe(),
            "inputs": [{"name": self._source.path}],
            "counts": counts,
            "coverage": coverage.join(result["coverage"] for result in results),
            "notes": self._notes(counts),
        }

    def _notes(self, counts):
        notes, path = list(self._label_notes), self._source.path
        official = self._source.task.split(self._source.split).size
        held = self._own // (1 + self._source.both_orders)
        if official and held not in (0, official) and self._source.fraction == 1:
            notes.append(f"{path} holds {held:,} examples, the official file {official:,}.")
        if self._without_text:
            notes.append(f"{path} has {counted(self._without_text, 'example')} without a text.")
        if self._quoted and not official and (
                self._source.task.split(self._source.split).format == "tsv"):
            notes.append(f"{path} has {counted(self._quoted, 'example')} with a quoted text, such "
                         'as "a ""b""", whose quotes are read as text; name the file .csv, whose '
                         "cells may have tabs between them, to read them as quotes.")
        if self._omissions.unpaired:
            notes.append(f"{self._omissions.unpaired:,} lines of {path} were left out, whose "
                         "neighbours are of another question or have the same label.")
        if self._omissions.without_label and self._source.task.without_label is None:
            notes.append(f"{counted(self._omissions.without_label, 'example')} of {path} without "
                         "an accepted annotation left out.")
        if self._omissions.comments:
            notes.append(f"{counted(self._omissions.comments, 'line')} of {path} with # at the "
                         "beginning read as comments.")
        if counts["malformed_lines"]:
            lines = counted(counts["malformed_lines"], "malformed line")
            notes.append(f"{lines} of {path} left out.")
        return notes
