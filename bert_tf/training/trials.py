"""Trials of one goal: the folder of each, the best result, and a summary of all.

A result is a dict: `metrics` by name, whether it is `degenerate`, the `seconds` that it took
(None: not known), and the settings that differ between trials. A result that `diverged` has no
metrics, and is never the best.
"""

import math
import os
import statistics
from collections.abc import Iterable
from typing import Any

from bert_tf import files
from bert_tf.checkpoints.names import BEST_FILE, MODEL_FILE
from bert_tf.errors import InputError, counted
from bert_tf.kept import Kept, read_kept
from bert_tf.training import resume
from bert_tf.training.reporting import duration
from bert_tf.training.settings import FineTuneSettings

ONE_ANSWER = "The model gives all examples one answer, or all answers to an example one score."
REMEDY = (
    "Train for more epochs, with another --learning_rate, or with several seeds "
    "(--num_trials), of which the best is kept.")
RESULTS, TRIAL = "results.json", "trial.json"
DEGENERATE = "DEGENERATE: one answer to all examples, or one score for all answers"
DIVERGED = "diverged"       # key of results, and of summaries


class Trial(Kept):
    """The file of one trial: its settings and, once it has ended, its result.

    Args:
        description: JSON values by flag that the trial's numbers depend on.
        scored_on: JSON value that identifies the data that the trial is scored on.

    Raises:
        InputError: the folder holds a trial of another description.
    """

    def __init__(self, settings: FineTuneSettings, description: dict, scored_on: Any) -> None:
        self.folder, self._scored_on = settings.output_dir, scored_on
        super().__init__(os.path.join(self.folder, TRIAL), description, self.folder,
                         lambda *both: sum(resume.compare(*both, settings), []))

    def result(self) -> dict | None:
        """Returns the result, None without one; InputError if it was scored on other examples."""
        result = self.get("result")
        if result and result["scored_on"] != self._scored_on:
            raise InputError(f"{self.folder} holds a run that was scored on other examples; leave "
                             "out --do_train to score its model on these, or name another "
                             "--output_dir to train again.")
        return result

    def begin(self, **more: Any) -> None:
        """Makes the folder and writes the settings, with a digest of the first weights in `more` if
        the trial is new."""
        files.make_folder(self.folder, "output_dir")
        earlier = read_kept(self.path).get("settings", {})
        super().begin(**{resume.FIRST_WEIGHTS: earlier.get(resume.FIRST_WEIGHTS, ""), **more})

    def clear(self) -> None:
        """Removes the checkpoints and the best weights, which nobody needs after the trial."""
        best = os.path.join(self.folder, BEST_FILE)
        for path in [*resume.checkpoints(self.folder), *filter(files.exists, [best])]:
            files.remove_file(path)


def kept_trials(output_dir: str, names: Iterable[str] = ()) -> dict[str, dict]:
    """Returns the `settings` and, of those that have ended, the `result` of the trials of an output
    folder that have begun, by name. `names`: of the trials; default: all that are there."""
    folder = os.path.join(output_dir, "trials")
    if not names and files.is_folder(folder):
        names = sorted(files.list_folder(folder))
    paths = {name: os.path.join(folder, name, TRIAL) for name in names}
    return {name: read_kept(path) for name, path in paths.items() if files.exists(path)}


def begun(settings: FineTuneSettings) -> dict | None:
    """Returns the description of the first trial that has begun; None if none has."""
    trials = kept_trials(settings.output_dir, list(settings.trials()))
    return next((trial["settings"] for trial in trials.values()), None)


def counting(results: dict[str, dict]) -> dict[str, dict]:
    return {name: result for name, result in results.items() if not result.get(DIVERGED)}


