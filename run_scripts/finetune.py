"""Fine-tunes a model on a task or on several, scores it, and predicts.

The task decides which program this is: --task, --tasks, --task_kind, flags that only one program
has, such as --predict_file of squad, or the fine-tuned model that predicts. Its name can also be
the first argument.
"""

from collections.abc import Mapping

from bert_tf.finetuning import jobs


def choose(given: Mapping[str, str]) -> str | None:
    """Returns the name of the program for flags, a dict of values by name; None if they do not
    decide.

    Raises:
        InputError: there is no such task, or the description of a fine-tuned task is damaged.
    """
    script = jobs.script_of(given)
    return script and script.removeprefix("run_").replace("_", "-")
