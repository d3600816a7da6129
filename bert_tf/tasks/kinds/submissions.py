"""The files that the servers of GLUE and SuperGLUE, and the original's users, read.

Shapes: N examples, L labels.
"""

import json
import os

from bert_tf.files import write_aside


def write_probabilities(folder: str, source, answers: dict) -> list[str]:
    """Writes `test_results.tsv` of google-research/bert run_classifier.py, a line per example with
    its probabilities [N, L] between tabs, or nothing where a model gives no probabilities."""
    if "probabilities" not in answers:
        return []
    path = os.path.join(folder, f"{source.split}_results.tsv")
    with write_aside(path) as file:
        file.writelines("\t".join(map(str, row)) + "\n" for row in answers["probabilities"])
    return [path]


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
    `idx` and `label` (super.gluebenchmark.com/faq).

    Args:
        predictions: ids of labels, integer [N], or numbers, float [N], in the file's order.
    """
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
