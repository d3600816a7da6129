"""Mixtures: rates of text tasks, and the order of tasks with records."""

import collections
import dataclasses
import itertools
import json
import math

import numpy as np
import pytest

from bert_tf.data.batches import bucketing
from bert_tf.errors import InputError
from bert_tf.finetuning.mixture import MixtureFlags
from bert_tf.models.mtdnn.order import TaskOrder
from bert_tf.models.t5.mixture import Draws, TextMixture, mixing_rates
from bert_tf.models.t5.segments import Runs


def test_rates():
    assert mixing_rates([3, 1]) == pytest.approx([0.75, 0.25])
    assert mixing_rates([300, 1, 2], 2) == pytest.approx([0.4, 0.2, 0.4])
    assert mixing_rates([16, 1], temperature=2) == pytest.approx([0.8, 0.2])
    assert mixing_rates([1000, 1], temperature=1e9) == pytest.approx([0.5, 0.5])
    assert list(mixing_rates([1000, 999, 1000], temperature=1e-9)) == [0.5, 0, 0.5]


def test_draws_are_a_function_of_the_place():
    sizes, rates = [7, 3], mixing_rates([7, 3])
    whole = list(itertools.islice(Draws(sizes, rates, 5)(0), 9000))
    for first in (1, 4095, 4096, 8500):
        assert list(itertools.islice(Draws(sizes, rates, 5)(first), 50)) == whole[first:first + 50]
    assert whole != list(itertools.islice(Draws(sizes, rates, 6)(0), 9000))
    share = np.mean([task == 0 for task, _ in whole])
    assert abs(share - 0.7) < 3 * (0.21 / 9000) ** 0.5
    for task, size in enumerate(sizes):     # each example once before any comes again
        rows = [row for drawn, row in whole if drawn == task]
        epochs = [rows[at:at + size] for at in range(0, len(rows) - size, size)]
        assert all(sorted(epoch) == list(range(size)) for epoch in epochs)
        assert len(set(map(tuple, epochs))) > 1


def test_batches_of_a_mixture():
    def runs(*lengths):
        return Runs.join(np.arange(2, 2 + length) for length in lengths)

    tasks = {"a": (runs(5, 30, 9), runs(3, 9, 2)), "b": (runs(4, 6), runs(1, 4))}
    mixture = TextMixture(tasks, mixing_rates([3, 2]), 64, 10)
    batches = list(mixture.training_batches(3, 0, 4, 2).take(6).as_numpy_iterator())
    assert mixture.size == 5
    for batch in batches:
        assert batch["decoder_target_tokens"].shape in ((2, 8), (2, 10))
        assert batch["encoder_input_tokens"].shape[1] % 8 == 0
        assert np.array_equal(batch["decoder_loss_weights"], batch["decoder_target_tokens"] > 0)
        assert np.array_equal(batch["decoder_input_tokens"][:, 1:],
                              batch["decoder_target_tokens"][:, :-1])
    # One replica gets what two share; a later start goes on.
    for one, (first, second) in zip(mixture.training_batches(3, 4, 4, 1).take(2), zip(
            batches[2::2], batches[3::2])):
        for name, values in one.items():
            assert np.array_equal(values, np.concatenate([first[name], second[name]]))
    lengths = list(itertools.islice(mixture.batch_lengths(3, 0, 4), 3))
    assert lengths == [(batch["encoder_input_tokens"].shape[1],
                        batch["decoder_input_tokens"].shape[1]) for batch in batches[::2]]
    assert len(set(itertools.islice(mixture.batch_lengths(3, 0, 2), 30))) > 2
    other = TextMixture(tasks, mixing_rates([3, 2], temperature=2), 64, 10)
    assert mixture.identity() != other.identity()
    padded = TextMixture(tasks, mixture.rates, 64, 10, padding=bucketing.MAX_LENGTH)
    assert set(itertools.islice(padded.batch_lengths(3, 0, 4), 5)) == {(64, 10)}


def test_examples_of_similar_length_share_a_batch():
    rng = np.random.default_rng(4)
    inputs, targets = (Runs.join(np.full(length, 7) for length in rng.integers(1, longest, 2000))
                       for longest in (200, 9))
    mixture = TextMixture({"a": (inputs, targets)}, mixing_rates([2000]), 200, 9)
    drawn = dataclasses.replace(mixture, by_length=False)
    batches = list(itertools.islice(mixture._batches(3, 0, 8), 100))
    examples = [row for batch in itertools.islice(drawn._batches(3, 0, 8), 100) for row in batch]
    assert examples == list(itertools.islice(Draws([2000], mixture.rates, 3)(0), 800))
    for first in (0, 32, 64):       # the same examples as were drawn, 32 batches at a time
        assert sorted(itertools.chain(*batches[first:first + 32])) == sorted(
            examples[first * 8:(first + 32) * 8])
    positions = [sum(map(sum, itertools.islice(each.batch_lengths(3, 0, 8), 96)))
                 for each in (mixture, drawn)]
    assert positions[0] < 0.7 * positions[1]
    for place in (1, 31, 32, 77):   # a function of the place alone
        assert list(itertools.islice(mixture._batches(3, 8 * place, 8), 3)) == (
            batches[place:place + 3])
    assert mixture.identity() != drawn.identity()


def test_few_examples_do_not_meet_their_copies_in_a_batch():
    runs = Runs.join(np.full(length, 7) for length in range(1, 21))
    mixture = TextMixture({"a": (runs, runs)}, mixing_rates([20]), 32, 32)
    batches = itertools.islice(mixture._batches(3, 0, 8), 100)
    assert max(max(collections.Counter(batch).values()) for batch in batches) <= 2


# The order of tasks

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


def test_the_schedule_counts_as_the_original_does():
    """v0.1 train.py: int(epochs * first * (1 + ratio)), where there are several tasks; later
    train.py: epochs * len(DataLoader), the batches of all tasks."""
    for sizes, sampling, wanted in (((10, 50), "batches", 13), ((10,), "batches", 9),
                                    ((10, 50), "consecutive", 48)):
        order = TaskOrder(sizes, 4, 3, 1, sampling, ratio=0.5)
        assert order.total_steps == wanted and len(order.steps()) == 3 * order.steps_of_epoch


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
    ({"ratio": math.inf}, "--ratio is inf; it must be a finite number"),
    ({"ratio": math.nan}, "--ratio is nan"),
    ({"examples_cap": -5, "task_sampling": "proportional"},
     "--examples_cap is -5; it must be at least 0")])
def test_settings_that_make_no_order_are_refused(flags, message):
    with pytest.raises(InputError, match=message):
        MixtureFlags(**flags)
