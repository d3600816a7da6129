"""The tasks that have a name; each file of this folder adds its own."""

from bert_tf.errors import InputError
from bert_tf.tasks import glue, inference
from bert_tf.tasks.conll2003 import CONLL2003
from bert_tf.tasks.swag import SWAG

TASKS = {task.name: task for task in (*glue.TASKS, *inference.TASKS, SWAG, CONLL2003)}


def find_task(name):
    """The `Task` of this name, in capitals or not, with hyphens or not.

    Raises:
        InputError: there is none.
    """
    plain = name.lower().replace("-", "")
    found = [task for known, task in TASKS.items() if known.replace("-", "") == plain]
    if not found:
        raise InputError(f"there is no task {name!r}; choose from {', '.join(TASKS)}, or describe "
                         "your own file with --text_a_column and --label_column.")
    return found[0]
