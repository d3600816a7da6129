"""Files for the servers of GLUE and SuperGLUE, from the texts that a model writes."""

import os
from collections.abc import Sequence

import numpy as np

from bert_tf.tasks.kinds import candidates, sentence
from bert_tf.tasks.super_glue import read_clozes
from bert_tf.tasks.task import Task
from bert_tf.tasks.text_scores import is_named, read_texts
from bert_tf.tasks.text_tasks import TextExample, TextTask


def write_submission(folder: str, task: TextTask, official: Task, split: str, path: str,
                     examples: Sequence[TextExample], texts: Sequence[str]) -> str | None:
    """Writes the texts for a test file as its server reads them, and returns the path; None if the
    server takes no file of this split, or of this length.

    A text that is not a label counts as the first label. ReCoRD's are taken as they are.

    Args:
        path: of the test file.
    """
    layout = official.split(split)
    if not layout.submission:
        return None
    if len(texts) != layout.size:
        print(layout.refusal(official.name, path, len(texts)), flush=True)
        return None
    found = os.path.join(folder, layout.submission)
    if isinstance(official.kind, candidates.Cloze):
        numbers = (cloze.number for _, cloze in read_clozes(path))
        candidates.write_clozes(found, zip(numbers, texts, strict=True))
    elif isinstance(official.kind, candidates.AnswerSet):
        official.kind.write_submission(found, path, _labels(task, official, examples, texts))
    else:
        sentence.write_submission(folder, official, split,
                                  _labels(task, official, examples, texts))
    return found


def _labels(task, official, examples, texts):
    """The numbers, or the ids of the official task's labels, that texts mean."""
    if task.is_number:
        return np.array(read_texts(task, texts))
    if not task.words:      # WSC's text is a name
        return np.array([int(bool(is_named(text, example.target)))
                         for text, example in zip(texts, examples, strict=True)])
    ids = np.maximum(read_texts(task, texts), 0)
    if set(task.words) == set(official.labels):
        ids = np.array([official.labels.index(word) for word in task.words])[ids]
    return ids
