"""Scores of the texts that a model writes, in percent, and files of them, also for GLUE's servers.
(google-research's text-to-text-transfer-transformer, t5/data/postprocessors.py,
t5/evaluation/metrics.py and qa_utils.py.)"""

import collections
import contextlib
import math
import os
from collections.abc import Callable, Sequence

import numpy as np

from bert_tf import metrics
from bert_tf.files import write_aside
from bert_tf.models.t5.task_files import TextFile
from bert_tf.models.t5.tasks import TextExample, TextTask
from bert_tf.tasks import squad_scorer
from bert_tf.tasks.kinds import candidates, labelled
from bert_tf.tasks.kinds.labelled import SplitPredictions
from bert_tf.tasks.super_glue import read_clozes

_NO_LABEL, _NO_NUMBER = -1, -1.0
_DETERMINERS = frozenset(
    "a an few her his each every many much my our some that the their these this those which whose "
    "your".split())
Score = Callable[[Sequence, Sequence], float]


def label_of(text: str, words: Sequence[str]) -> int:
    """Returns a text's place among words; -1 for other texts, such as one with an extra blank."""
    return words.index(text) if text in words else _NO_LABEL


def number_of(text: str) -> float:
    """Returns a text as a number, as Python reads it; -1.0 for any other text. That is also nan and
    inf, which the original reads as numbers: its correlation is then not a number."""
    with contextlib.suppress(ValueError):
        if math.isfinite(number := float(text)):
            return number
    return _NO_NUMBER


def _f1(labels, predictions):
    """F1 of label 1. A prediction that is not a label counts as wrong."""
    labels, predictions = np.asarray(labels), np.asarray(predictions)
    is_label = (predictions == 0) | (predictions == 1)
    return metrics.METRICS["f1"](labels, np.where(is_label, predictions, 1 - labels))


def _answers(overlap):
    """The score of answers: the mean over questions of the best over their answers."""
    def score(answers, predictions):
        normalize = squad_scorer.normalize
        return np.mean([
            max(overlap(normalize(answer), normalize(prediction)) for answer in texts)
            for texts, prediction in zip(answers, predictions)])
    return score


def is_named(prediction: str, referent: str) -> bool | None:
    """Whether two texts name the same referent: except for determiners, all words of one are in the
    other, and both texts are possessive or neither is (t5/data/postprocessors.py, wsc_simple).
    None if the prediction is empty."""
    texts = [" ".join(word for word in text.strip().lower().split(" ") if word not in _DETERMINERS)
             for text in (prediction, referent)]
    if not texts[0]:
        return None
    if len({"'" in text for text in texts}) > 1:
        return False
    words = [set(text.split(" ")) for text in texts]
    return words[0] <= words[1] or words[1] <= words[0]


def _entity_f1(targets, predictions):
    """Of texts of tags: missing tags are O, tags beyond the last word are dropped."""
    labels = [text.split() for text in targets]
    tags = [[*text.split(), *["O"] * len(row)][:len(row)] for text, row in zip(predictions, labels)]
    return metrics.METRICS["entity_f1"](labels, tags)


METRICS: dict[str, Score] = {
    # Where all numbers are equal a correlation is 0; the original's is not a number.
    **{name: metrics.METRICS[name] for name in (
        "accuracy", "matthews", "pearson", "spearman", "bleu")},
    "exact_match": metrics.METRICS["accuracy"],     # of texts
    "f1": _f1,
    # Of groups: MultiRC's exact match over questions.
    "group_em": lambda targets, predictions: np.mean([
        one == other for one, other in zip(targets, predictions, strict=True)]),
    "mean_f1_of_3": metrics.mean_f1(3),
    "entity_f1": _entity_f1,
    # Whether a text names the referent exactly where the label says that it is right.
    "referent_accuracy": lambda targets, predictions: np.mean([
        is_named(text, referent) == (label == "True")
        for (label, referent), text in zip(targets, predictions, strict=True)]),
    "em": _answers(squad_scorer.exact),
    "answer_f1": _answers(squad_scorer.f1),
}


def read_texts(task: TextTask, texts: Sequence[str]) -> list:
    """Returns the labels, numbers or texts that a model has written, in the form that is scored."""
    if task.words:
        return [label_of(text, task.words) for text in texts]
    if task.is_number:
        return list(map(number_of, texts))
    return list(texts)


def score(task: TextTask, examples: Sequence[TextExample], predictions: Sequence[str]
          ) -> dict[str, float]:
    """The official scores of a model's texts for examples with targets, the headline first."""
    targets: Sequence = [example.answers for example in examples]
    if not any(targets):
        targets = read_texts(task, [example.target for example in examples])
    predicted = read_texts(task, predictions)
    groups = collections.defaultdict(lambda: ([], []))      # such as the answers to a question
    for example, *pair in zip(examples, targets, predicted, strict=True):
        for side, label in zip(groups[example.group], pair):
            side.append(label)
    sides = {"group_em": list(zip(*groups.values()))}
    return {name: 100.0 * float(METRICS[name](*sides.get(name, (targets, predicted))))
            for name in task.metrics}


class TextPredictions(SplitPredictions):
    """Scores and writes the texts for a file."""

    def __init__(self, file: TextFile):
        self._file, self.prefix, self.examples = file, file.name, file.examples

    def decode(self, answers, records):
        return answers["texts"]

    def score(self, predicted):
        return score(self._file.task, self.examples, predicted)

    def against_ties(self, answers, predicted):
        return predicted

    def is_degenerate(self, answers, predicted):
        return False

    def write(self, folder, answers, predicted, is_test):
        """Writes `FILE_SPLIT_predictions.tsv`, a text per line, and the server's; returns paths."""
        split = "test" if is_test else "dev"
        path = os.path.join(folder, f"{self._file.name}_{split}_predictions.tsv")
        with write_aside(path, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(" ".join(text.split("\t")) + "\n" for text in predicted)
        submission = is_test and write_submission(folder, self._file, predicted)
        if not submission:
            return [path]
        self.archive_of = "superglue" if self._file.task.submitted else "glue"
        return [path, submission]


def write_submission(folder: str, file: TextFile, texts: Sequence[str]) -> str | None:
    """Writes the texts for a test file as its server reads them, and returns the path; None if the
    server takes no file of this split, or of this length. A text that is not a label counts as the
    first label. ReCoRD's are taken as they are."""
    official, split = file.official, file.official_split
    if official is None or not official.split(split).takes(official.name, file.path, len(texts)):
        return None
    path = os.path.join(folder, str(official.split(split).submission))
    if isinstance(official.kind, candidates.Cloze):
        numbers = (cloze.number for _, cloze in read_clozes(file.path))
        candidates.write_clozes(path, zip(numbers, texts, strict=True))
    elif isinstance(official.kind, candidates.AnswerSet):
        official.kind.write_submission(path, file.path, _labels(file, texts))
    else:
        labelled.write_submission(folder, official, split, _labels(file, texts))
    return path


def _labels(file, texts):
    """The numbers, or the ids of the official task's labels, that texts mean."""
    task, labels = file.task, file.official.labels
    if task.is_number:
        return np.array(read_texts(task, texts))
    if not task.words:      # WSC's text is a name
        return np.array([int(bool(is_named(text, example.target)))
                         for text, example in zip(texts, file.examples, strict=True)])
    ids = np.maximum(read_texts(task, texts), 0)
    if set(task.words) == set(labels):
        ids = np.array([labels.index(word) for word in task.words])[ids]
    return ids
