"""Trials of one goal: the folder of each, the best result, and a summary of all.

A result is a dict: `metrics` by name, whether it is `degenerate`, the `seconds` that it took
(None: not known), and the settings that differ between trials. A result that `diverged` has no
metrics, and is never the best.
"""

import math
import os
import statistics

from bert_tf import files
from bert_tf.checkpoints.names import BEST_FILE, MODEL_FILE
from bert_tf.errors import InputError, counted
from bert_tf.training import resume
from bert_tf.training.reporting import duration
from bert_tf.training.settings import FineTuneSettings

ONE_ANSWER = "The model gives all examples one answer, or all answers to an example one score."
REMEDY = (
    "Train for more epochs, with another --learning_rate, or with several seeds "
    "(--num_trials), of which the best is kept.")
RESULTS, RESULT, SETTINGS = "results.json", "result.json", "settings.json"
DEGENERATE = "DEGENERATE: one answer to all examples, or one score for all answers"
DIVERGED = "diverged"       # key of results, and of summaries


class TrialFolder:
    """The folder of one trial: its settings, its curves and, once it has ended, its result.

    Args:
        description: JSON values by flag that the trial's numbers depend on.
        scored_on: JSON value that identifies the data that the trial is scored on.
    """

    def __init__(self, settings: FineTuneSettings, description: dict, scored_on) -> None:
        self.path = settings.output_dir
        self._settings, self._description, self._scored_on = settings, description, scored_on

    def check(self) -> None:
        """Raises InputError if the folder holds a trial of another description."""
        path = os.path.join(self.path, SETTINGS)
        if not files.exists(path):
            return
        network, recipe = resume.compare(self._description, files.read_json(path), self._settings)
        if network or recipe:
            raise InputError(
                f"{self.path} holds a run with another {', '.join(network + recipe)}; name another "
                f"--output_dir, or remove {self.path}.")

    def result(self) -> dict | None:
        """Returns the result, None without one; InputError if it was scored on other examples."""
        path = os.path.join(self.path, RESULT)
        if not files.exists(path):
            return None
        result = files.read_json(path)
        if result["scored_on"] != self._scored_on:
            raise InputError(f"{self.path} holds a run that was scored on other examples; leave "
                             "out --do_train to score its model on these, or name another "
                             "--output_dir to train again.")
        return result

    def begin(self, first_weights: str | None = None) -> None:
        """Makes the folder and writes the settings. `first_weights` is the digest of the weights
        that a new trial begins with; None: as written before."""
        files.make_folder(self.path, "output_dir")
        path = os.path.join(self.path, SETTINGS)
        if first_weights is None and files.exists(path):
            first_weights = files.read_json(path)[resume.FIRST_WEIGHTS]
        files.write_json(path, {**self._description, resume.FIRST_WEIGHTS: first_weights or ""})

    def end(self, result: dict) -> None:
        files.write_json(os.path.join(self.path, RESULT), result)

    def clear(self) -> None:
        """Removes the checkpoints and the best weights, which nobody needs after the trial."""
        best = os.path.join(self.path, BEST_FILE)
        for path in [*resume.checkpoints(self.path), *filter(files.exists, [best])]:
            files.remove_file(path)


def begun_file(settings: FineTuneSettings) -> str | None:
    """Returns the file with the description of the first trial that has begun; None if none has."""
    paths = [os.path.join(trial.output_dir, SETTINGS) for trial in settings.trials().values()]
    return next(filter(files.exists, paths), None)


def begun(settings: FineTuneSettings) -> dict | None:
    """Returns the description of the first trial that has begun; None if none has."""
    path = begun_file(settings)
    return files.read_json(path) if path else None


def descriptions(output_dir: str, file: str = SETTINGS) -> list[dict]:
    """Returns the descriptions of all trials in an output folder, or the content of another file
    where a trial has it, such as RESULT."""
    folder = os.path.join(output_dir, "trials")
    paths = [os.path.join(folder, name, file) for name in (
        sorted(files.list_folder(folder)) if files.is_folder(folder) else [])]
    return list(map(files.read_json, filter(files.exists, paths)))


def others_begun_with(settings: FineTuneSettings, first_weights: str) -> bool:
    """Returns whether a trial in the output folder began with other weights, as far as known."""
    return any(trial[resume.FIRST_WEIGHTS] not in ("", first_weights)
               for trial in descriptions(settings.output_dir))


def counting(results: dict[str, dict]) -> dict[str, dict]:
    return {name: result for name, result in results.items() if not result.get(DIVERGED)}


def next_number(results: dict[str, dict]) -> int:
    return max((result["number"] for result in results.values()), default=-1) + 1


def check_output(output_dir: str, names: list[str], has_results: bool = False) -> None:
    """Checks that an output folder holds no other trials than `names`, but those that diverged, and
    the best model if one of them has ended."""
    folder = os.path.join(output_dir, "trials")
    trials_there = []
    if files.is_folder(folder):
        trials_there = sorted(set(files.list_folder(folder)) - set(names))
    paths = {name: os.path.join(folder, name, RESULT) for name in trials_there}
    ended = {name: files.read_json(path) for name, path in paths.items() if files.exists(path)}
    if others := [name for name in trials_there if name not in ended or name in counting(ended)]:
        left = ""
        if len(ended) != len(trials_there):
            left = f" A trial without {RESULT} has not ended: to leave it out, remove its folder."
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
    value = result["metrics"].get(headline)
    outcome = "trained" if value is None else f"{headline} {value:.4f}"
    if result.get(DIVERGED):
        outcome = f"DIVERGED: not finite in step {result['step']:,}"
    mark = f"  {DEGENERATE}" if result["degenerate"] else ""
    note = "; it had ended before and was not trained again" if has_ended else ""
    seconds = result["seconds"]
    taken = "" if seconds is None else f", in {duration(seconds)}"
    return f"{outcome}{taken}{mark}{note}"


def describe(summary: dict) -> str:
    """Lists the lines of a summary: each metric, the best trial."""
    lines = [f"{name}: mean {m['mean']:.4f}, standard deviation {m['stdev']:.4f}, median "
             f"{m['median']:.4f}, best {m['best']:.4f}" for name, m in summary["metrics"].items()]
    if summary[DIVERGED]:
        lines.append(f"diverged, and not counted: {', '.join(summary[DIVERGED])}")
    return "\n".join([*lines, f"best trial: {summary['best']}"])
