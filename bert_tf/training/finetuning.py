"""Fine-tuning: trials of one goal with several seeds or settings, of which the best is kept."""

import dataclasses
import json
import os
import shutil
import time
import typing

import keras

from bert_tf import checkpoints
from bert_tf.checkpoints import keras_file
from bert_tf.config import read_json
from bert_tf.errors import InputError
from bert_tf.files import make_folder, replace_aside, write_json
from bert_tf.training import outcomes, resume, transfer
from bert_tf.training.best import BestWeights
from bert_tf.training.building import make_trainer
from bert_tf.training.distribution import is_chief
from bert_tf.training.prediction import predict
from bert_tf.training.run import Run, save_model, wait_for_workers

# Settings that may differ when a run goes on.
_FREE = ("output_dir", "eval_batch_size", "save_checkpoints_steps", "keep_checkpoint_max",
         "iterations_per_loop", "distribution_strategy", "use_tpu", "tpu", "tpu_zone",
         "gcp_project", "master", "num_tpu_cores", "num_trials", "grid", "stop_at_step",
         "grid_train_batch_size", "grid_learning_rate", "grid_num_train_epochs", "jit_compile")
RESULTS, RESULT, SETTINGS = "results.json", "result.json", "settings.json"


@dataclasses.dataclass(frozen=True)
class Goal:
    """What to learn, and how it is judged.

    Attributes:
        make_objective: function (config, dtype) -> the objective.
        evaluate: function of `predict`, itself a function of an `ExampleSet` and of whether to
            measure the loss that returns what bert_tf.training.prediction.predict does; returns a
            dict of metrics, in which `degenerate` may say, with 1, that all answers are the same.
            None where there is nothing to evaluate on.
        headline: the metric that decides between trials; more is better.
        defaults: `bert_tf.tasks.task.Defaults`.
        options: dict of what else makes the objective; a run that goes on must have the same.
        scored_on: JSON value of what `evaluate` looks at, such as identities of its examples.
    """

    make_objective: typing.Callable
    evaluate: typing.Callable | None
    headline: str
    defaults: object
    options: dict = dataclasses.field(default_factory=dict)
    scored_on: object = None


