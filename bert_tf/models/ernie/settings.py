"""Settings of pre-training on ERNIE 2.0's tasks."""

import dataclasses

from bert_tf.flags import option


@dataclasses.dataclass(frozen=True)
class StageSettings:
    """Stages of tasks (ERNIE 2.0)."""

    task_schedule: list[str] = option(
        [], "Order of the tasks. continual (the default): one stage for each new task, which is "
        "trained together with the tasks before it. together: all tasks at once. successive: one "
        "task after the other. Or, separated by commas, TASK=STEPS/STEPS/... for each task: its "
        "steps in each stage.")
