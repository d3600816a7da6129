"""Scores and files of the texts that a model writes; files for the servers of GLUE and SuperGLUE.
"""

import os
from collections.abc import Sequence

import numpy as np

from bert_tf.files import write_aside
from bert_tf.models.t5.scores import is_named, read_texts, score
from bert_tf.models.t5.task_files import TextFile
from bert_tf.tasks.kinds import candidates, labelled
from bert_tf.tasks.kinds.labelled import SplitPredictions
from bert_tf.tasks.super_glue import read_clozes


class TextPredictions(SplitPredictions):
    """Scores and writes the texts for a file."""

    def __init__(self, file: TextFile):
        self._file, self.prefix, self.examples, self._join = file, file.name, file.examples, None

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
        submission = write_submission(folder, self._file, predicted) if is_test else None
        if not submission:
            return [path]
        self.archive_of = "superglue" if self._file.task.submitted else "glue"
        return [path, submission]


def write_submission(folder: str, file: TextFile, texts: Sequence[str]) -> str | None:
    """Writes the texts for a test file as its server reads them, and returns the path; None if the
    server takes no file of this split, or of this length.

    A text that is not a label counts as the first label. ReCoRD's are taken as they are.
    """
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
