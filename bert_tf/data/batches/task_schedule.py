"""Which task each step of multi-task pre-training takes: a table of stages, and an order in them.

The task of a step is a function of the step alone, so a run that is started again takes the same.
"""

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np

from bert_tf.errors import InputError


def continual(count: int, steps: int) -> list[list[int]]:
    """The table of continual learning (arXiv:1907.12412, section 5.4): a stage for each new task,
    which is trained together with those before it, and as many steps in all for each task.

    Of N steps, a task has N / (count + 1) in each stage but its first, which has the rest: for
    four tasks of 50 steps 20 10 10 10, 0 30 10 10, 0 0 40 10 and 0 0 0 50.

    Args:
        count: number of tasks.
        steps: in all.

    Returns:
        A row of steps by stage for each task.
    """
    table = []
    for task, total in enumerate(_share(steps, count)):
        later = total // (count + 1)
        table.append([0] * task + [total - later * (count - 1 - task)]
                     + [later] * (count - 1 - task))
    return table


def _share(steps, count):
    """`steps` in `count` numbers that differ by 1 at most."""
    return [steps // count + (index < steps % count) for index in range(count)]


def together(count: int, steps: int) -> list[list[int]]:
    """All tasks at once, in one stage."""
    return [[share] for share in _share(steps, count)]


def successive(count: int, steps: int) -> list[list[int]]:
    """One task after the other."""
    return [[0] * task + [share] + [0] * (count - 1 - task)
            for task, share in enumerate(_share(steps, count))]


TABLES = {"continual": continual, "together": together, "successive": successive}


@dataclasses.dataclass(frozen=True)
class TaskSchedule:
    """The steps of each task.

    Attributes:
        names: of the tasks.
        table: a row of steps by stage for each.
    """

    names: tuple[str, ...]
    table: tuple[tuple[int, ...], ...]

    @classmethod
    def parse(cls, values: Sequence[str], names: Sequence[str], steps: int) -> "TaskSchedule":
        """From the values of a flag: a name in `TABLES`, or NAME=STEPS/STEPS/... for each task.

        Args:
            values: see above.
            names: of the tasks.
            steps: in all.

        Raises:
            InputError: they are neither, or have another number of steps.
        """
        if len(values) == 1 and values[0] in TABLES:
            table = TABLES[values[0]](len(names), steps)
            return cls(tuple(names), tuple(map(tuple, table)))
        rows = {}
        for value in values:
            name, _, stages = value.partition("=")
            if name not in names or not stages.replace("/", "").isdecimal() or name in rows:
                raise InputError(f"--task_schedule: {value!r} is neither one of "
                                 f"{', '.join(TABLES)} nor a task of the records "
                                 f"({', '.join(names)}), = and its steps in each stage, such as "
                                 f"{names[0]}=20/10.")
            rows[name] = tuple(int(number or 0) for number in stages.split("/"))
        stages = max(map(len, rows.values()), default=0)
        table = [rows.get(name, ()) + (0,) * (stages - len(rows.get(name, ()))) for name in names]
        if sum(map(sum, table)) != steps:
            raise InputError(f"--task_schedule has {sum(map(sum, table)):,} steps, but "
                             f"--num_train_steps is {steps:,}; make them the same.")
        return cls(tuple(names), tuple(table))

    @functools.cached_property
    def tasks(self) -> np.ndarray:
        """int16 [steps], the number of each step's task.

        In a stage each step takes the task that is furthest behind its share, the first of several.
        """
        found = []
        for counts in np.array(self.table, np.int64).T:
            total, done = counts.sum(), np.zeros_like(counts)
            for step in range(total):
                behind = counts * (step + 1) - done * total
                task = int(np.argmax(np.where(done < counts, behind, np.iinfo(np.int64).min)))
                done[task] += 1
                found.append(task)
        return np.array(found, np.int16)

    def counts(self, step: int) -> list[int]:
        """How many of the steps before `step` each task has."""
        return np.bincount(self.tasks[:step], minlength=len(self.names)).tolist()
