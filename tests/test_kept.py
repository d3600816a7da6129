"""What a job that resumes keeps: settings, and results as they arrive."""

import pytest

from bert_tf.errors import InputError
from bert_tf.kept import Kept, differing, phrase
from bert_tf.tasks.saved_task import TASK_FILE, SavedTask
from bert_tf.training.trials import kept_trials


@pytest.mark.parametrize("mine, theirs, names", [
    ({"a": 1}, {"a": 1}, []),
    ({"a": 1, "b": 3}, {"a": 1}, ["b"]),
    ({"a": 1, "b": (1, 2)}, {"b": [1, 2], "a": 2}, ["a"]),
    ({"x": None}, {}, []),
    ({}, {"x": 0}, ["x"]),
])
def test_settings_that_differ_are_named(mine, theirs, names):
    assert differing(mine, theirs) == names


@pytest.mark.parametrize("values, said", [
    ((1e-4, 5e-5), "--x (0.0001, now 5e-05)"), ((None, ""), "--x (default, now none)"),
    (([1], 2), "--x"), (("a" * 64, "b" * 64), "--x")])
def test_values_that_can_be_read_are_shown(values, said):
    assert phrase("x", *values) == said


def test_two_processes_lose_no_result(tmp_path):
    path = str(tmp_path / "scores.json")
    one, other = (Kept(path, {"batch_size": 32}) for _ in range(2))
    for number in range(3):
        one.get("scores", f"{number}", measure=lambda: {"score": 1.0})
        other.get("scores", f"{2 - number}", measure=lambda: {"score": 2.0})
        other.get("heads", "a", f"{number}", measure=lambda: 3.0)
    one.put("summary", [1])
    kept, calls = Kept(path, {"batch_size": 32}), []
    for number in range(3):
        kept.get("scores", f"{number}", measure=lambda: calls.append(0))
        assert kept.get("heads", "a", f"{number}", measure=lambda: calls.append(0)) == 3.0
    assert kept.get("summary", measure=lambda: calls.append(0)) == [1]
    assert not calls


@pytest.mark.parametrize("content", [b"", b'{"settings": {', b"\xff"])
def test_a_damaged_file_has_a_remedy(tmp_path, content):
    """No user wrote it, so none can correct it."""
    (tmp_path / "trials" / "a").mkdir(parents=True)
    path = tmp_path / "trials" / "a" / "trial.json"
    path.write_bytes(content)
    (task := tmp_path / TASK_FILE).write_bytes(content)
    for read, name in ((lambda: Kept(str(path), {}), path), (
            lambda: kept_trials(str(tmp_path)), path), (lambda: SavedTask.read(tmp_path), task)):
        with pytest.raises(InputError, match=f"^{name} is damaged; remove it, and run the comm"):
            read()


def test_results_of_other_settings_are_refused_or_forgotten(tmp_path):
    path = str(tmp_path / "scores.json")
    Kept(path, {"batch_size": 32}).get("a", measure=lambda: 1)
    with pytest.raises(InputError, match=r"scores.json holds a run with another --batch_size \(32, "
                                         "now 16.; name another --output_dir, or remove .*json"):
        Kept(path, {"batch_size": 16})
    other = Kept(path, {"batch_size": 16}, forgets=True)
    other.get("b", measure=lambda: 2)
    assert Kept(path, {"batch_size": 16}).get("a", measure=lambda: 3) == 3
