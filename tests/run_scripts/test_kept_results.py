"""Results that a command keeps as they arrive."""

import pytest

from bert_tf.errors import InputError
from run_scripts.kept_results import KeptResults


def test_two_processes_lose_no_result(tmp_path):
    path = str(tmp_path / "scores.json")
    one, other = (KeptResults(path, {"batch_size": 32}) for _ in range(2))
    for number in range(3):
        one.get("scores", f"{number}", measure=lambda: {"score": 1.0})
        other.get("scores", f"{2 - number}", measure=lambda: {"score": 2.0})
        other.get("heads", "a", f"{number}", measure=lambda: 3.0)
    one.put("summary", [1])
    kept, calls = KeptResults(path, {"batch_size": 32}), []
    for number in range(3):
        kept.get("scores", f"{number}", measure=lambda: calls.append(0))
        assert kept.get("heads", "a", f"{number}", measure=lambda: calls.append(0)) == 3.0
    assert kept.get("summary", measure=lambda: calls.append(0)) == [1]
    assert not calls


def test_results_of_other_settings_are_forgotten(tmp_path):
    path = str(tmp_path / "scores.json")
    KeptResults(path, {"batch_size": 32}).get("a", measure=lambda: 1)
    with pytest.raises(InputError, match="was made with other batch_size; name another"):
        KeptResults(path, {"batch_size": 16})
    other = KeptResults(path, {"batch_size": 16}, forgets=True)
    other.get("b", measure=lambda: 2)
    assert KeptResults(path, {"batch_size": 16}).get("a", measure=lambda: 3) == 3
