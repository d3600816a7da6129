"""The order of tasks and batches is that of namisan/mt-dnn v0.1, or has the rates that it names."""

import json
import math

import numpy as np
import pytest

from bert_tf.errors import InputError
from bert_tf.models.mtdnn.order import TaskOrder


def test_steps_are_the_originals(test_data):
    cases = json.loads((test_data / "golden" / "mtdnn" / "schedule_seed1.json").read_text())
    for case in cases:
        if case["branch"] != "v0.1":
            order = TaskOrder(tuple(case["sizes"]), case["batch_size"], 3, case["seed"],
                              "consecutive", case["mix_opt"], case["ratio"])
            assert order.steps() == [
                step for epoch in zip(case["task_of_step"], case["rows_of_step"])
                for step in zip(*epoch)]
            continue
        flags = dict(zip(*[iter(case["flags"])] * 2))
        order = TaskOrder(tuple(case["sizes"].values()), 4, 3, 1,
                          mix_opt=int(flags.get("--mix_opt", 0)),
                          ratio=float(flags.get("--ratio", 0)))
        assert order.total_steps == case["num_train_steps"]
        tasks, rows = zip(*order.steps())
        assert (list(tasks), list(rows)) == (case["task_of_step"], case["uids_of_step"])


def test_tasks_come_at_their_rates():
    sizes, epochs = (600, 200, 10), 40
    shares = {"proportional": np.array(sizes) / 810,
              "temperature": np.sqrt(sizes) / np.sqrt(sizes).sum(), "round_robin": np.ones(3) / 3}
    for sampling, share in shares.items():
        order = TaskOrder(sizes, 5, epochs, 3, sampling)
        steps = order.steps()
        assert len(steps) == order.total_steps == epochs * 162
        tasks = np.array([task for task, _ in steps])
        found, count = np.bincount(tasks) / len(tasks), len(tasks)
        assert (np.abs(found - share) < 4 * np.sqrt(share / count)).all(), sampling
        # A task's batches come equally often, with the same members.
        rows = [tuple(rows) for task, rows in steps if task == 1][:80]
        assert set(map(rows.count, rows)) == {2} and sorted(sum(set(rows), ())) == list(range(200))
        assert steps == TaskOrder(sizes, 5, epochs, 3, sampling).steps()
    capped = TaskOrder(sizes, 5, 1, 3, "proportional", cap=100)
    assert np.allclose(capped.rates, np.array([100, 100, 10]) / 210)


@pytest.mark.parametrize("flags, message", [
    ({"sampling": "uniform"}, "--task_sampling"), ({"mix_opt": 2}, "--mix_opt"),
    ({"ratio": 1.0, "sampling": "temperature"}, "--ratio are for"),
    ({"cap": 9}, "--examples_cap is for"), ({"temperature": 3.0}, "--temperature is for"),
    ({"temperature": 0}, "give more than 0"),
    ({"ratio": math.inf}, "--ratio inf .give a finite number of at least 0"),
    ({"ratio": math.nan}, "--ratio nan"),
    ({"cap": -5, "sampling": "proportional"}, "--examples_cap is -5; it must be at least 0")])
def test_settings_that_make_no_order_are_refused(flags, message):
    with pytest.raises(InputError, match=message):
        TaskOrder((3, 4), 2, 1, 0, **flags)
