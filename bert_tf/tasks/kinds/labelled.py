"""Kinds whose examples are rows of a table or tagged sentences, with a label for each: reading,
encoding, decoding, scoring, writing. Shapes: N examples, S sequence, L labels, C choices."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import re
import typing

import numpy as np

from bert_tf import metrics
from bert_tf.errors import InputError, listed, warn
from bert_tf.files import write_aside
from bert_tf.tasks.kinds import windows
from bert_tf.tasks.reading import KeptRows, read_parts
from bert_tf.tasks.rows import Omissions, plain_label
from bert_tf.tasks.split_records import RecordOptions, SplitRecords
from bert_tf.tasks.task import OF_WORDS, Kind, Task, warn_of_cut
from bert_tf.tokenization.encoding import TRUNCATE, encode_pairs, is_cut_in_windows, way_of

_LIST = re.compile(r"""\[(['"]).*\1\]""", re.DOTALL)
_TINY = 1e-37       # its logarithm is finite in float32
_MOST_SHOWN = 100   # labels in an error
_ROUNDING = 1e-6    # of float32, with some operations after each other


class LabelledKind(Kind):
    """A kind whose examples have labels. A list of labels has at least `least_labels` names."""

    least_labels = 2
    label_dtype: type = np.int64
    labels_exclude = True       # each other
    takes_ties = False          # scores count the answers as they are; see `against_ties`
    labels_may_be_far = False   # in a long text, which is cut in windows
    may_turn_pairs = False      # with the option hypothesis_first, the second text comes first

    def records(self, source, tokenizer, max_seq_length, options, output_dir):
        return SplitRecords(source, self.record_options(tokenizer, max_seq_length, options),
                            tokenizer, output_dir)

    def record_options(self, tokenizer, max_seq_length: int, options: dict) -> RecordOptions:
        return RecordOptions(
            max_seq_length, tokenizer.do_lower_case, bool(options.get("document_context")),
            options.get("max_qa_length"), bool(options.get("carry_choices")),
            bool(options.get("hypothesis_first")), options.get("long_text"))

    def predictions(self, source, tokenizer, max_seq_length, options, is_scored):
        return SplitPredictions(source, functools.partial(
            self.join, tokenizer=tokenizer, max_seq_length=max_seq_length, options=options))

    def join(self, answers: dict, examples: list, tokenizer, max_seq_length: int,
             options: dict | None) -> dict:
        """Returns the answers to examples from the answers to their records."""
        if not is_cut_in_windows(options):
            return answers
        counts = self.count_records(examples, tokenizer, max_seq_length, options)
        return windows.join_windows(self, answers, counts, way_of(options))

    def count_records(self, examples: list, tokenizer, max_seq_length: int,
                      options: dict | None) -> np.ndarray:
        """Returns the number of records of each example, int [N]; a long text may have several."""
        if not is_cut_in_windows(options):
            return np.ones(len(examples), int)
        return windows.count_windows(self._read_sequences(examples, options), tokenizer,
                                     max_seq_length)

    def check_options(self, options, max_seq_length, tokenizer):
        way = way_of(options)
        if way != TRUNCATE and (tokenizer.vocabulary.layout.halves or options.get("max_qa_length")):
            other = "--max_qa_length" if options.get("max_qa_length") else "the model of GPT"
            raise InputError(f"--long_text={way} and {other} both set how texts are cut; leave out "
                             "one of the two.")

    # From files to records

    def read_cell(self, cell) -> object:
        """Returns the label in a cell, without blanks at its ends, or None if the cell is empty. A
        list raises ValueError, as does one that Python wrote as a text."""
        if isinstance(cell, list) or isinstance(cell, str) and _LIST.fullmatch(cell.strip()):
            raise ValueError
        return plain_label(cell)

    def label(self, task: Task, ids: dict, texts: list, raw, where: str) -> object:
        """Returns an example's label as its records hold it, from the label that was read, None
        where the file has none. `ids` are {label: id}; `where` names file and line in errors."""
        return 0 if raw is None else self.label_of(task, ids, texts, raw, where)

    def label_of(self, task: Task, ids: dict, texts: list, raw, where: str) -> object:
        """See `label`; here a label was read."""
        return label_id(raw, ids, where)

    def check_taught(self, label: object, ids: dict, where: str) -> None:
        """Raises InputError if nothing can learn a label. See `label` for the arguments."""

    def check_counted(self, task: Task, counts: typing.Mapping, path: str) -> list[str]:
        """Returns notes on a file's labels; `counts` has the number of each that `counted` gave."""
        return []

    def encode(self, task: Task, examples: list, tokenizer, max_seq_length: int,
               options: dict | None = None) -> tuple[dict, int]:
        """Returns the record features of `Example`s with equally many choices, arrays named as in
        `features` with a row per example, and how many examples were cut to fit."""
        way = way_of(options)
        if way == TRUNCATE:
            features, is_cut = self._encode_sequences(examples, tokenizer, max_seq_length,
                                                      options or {})
            features = {name: rows.reshape(len(examples), -1) for name, rows in features.items()}
            is_cut = is_cut.reshape(len(examples), -1).any(1)
        else:
            features, counts, is_cut = windows.encode_long(
                self._read_sequences(examples, options), tokenizer, max_seq_length, way)
            examples = [example for example, count in zip(examples, counts) for _ in range(count)]
        return with_label_ids(features, examples, self.label_dtype), int(is_cut.sum())

    def _encode_sequences(self, examples, tokenizer, max_seq_length, options):
        """Returns features of the examples' sequences, in their order, and whether each was cut."""
        pairs = [pair for parts in self.sequences(examples) for pair in parts]
        return encode_pairs(pairs, tokenizer, max_seq_length,
                            self.may_turn_pairs and bool(options.get("hypothesis_first")))

    def sequences(self, examples: list) -> list:
        """Returns the texts or pairs of texts of each example, one for each of its sequences."""
        return [[tuple(example.texts)] for example in examples]

    def _read_sequences(self, examples, options):
        """Returns `sequences` with the texts of each pair in the order that the model reads."""
        order = -1 if self.may_turn_pairs and options.get("hypothesis_first") else 1
        return [[part[::order] for part in parts] for parts in self.sequences(examples)]

    def num_choices(self, example) -> int:
        """The number of an example's sequences."""
        return 1

    def counted(self, label) -> typing.Iterable[int]:
        """Returns the ids of labels that an example adds to a manifest's counts."""
        return (label,)

    def label_limit(self, described: dict) -> int | None:
        """Returns the bound that records' `label_ids` must be below, or None where they are not
        ids. `described` is `task` of the records' manifest."""
        return len(described["labels"])

    def balanced_weights(self, counts: dict) -> list[float]:
        """Weights that make all labels count alike: N / (labels * examples of the label), as
        scikit-learn's. `counts` are a manifest's: `labels`, the examples of each, and
        `examples`."""
        sizes = [max(count, 1) for count in counts["labels"].values()]
        return [sum(sizes) / (len(sizes) * count) for count in sizes]

    # From a model's answers to files

    def decode(self, task: Task, answers: dict, examples: list, features) -> typing.Any:
        """Returns the predictions for examples, in the form that `bert_tf.metrics` takes: int [N],
        ids of labels or choices, unless the kind says otherwise. `answers`: arrays of the head's
        answers, such as `logits` [N, L or C]. `features`: maps a feature's name to its values in
        the records."""
        return answers["logits"].argmax(-1)

    def targets(self, task: Task, examples: list) -> typing.Any:
        return np.array([example.label for example in examples])

    def compared(self, task: Task, examples: list, predicted) -> tuple:
        """Returns right answers and predictions, which are equal where the model is right. A
        question with an example for each candidate counts once."""
        return self.targets(task, examples), predicted

    def score(self, task: Task, path: str, examples: list, predicted) -> dict[str, float]:
        """Returns {metric: number} of predictions for a file's examples, the headline first."""
        return metrics.compute(task.metrics, self.targets(task, examples), predicted)

    def against_ties(self, task: Task, answers: dict, examples: list, predicted) -> typing.Any:
        """Returns the predictions that scores count. Where several labels or choices have the
        highest score, or a score is NaN, files have the first one, and scores count a wrong one:
        the place of a label must not be worth points."""
        if self.takes_ties or not self.labels_exclude or "logits" not in answers:
            return predicted
        targets, logits = self.targets(task, examples), answers["logits"]
        is_best = ~(logits < logits.max(-1, keepdims=True))     # NaN is a best one, too
        is_wrong = np.arange(logits.shape[-1]) != targets[:, None]
        is_lucky = (is_best.sum(-1) > 1) & (predicted == targets)
        return np.where(is_lucky, (is_best & is_wrong).argmax(-1), predicted)

    def is_degenerate(self, task: Task, answers: dict, examples: list, predicted) -> bool:
        """Whether a model tells no examples apart: all get one answer although their labels differ,
        or the scores are NaN or all equal. For the arguments see `decode`."""
        return says_nothing(answers, self.labels_exclude) or (
            len(np.unique(predicted, axis=0)) == 1
            < len(np.unique(self.targets(task, examples), axis=0)))

    def probabilities(self, answers: dict, features, examples: list) -> typing.Sequence:
        """Returns the probabilities of each example's answer, as `describe` takes them. For the
        arguments see `decode`."""
        return answers.get("probabilities", [None] * len(examples))

    def describe(self, task: Task, example, prediction, probabilities) -> dict:
        """Returns a prediction as JSON: the prediction and its probability. `probabilities` is
        float [L or C], or None."""
        raise NotImplementedError

    def write_more(self, folder: str, source, examples: list, predicted, answers: dict,
                   is_test: bool) -> list[str]:
        """Writes the further files that the task's server or scorer reads; returns their paths. See
        `decode` for the arguments; `is_test` marks a split to predict."""
        if not is_test:
            return []
        paths = write_whole(folder, source, predicted)
        if "probabilities" in answers:
            # As google-research/bert run_classifier.py: a line per example, tabs between labels.
            paths.insert(0, os.path.join(folder, f"{source.split}_results.tsv"))
            with write_aside(paths[0]) as file:
                file.writelines("\t".join(map(str, row)) + "\n" for row in answers["probabilities"])
        return paths

    def answer(self, task, examples, run, tokenizer, max_seq_length, options):
        features, cut = self.encode(task, examples, tokenizer, max_seq_length, options)
        flags = "--max_seq_length"
        if self.labels_may_be_far:
            flags += ", --long_text"
        warn_of_cut(cut > 0, "texts", max_seq_length, flags)
        answers = self.join(run(features), examples, tokenizer, max_seq_length, options)
        if has_nan(answers):
            warn("the scores of the model are NaN, so that its answers mean nothing: train it "
                 "again, with a lower --learning_rate.")
        predicted = self.decode(task, answers, examples, features)
        return list(_describe_all(self, task, examples, predicted, answers, features))

    # Several models, whose tokenizers may differ

    def units(self, answers: dict, features) -> dict:
        """Returns answers with a row for each labelled unit, whatever the tokenizer. `features`
        maps a feature's name to its values in the records."""
        return answers

    def spread(self, units: dict, features) -> dict:
        """Inverts `units` for the records of `features`."""
        return units

    def average(self, units: list[dict]) -> dict:
        """Returns the mean of several models' `units`: of numbers, or of probabilities."""
        name = next(name for name in ("values", "probabilities") if name in units[0])
        arrays = [answers[name] for answers in units]
        mean = np.mean(arrays, 0, np.float64).astype(arrays[0].dtype)
        if name == "values":
            return {name: mean}
        return {"logits": self.logits(mean), name: mean}

    def logits(self, probabilities: np.ndarray) -> np.ndarray:
        """Returns the logits that a model of this kind turns into these probabilities."""
        return np.log(np.maximum(probabilities, _TINY))


def has_nan(answers: dict) -> bool:
    """Whether scores, `logits` or `values` of a head's answers, are NaN."""
    return any(np.isnan(values).any() for name, values in answers.items()
               if name in ("logits", "values"))


def says_nothing(answers: dict, excludes: bool = True) -> bool:
    """Whether scores are NaN, or do not differ within any example. `answers`: arrays of a head's
    answers, such as `logits` [..., L or C] or `values`. `excludes`: whether one label or choice of
    an example is right, so that only differences between them count."""
    if has_nan(answers):
        return True
    if not excludes or "logits" not in answers:
        return False
    return is_flat(answers["logits"].max(-1), answers["logits"].min(-1))


def is_flat(most: np.ndarray, least: np.ndarray) -> bool:
    """Whether the highest and the lowest score of each example are equal, up to rounding."""
    return bool((most - least <= _ROUNDING * np.maximum(np.abs(most), np.abs(least))).all())


def _describe_all(kind, task, examples, predictions, answers, features):
    likely = kind.probabilities(answers, features, examples)
    for row in zip(examples, predictions, likely, strict=True):
        yield kind.describe(task, *row)


class SplitPredictions:
    """Decodes, scores and writes the predictions for one split. `prefix` begins its scores' names.
    """

    archive_of = ""     # the suite whose archive `write` has written a file for
    _join: typing.Callable | None = None

    def __init__(self, source, join: typing.Callable | None = None):
        self._source, self._task, self._join = source, source.task, join
        self._omissions = Omissions(source.skip_malformed_lines)
        self.prefix = source.split
        self._features: typing.Any = None       # of the records that `decode` read

    @functools.cached_property
    def examples(self) -> list:
        return list(self._source.examples(self._omissions))

    def _numbers(self):
        """Returns the number of each example: of its row, also where other rows give no example."""
        kind, omitted = self._task.kind, self._omissions
        has_rows = type(kind).gather is Kind.gather and (
            self._task.split(self._source.split).format not in OF_WORDS)
        if not (has_rows and (omitted.malformed or omitted.without_label)):
            return range(self.size)
        # Rows that are kept in memory do not tell what lay between them.
        source = dataclasses.replace(self._source, rows=KeptRows())
        seen = Omissions(source.skip_malformed_lines)
        return (number + seen.malformed + seen.without_label
                for number, _ in enumerate(source.examples(seen)))

    @property
    def size(self) -> int:
        return len(self.examples)

    def join(self, answers: dict) -> dict:
        return self._join(answers, self.examples) if self._join else answers

    def decode(self, answers: dict, records) -> typing.Any:
        """Returns the predictions; `records` is the split's `ExampleSet`."""
        self._features = records
        return self._task.kind.decode(self._task, answers, self.examples, records)

    def combine(self, members: list) -> tuple[dict, typing.Any]:
        """Several models' answers together, and the predictions. `members` are tuples of each one's
        predictions (an object of this class), answers and records; the first has this object."""
        kind = self._task.kind
        units = [kind.units(answers, records) for _, answers, records in members]
        records = members[0][2]
        answers = kind.spread(kind.average(units), records)
        return answers, self.decode(answers, records)

    def is_scored(self, is_wanted: bool) -> bool:
        """Whether predictions are scored, which --do_eval asks for."""
        return is_wanted

    def score(self, predicted) -> dict[str, float]:
        """Returns {metric: number}, the headline first; then each metric of the split's parts."""
        kind, targets = self._task.kind, self._task.kind.targets(self._task, self.examples)
        scores = kind.score(self._task, self._source.path, self.examples, predicted)
        parts = np.array(read_parts(self._task, self._source.split, self._source.path))
        if len(parts) != len(targets):      # only some of the examples are scored
            return scores
        for part in dict.fromkeys(parts.tolist()):
            scores |= {f"{part}_{name}": value for name, value in metrics.compute(
                self._task.metrics, targets[parts == part], predicted[parts == part]).items()}
        return scores

    def against_ties(self, answers: dict, predicted) -> typing.Any:
        return self._task.kind.against_ties(self._task, answers, self.examples, predicted)

    def is_degenerate(self, answers: dict, predicted) -> bool:
        return self._task.kind.is_degenerate(self._task, answers, self.examples, predicted)

    def choose(self, predicted) -> dict:
        """Returns the options that are best for these predictions and are kept with the model."""
        return {}

    def describe_scores(self) -> dict:
        """Returns the further content of metrics.json."""
        return {}

    def write(self, folder: str, answers: dict, predicted, is_test: bool) -> list[str]:
        """Writes the files of the predictions that `decode` gave; returns their paths.

        `SPLIT_predictions.jsonl` has a JSON object per line: `index`, the number from 0 of the row
        in a table, of the sentence or of the question; and `Kind.describe`."""
        path = os.path.join(folder, f"{self._source.split}_predictions.jsonl")
        described = _describe_all(self._task.kind, self._task, self.examples, predicted, answers,
                                  self._features)
        with write_aside(path) as file:
            for index, entry in zip(self._numbers(), described, strict=True):
                file.write(json.dumps({"index": index, **entry}, ensure_ascii=False) + "\n")
        return [path, *self._task.kind.write_more(
            folder, self._source, self.examples, predicted, answers, is_test)]


def rounded(probabilities) -> list[float]:
    return [round(float(value), 6) for value in probabilities]


def label_id(label: str, ids: dict, where: str) -> int:
    """Returns a label's id in {label: id}, or raises InputError that names the line (`where`)."""
    if label not in ids:
        raise InputError(f"{where}: label {label!r} is none of {listed(ids, _MOST_SHOWN)}; correct "
                         "the line or the --label_column, or train a new head for all labels that "
                         "--labels names.")
    return ids[label]


def with_label_ids(features: dict, examples: list, dtype=np.int64) -> dict:
    """Returns the features with `label_ids`, and `is_real_example`, 1 for each row."""
    labels = np.array([example.label for example in examples], dtype)
    return {**features, "label_ids": labels.reshape(len(examples), -1),
            "is_real_example": np.ones([len(features["input_ids"]), 1], np.int64)}


def write_whole(folder: str, source, predicted) -> list[str]:
    """Writes the submission of a whole test file; returns its path in a list, or an empty list.
    `predicted` has an answer for each line."""
    task, split = source.task, source.split
    if not task.split(split).takes(task.name, source.path, len(predicted)):
        return []
    return [write_submission(folder, task, split, predicted)]


def write_submission(folder: str, task, split: str, predictions) -> str:
    """Writes a test split's predictions under their official name, as the servers read them, and
    returns the path: index<TAB>prediction (gluebenchmark.com/faq), or a JSON object per line with
    `idx` and `label` (super.gluebenchmark.com/faq). `predictions`: ids of labels, integer [N], or
    numbers, float [N], in the file's order."""
    path = os.path.join(folder, task.split(split).submission)
    words = enumerate(task.kind.submission(task, predictions))
    with write_aside(path) as file:
        if path.endswith(".jsonl"):
            file.writelines(json.dumps({"idx": index, "label": word}) + "\n"
                            for index, word in words)
        else:
            file.write("index\tprediction\n")
            file.writelines(f"{index}\t{word}\n" for index, word in words)
    return path