class FineTuning:
    """Trains, evaluates and predicts under an output folder.

    A trial has a folder of its own, where its curves and its `result.json` stay; the weights of the
    best one are the `model.keras` of the output folder.

    Args:
        settings: `FineTuneSettings`.
        strategy: of `open_strategy`.
        config: `EncoderConfig`.
        goal: `Goal`.
        init_checkpoint: where training begins, of any format; "" for random weights.
        keep_head: whether training goes on with the head of that checkpoint.
    """

    def __init__(self, settings, strategy, config, goal, init_checkpoint="", keep_head=False):
        self._settings, self._strategy, self._config = settings, strategy, config
        self._goal, self._init_checkpoint = goal, init_checkpoint
        self._keep_head = keep_head
        self._chief = is_chief(strategy)

    def check(self, examples):
        """Finds out whether the trials fit the devices and what the output folder holds.

        Args:
            examples: `ExampleSet` to train on.

        Returns:
            The settings of all trials, and the results of those that are finished, in the order in
            which they ran: two dicts by the trial's name.

        Raises:
            InputError: they don't.
        """
        trials = {name: trial.resolve(self._goal.defaults, examples.size)
                  for name, trial in self._settings.trials().items()}
        folder = os.path.join(self._settings.output_dir, "trials")
        others = sorted(set(os.listdir(folder)) - set(trials)) if os.path.isdir(folder) else []
        if others:
            raise InputError(f"{folder} holds {', '.join(others)}, of other seeds or another grid, "
                             "and the best of all is kept: let this one have them too, or name "
                             "another --output_dir.")
        results = {}
        for name, trial in trials.items():
            trial.check_warmup()
            transfer.check(self._config, trial.frozen_layers, trial.reinit_layers,
                           trial.layer_decay)
            trial.check_replicas(self._strategy.num_replicas_in_sync,
                                 evaluates=bool(self._goal.evaluate))
            self._compare(trial, examples)
            result = self._finished(trial)
            if result:
                results[name] = result
        model = os.path.join(self._settings.output_dir, keras_file.NAME)
        if results and not os.path.exists(model):
            raise InputError(f"{folder} holds trials that are finished, but their best model, "
                             f"{model}, is gone: name another --output_dir, or remove {folder}.")
        return trials, dict(sorted(results.items(), key=lambda item: item[1]["number"]))

    def train(self, examples):
        """Runs all trials that are not finished, and says how they went.

        Args:
            examples: `ExampleSet` to train on.

        Returns:
            What it writes to `results.json`; None if it stopped at `stop_at_step`.

        Raises:
            InputError: see `check`; or training can't go on.
        """
        trials, results = self.check(examples)
        settings = next(iter(trials.values()))
        print(f"{examples.size:,} examples, {len(trials)} trial(s), the first of "
              f"{settings.num_train_steps:,} steps", flush=True)
        headline = self._goal.headline
        for name, trial in trials.items():
            if name not in results:
                result = self._run(trial, examples, results)
                if result is None:
                    print(f"stopped at --stop_at_step={trial.last_step}; the same command without "
                          "it goes on.", flush=True)
                    return None
                results[name] = result
            print(f"{name}: {outcomes.describe_one(results[name], headline)}", flush=True)
        summary = outcomes.summarize(results, headline)
        if self._chief:
            write_json(os.path.join(self._settings.output_dir, RESULTS), summary)
        if len(results) > 1:
            print(outcomes.describe(summary), flush=True)
        return summary

    def _describe(self, trial, examples):
        """What must be the same for a trial to go on, by flag: a JSON value."""
        mine = {name: value for name, value in dataclasses.asdict(trial).items()
                if name not in _FREE}
        path = self._init_checkpoint and os.path.abspath(self._init_checkpoint)
        return json.loads(json.dumps({
            **mine, **self._goal.options, "train_file": examples.identity(),
            "dev_file": self._goal.scored_on if trial.early_stopping else None,
            "init_checkpoint": path, "keep_head": self._keep_head,
            "bert_config_file": self._config.to_dict()}))

    def _compare(self, trial, examples):
        """Raises InputError if the trial's folder is another's."""
        path = os.path.join(trial.output_dir, SETTINGS)
        if not os.path.exists(path):
            return
        mine, theirs = self._describe(trial, examples), read_json(path)
        other = [f"--{name}" for name in mine if mine[name] != theirs.get(name)]
        if other:
            raise InputError(f"{trial.output_dir} holds a run with another {', '.join(other)}; "
                             "name another --output_dir, or remove that folder.")

    def _finished(self, trial):
        """The result of a trial that is finished, or None."""
        path = os.path.join(trial.output_dir, RESULT)
        if not os.path.exists(path):
            return None
        result = read_json(path)
        if result["scored_on"] != self._goal.scored_on:
            raise InputError(f"{trial.output_dir} holds a run that was scored on other examples: "
                             "to score its model on these, leave out --do_train; to train again, "
                             "name another --output_dir.")
        return result

    def _run(self, settings, examples, earlier):
        """Trains one trial; returns its result, None if it stopped at `stop_at_step`."""
        start = time.monotonic()
        keras.backend.clear_session()
        trainer = self.make_trainer(settings)
        evaluate = self._goal.evaluate and (lambda: self.evaluate(trainer))
        best = None
        if settings.early_stopping and evaluate:
            best = BestWeights(trainer, settings.output_dir, self._goal.headline,
                               settings.early_stopping, settings.eval_steps)
        run = Run(trainer, settings, examples, evaluate, best)
        if not run.resume():
            self.initialize(trainer, settings)
        if self._chief:
            make_folder(settings.output_dir, "output_dir")
            write_json(os.path.join(settings.output_dir, SETTINGS),
                       self._describe(settings, examples))
        wait_for_workers(self._strategy)
        run.train()
        if settings.last_step < settings.num_train_steps and not (
                best and best.is_over(run.step)):
            return None
        step, metrics = run.step, {}
        if best:
            wait_for_workers(self._strategy)
            step, metrics = best.restore()
            print(f"ended at step {run.step:,} of {settings.num_train_steps:,}; the weights of "
                  f"step {step:,} are the best", flush=True)
        elif evaluate:
            metrics = run.report_evaluation()
        metrics = dict(metrics)
        result = {"metrics": metrics, "step": step, "seed": settings.random_seed,
                  "train_batch_size": settings.train_batch_size,
                  "learning_rate": settings.learning_rate,
                  "num_train_epochs": settings.num_train_epochs,
                  "degenerate": bool(metrics.pop("degenerate", 0)),
                  "seconds": round(time.monotonic() - start, 1),
                  "scored_on": self._goal.scored_on, "number": len(earlier)}
        if self._chief:
            self._keep(trainer.learner, settings.output_dir, result, earlier)
        wait_for_workers(self._strategy)    # others may still have read the best weights
        if best and self._chief:
            best.remove()
        return result

    def _keep(self, learner, folder, result, earlier):
        """Writes a trial's result to its folder, and its model if it is the best so far."""
        headline = self._goal.headline
        if all(outcomes.rank(result, headline) > outcomes.rank(other, headline)
               for other in earlier.values()):
            save_model(self._settings.output_dir, learner)
            curves = os.path.join(self._settings.output_dir, "metrics.jsonl")
            with replace_aside(curves) as aside:
                shutil.copyfile(os.path.join(folder, "metrics.jsonl"), aside)
        write_json(os.path.join(folder, RESULT), result)
        for path in resume.checkpoints(folder):
            os.remove(path)

    def make_trainer(self, settings):
        """A Trainer for one trial."""
        def prepare(learner):
            transfer.freeze(learner.encoder, settings.frozen_layers)
        return make_trainer(
            self._strategy, settings, self._config,
            lambda config, dtype: [self._goal.make_objective(config, dtype=dtype)], prepare,
            transfer.layer_decay_factors(self._config, settings.layer_decay))

    def initialize(self, trainer, settings):
        """Gives a new Trainer the weights with which training begins."""
        path = self._init_checkpoint
        if path and self._keep_head:
            print(_load_all(path, trainer.learner), flush=True)
        elif path:
            print(checkpoints.load(path, trainer.learner.encoder), flush=True)
        transfer.reinitialize_top(trainer.learner.encoder, settings.reinit_layers)

    def load(self, path):
        """A Trainer with the weights at `path`, head included, to evaluate and to predict.

        Raises:
            InputError: they are of another model, or there is no head.
        """
        keras.backend.clear_session()
        settings = self._settings.resolve(self._goal.defaults, 1)
        trainer = self.make_trainer(settings)
        _load_all(path, trainer.learner)
        return trainer

    def predict(self, trainer, examples, measures=True):
        """See bert_tf.training.prediction.predict."""
        return predict(trainer, examples, self._settings.eval_batch_size, measures)

    def evaluate(self, trainer):
        """The metrics of a trainer."""
        return self._goal.evaluate(
            lambda examples, measures=True: self.predict(trainer, examples, measures))


def _load_all(path, learner):
    """Loads a checkpoint that must hold the head too; returns its `Account`."""
    account = checkpoints.load(path, learner)
    (objective,) = learner.objectives
    missing = [name for name in account.missing if name.startswith(f"{objective.name}/")]
    if missing:
        raise InputError(f"{path} has no {', '.join(missing)}: it was not fine-tuned for this "
                         "task; train it first, with --do_train and without --keep_head.")
    return account
