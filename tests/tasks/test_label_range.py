"""When a regression starts at the mean and the deviation of its labels."""

import numpy as np
import pytest

from bert_tf.errors import InputError
from bert_tf.tasks.kinds.sentence import is_reached, mean_and_deviation, with_range
from bert_tf.tasks.kinds.table import KINDS
from bert_tf.tasks.named import TASKS
from bert_tf.tasks.reading import Example, read_examples
from bert_tf.tasks.task_flags import own_task

REGRESSION = KINDS["regression"]


def numbers(low, high, count=200):
    return np.random.default_rng(0).uniform(low, high, count)


@pytest.mark.parametrize("low, high", [(0, 5), (1, 5), (0, 1), (-1, 1), (-5, 5)])
def test_labels_that_a_head_reaches_stay_as_they_are(low, high):
    assert mean_and_deviation(numbers(low, high)) is None


@pytest.mark.parametrize("low, high", [
    (120, 250), (0.001, 0.002), (2e6, 5e6), (-300, -100), (0, 100), (1900, 2020)])
def test_labels_that_it_does_not_reach_give_their_mean_and_deviation(low, high):
    labels = numbers(low, high)
    assert mean_and_deviation(labels) == pytest.approx((labels.mean(), labels.std()))


def test_one_wrong_number_does_not_decide_about_the_others(capsys):
    near, far = numbers(0, 5), numbers(120, 250)
    assert mean_and_deviation([*near, 1e9]) is None
    assert mean_and_deviation([*far, -1e9]) == pytest.approx((far.mean(), far.std()))
    assert with_range({}, [*near, 1e9, -1e9]) == {}
    warned = capsys.readouterr().err
    assert "2 of 202 labels" in warned and "such as 1e+09" in warned
    # Most labels are 0, and a few are far: these are the task.
    rare = [0.0] * 90 + [100.0] * 10
    assert mean_and_deviation(rare) == pytest.approx((np.mean(rare), np.std(rare)))
    with_range({}, rare)
    with_range({}, near)
    assert not capsys.readouterr().err


@pytest.mark.parametrize("labels, expected", [
    (numbers(120, 250), True), (numbers(150, 170), True), ([199.0], True), ([180.0] * 3, True),
    (numbers(0, 5), False), (numbers(1900, 2020), False), (numbers(184.9, 185.1), False),
    ([*numbers(120, 250), 1e9], True), (numbers(12, 25), False), ([70.0, 71.0], True)])
def test_a_head_is_kept_for_numbers_that_it_says(labels, expected):
    assert is_reached({"label_mean": 185.0, "label_scale": 37.5}, labels) is expected
    assert is_reached({}, labels) == (max(labels) <= 5)


@pytest.mark.parametrize("value", [7.0, 0.1, 1e6, -300.3])
def test_equal_labels_start_at_their_value(value):
    assert mean_and_deviation([value] * 7) == pytest.approx((value, 1.0))


def test_the_labels_of_sts_b_stay_as_they_are(test_data):
    task = TASKS["sts-b"]
    labels = [example.label for example in read_examples(
        task, "train", task.path(str(test_data / "glue" / "STS-B"), "train"))]
    assert mean_and_deviation(labels) is None and with_range({}, labels) == {}


def test_what_is_given_stays(capsys):
    labels = numbers(120, 250)
    assert with_range({"label_scale": 9.0}, labels) == {
        "label_scale": 9.0, "label_mean": pytest.approx(labels.mean())}
    assert with_range({"label_mean": 0.0}, labels) == {
        "label_mean": 0.0, "label_scale": pytest.approx(labels.std())}
    capsys.readouterr()
    both = {"label_mean": 0.0, "label_scale": 1.0}
    assert with_range(both, labels) == both and not capsys.readouterr().out


def test_small_numbers_keep_their_digits():
    def shown(value):
        return REGRESSION.describe(TASKS["sts-b"], Example(["a"], 0), np.float32(value), None)

    assert shown(0.00123456) == {"value": 0.001235} and shown(3.14159) == {"value": 3.1416}
    assert shown(-0.5) == {"value": -0.5} and shown(0) == {"value": 0.0}
    assert shown(2345678.5) == {"value": 2345678.5} and np.isnan(shown(np.nan)["value"])


def test_a_number_that_records_cannot_hold_is_refused(tmp_path):
    path = tmp_path / "train.csv"
    path.write_text("text,price\na,12\nb,1e39\n")
    task = own_task("regression", {"train": str(path)}, ["text"], "price")
    with pytest.raises(InputError, match="line 3: '1e39' is not a number"):
        list(read_examples(task, "train", str(path)))
