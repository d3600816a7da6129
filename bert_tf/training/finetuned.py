"""A fine-tuned model in a folder: its Learner, its tokenizer, and what it was trained for."""

import os
import types
from collections.abc import Callable
from typing import Any

from bert_tf import checkpoints, networks, objectives
from bert_tf.checkpoints import keras_file, quantised, task_heads
from bert_tf.config import Sizes
from bert_tf.errors import InputError
from bert_tf.tasks.task import TASK_FILE, SavedTask
from bert_tf.tokenization import open_tokenizer
from bert_tf.training.learners.learner import Learner


def read_finetuned(path: str, dtype: str | None = None,
                   change: Callable[[Sizes], Sizes] = lambda config: config
                   ) -> tuple[Learner, Any, SavedTask]:
    """The Learner, the tokenizer and the `SavedTask` in a folder.

    Args:
        path: the output folder of a script that fine-tunes, or of one of its tasks.
        dtype: a Keras policy.
        change: function of the network's configuration that returns the one to take.

    Raises:
        InputError: the folder holds no fine-tuned model of one task, or lacks weights.
    """
    form: types.ModuleType = keras_file
    file: str | None = os.path.join(path, keras_file.NAME)
    if not keras_file.find(str(file)):
        form, file = quantised, quantised.find(path)
    if not file:
        raise InputError(f"there is no {keras_file.NAME} in {path}; name the --output_dir of a "
                         "model that was fine-tuned.")
    saved_task = SavedTask.read(path)
    if not saved_task and task_heads.tasks_beside(path):
        raise InputError(f"{path} holds a model of several tasks; name one of them with task=: "
                         f"{', '.join(task_heads.tasks_beside(path))}.")
    if not saved_task:
        raise InputError(f"there is no {TASK_FILE} in {path}, so that what the model was trained "
                         "for is not known; fine-tune it, or use Predictor.from_learner.")
    tokenizer = open_tokenizer(path, saved_task.do_lower_case)
    config = change(checkpoints.read_config(file))
    learner = Learner(networks.build(config, dtype=dtype), [
        getattr(objectives, name).from_config(
            {**options, "config": config.to_dict(), "dtype": dtype})
        for name, options in form.read_objectives(file)])
    account = checkpoints.load(file, learner)
    if account.missing:
        raise InputError(f"{file} has no {', '.join(account.missing)}; fine-tune the model again.")
    return learner, tokenizer, saved_task
