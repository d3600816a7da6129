"""The files that the GLUE server takes (gluebenchmark.com/faq): index<TAB>prediction."""

import os

import numpy as np

from bert_tf.errors import InputError
from bert_tf.files import write_aside


def write_submission(folder, task, split, predictions):
    """Writes the predictions of a test split under their official name.

    Args:
        folder: where to.
        task: `Task`.
        split: its name.
        predictions: ids of labels, integer [N], or numbers, float [N], in the file's order.

    Returns:
        The file's path; None if the server takes none of this split.

    Raises:
        InputError: the server would refuse it, for there are not as many as official examples.
    """
    layout = task.split(split)
    if not layout.submission:
        return None
    if len(predictions) != layout.size:
        raise InputError(f"{layout.submission} must hold {layout.size:,} predictions, not "
                         f"{len(predictions):,}; predict the whole official {split} file.")
    if task.kind == "regression":
        words = [f"{value:.3f}" for value in np.clip(predictions, *task.bounds)]
    else:
        words = [task.labels[index] for index in predictions]
    path = os.path.join(folder, layout.submission)
    with write_aside(path) as file:
        file.write("index\tprediction\n")
        file.writelines(f"{index}\t{word}\n" for index, word in enumerate(words))
    return path
