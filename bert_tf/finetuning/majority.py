"""The most frequent label of a training file as the answer to every example, as for WNLI in the
tables of GLUE.
"""

import collections
import os

import numpy as np

from bert_tf.files import write_json
from bert_tf.tasks.in_libraries import placed
from bert_tf.tasks.kinds.labelled import SplitPredictions
from bert_tf.tasks.named import TASKS
from bert_tf.tasks.task_flags import TaskFlags


def answer_most_frequent(task: str, data_dir: str, output_dir: str) -> None:
    """Answers the labelled splits and the test files of a named task, and writes predictions and
    scores as a fine-tuning run does. Of equally frequent labels the first counts."""
    named = placed(TASKS[task], data_dir)
    has_test = any(named.has_file(data_dir, split) for split in named.splits
                   if split.startswith("test"))
    files = TaskFlags(task=task, data_dir=data_dir).find(named, True, True, has_test)
    counts = collections.Counter(example.label for example in files.sources["train"].examples())
    label = max(sorted(counts), key=counts.__getitem__)
    scores: dict[str, float] = {}
    for split in dict.fromkeys([*files.eval_splits, *files.test_splits]):
        predictions = SplitPredictions(files.sources[split])
        answers = np.full(len(predictions.examples), label)
        predictions.write(output_dir, {"probabilities": np.eye(len(named.labels))[answers]},
                          answers, split in files.test_splits)
        if split in files.eval_splits:
            scores |= {f"{split}/{name}": score
                       for name, score in predictions.score(answers).items()}
    write_json(os.path.join(output_dir, "metrics.json"), {
        "task": task, "headline": named.kind.headline(named, files.eval_splits),
        "label": named.labels[label], "metrics": scores})
