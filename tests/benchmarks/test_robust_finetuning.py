"""The comparison of adversarial training and averages with plain fine-tuning."""

import json
import statistics

import pytest

from benchmarks import robust_finetuning
from benchmarks.robust_finetuning import ROWS, RobustnessComparisonFlags
from bert_tf.errors import InputError
from bert_tf.tasks.named import find_task
from bert_tf.training.settings import FineTuneSettings
from tests.benchmarks.test_finetuning_benchmark import write_files


@pytest.fixture(name="job")
def fixture_job(tmp_path):
    write_files(tmp_path / "data")
    return RobustnessComparisonFlags(
        data_dir=str(tmp_path / "data"), init_checkpoint="model", output_dir=str(tmp_path / "out"),
        tasks=["mrpc"], rows=["smart", "ema"], num_trials=2, max_train_examples=["5"])


def test_rows_differ_from_plain_by_their_flags_and_are_run_once(job, tmp_path, monkeypatch):
    ran, scores = [], {"plain": (0.5, 0.7), "smart": (0.4, 0.7), "ema": (0.6, 0.6)}

    def trial(main, log, folder, task, model, settings):
        lines = (tmp_path / "out" / "data" / "mrpc" / "train.tsv").read_text().splitlines()
        assert len(lines) == 1 + 5 and task.data_dir == str(tmp_path / "out" / "data" / "mrpc")
        row = folder.rsplit("/", 1)[-1].rpartition("-")[0]
        ran.append((row, settings.random_seed))
        plain = FineTuneSettings(
            output_dir=folder, random_seed=settings.random_seed, train_batch_size=16,
            learning_rate=1e-4, num_train_epochs=2.0, eval_batch_size=64)
        assert {name: value for name, value in vars(settings).items()
                if value != getattr(plain, name)} == ROWS[row]
        score = scores[row][settings.random_seed - 1]
        return {"dev/f1": score, "dev/accuracy": score}

    monkeypatch.setattr(robust_finetuning, "run_trial", trial)
    robust_finetuning.main(job)
    assert sorted(ran) == sorted((row, seed) for row in scores for seed in (1, 2))
    robust_finetuning.main(job)
    assert len(ran) == 6
    cells = {line[0]: line[1:4] for line in (
        [cell.strip() for cell in line.strip("| \n").split("|")] for line in (
            tmp_path / "out" / "table.md").read_text().splitlines())}
    assert cells["plain"][:2] == [f"60.0 ± {100 * statistics.stdev((0.5, 0.7)):.1f}", ""]
    error = 100 * statistics.stdev((-0.1, 0.0)) / 2 ** 0.5
    assert cells["smart"][1] == f"-5.0 ± {error:.1f}"
    assert cells["ema"][1] == "+0.0 ± 10.0"
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert results["mrpc"]["smart"]["2"]["f1"] == 0.7


def test_a_run_that_was_stopped_is_timed_from_its_beginning(job, tmp_path, monkeypatch):
    left = tmp_path / "out" / "mrpc" / "plain-seed1" / "checkpoint"
    left.parent.mkdir(parents=True)
    left.write_text("half of the steps")

    def trial(main, log, folder, *arguments):
        assert folder == str(left.parent) and not left.exists()
        return {"dev/f1": 0.5, "dev/accuracy": 0.5}

    monkeypatch.setattr(robust_finetuning, "run_trial", trial)
    robust_finetuning.run_row(job, "plain", find_task("mrpc"), 1)


def test_every_row_is_a_setting_of_fine_tuning(job, tmp_path):
    for values in ROWS.values():
        FineTuneSettings(output_dir="x", **values).resolve(find_task("mrpc").defaults, 100)
    with pytest.raises(InputError, match="max_train_examples names cola"):
        robust_finetuning.main(RobustnessComparisonFlags(**{
            **vars(job), "max_train_examples": ["cola=3"]}))
