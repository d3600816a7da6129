"""The order of tasks and batches is that of namisan/mt-dnn v0.1, or has the rates that it names."""

import json
import math

import numpy as np
import pytest

from bert_tf.errors import InputError
from bert_tf.finetuning.mixture import MixtureFlags
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
    ({"task_sampling": "uniform"}, "--task_sampling is uniform; "),
    ({"mix_opt": 2}, "--mix_opt is 2; "),
    ({"ratio": 1.0, "task_sampling": "temperature"}, "there is no --ratio with"),
    ({"examples_cap": 9}, "there is no --examples_cap with"),
    ({"temperature": 3.0}, "there is no --temperature with"),
    ({"temperature": 0, "task_sampling": "temperature"}, "it must be above 0"),
    ({"ratio": math.inf}, "--ratio is inf; it must be at least 0 and finite"),
    ({"ratio": math.nan}, "--ratio is nan"),
    ({"examples_cap": -5, "task_sampling": "proportional"},
     "--examples_cap is -5; it must be at least 0")])
def test_settings_that_make_no_order_are_refused(flags, message):
    with pytest.raises(InputError, match=message):
        MixtureFlags(**flags)