def check_output(output_dir: str, names: list[str], has_results: bool = False) -> None:
    """Checks that an output folder holds no other trials than `names`, but those that diverged, and
    the best model if one of them has ended."""
    folder = os.path.join(output_dir, "trials")
    trials_there = sorted(files.list_folder(folder)) if files.is_folder(folder) else []
    ended = {name: trial["result"] for name, trial in kept_trials(output_dir).items()
             if "result" in trial}
    if others := [name for name in trials_there if name not in names and (
            name not in ended or name in counting(ended))]:
        left = ""
        if not {*trials_there} <= {*names, *ended}:
            left = (f" A trial without a result in {TRIAL} has not ended: to leave it out, remove "
                    "its folder.")
        raise InputError(f"{folder} holds {', '.join(others)} from other seeds or another grid; "
                         "include these trials in this run, so that the best of all is kept, or "
                         f"name another --output_dir.{left}")
    model = os.path.join(output_dir, MODEL_FILE)
    if has_results and not files.exists(model):
        raise InputError(f"{folder} holds finished trials, but their best model {model} is "
                         f"missing; name another --output_dir, or remove {folder}.")


def rank(metrics: dict, headline: str, is_degenerate: bool) -> tuple:
    """The key that sorts evaluations: degenerate ones come first, the best last. Of the metric
    `headline` more is better; an absent one, or NaN, is the least."""
    value = metrics.get(headline, -math.inf)
    return not is_degenerate, -math.inf if math.isnan(value) else value


def rank_result(result: dict, headline: str) -> tuple:
    return rank(result["metrics"], headline, result["degenerate"])


def deviation(values: list[float]) -> float:
    """Returns the deviation of a sample: 0 of one value, NaN where one of several isn't finite."""
    if len(values) < 2:
        return 0.0
    return statistics.stdev(values) if all(map(math.isfinite, values)) else math.nan


def summarize(results: dict[str, dict], headline: str) -> dict:
    """Returns mean, sample deviation, median and best of each metric, over the trials that did not
    diverge; `results` are by the trial's name. InputError if all diverged."""
    metrics, counts = {}, counting(results)
    if not counts:
        raise InputError(f"all {counted(len(results), 'trial')} diverged: lower the learning rate "
                         "or raise --num_warmup_steps, and name another --output_dir.")
    for name in next(iter(counts.values()))["metrics"]:
        values = [result["metrics"][name] for result in counts.values()]
        known = [value for value in values if not math.isnan(value)] or values
        is_error = "loss" in name or name.endswith(("mae", "mae_of_mean"))
        metrics[name] = {"mean": statistics.fmean(values), "stdev": deviation(values),
                         "median": statistics.median(values),
                         "best": (min if is_error else max)(known)}
    return {"headline": headline,
            "best": max(counts, key=lambda name: rank_result(results[name], headline)),
            "degenerate": [name for name, result in results.items() if result["degenerate"]],
            DIVERGED: [name for name in results if name not in counts],
            "metrics": metrics, "trials": results}


def one_line(result: dict, headline: str, has_ended: bool = False) -> str:
    """One line about a result; `has_ended` if an earlier program trained it."""
    line, value = "trained", result["metrics"].get(headline)
    if result.get(DIVERGED):
        line = f"DIVERGED: not finite in step {result['step']:,}"
    elif value is not None:
        line = f"{headline} {value:.4f}"
    if result["seconds"] is not None:
        line += f", in {duration(result['seconds'])}"
    if result["degenerate"]:
        line += f"  {DEGENERATE}"
    if has_ended:
        line += "; it had ended before and was not trained again"
    return line


def describe(summary: dict) -> str:
    """Lists the lines of a summary: each metric, the best trial."""
    lines = [f"{name}: mean {m['mean']:.4f}, standard deviation {m['stdev']:.4f}, median "
             f"{m['median']:.4f}, best {m['best']:.4f}" for name, m in summary["metrics"].items()]
    if summary[DIVERGED]:
        lines.append(f"diverged, and not counted: {', '.join(summary[DIVERGED])}")
    return "\n".join([*lines, f"best trial: {summary['best']}"])
