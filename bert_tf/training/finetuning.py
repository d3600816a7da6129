"""Fine-tuning: trials of one goal with several seeds or settings; the best trial is kept."""

import contextlib
import dataclasses
import functools
import os
import time
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from bert_tf import checkpoints, networks
from bert_tf.checkpoints.names import MODEL_FILE
from bert_tf.checkpoints.weights import variables
from bert_tf.config import EncoderConfig
from bert_tf.errors import DivergedError, InputError, counted
from bert_tf.files import absolute, copy_file, exists, write_json
from bert_tf.models.gpt.objective import TiedLM
from bert_tf.objectives.head_gates import HeadGates
from bert_tf.training import adversarial, batches, resume, transfer, trials
from bert_tf.training.distribution import is_chief
from bert_tf.training.learners.gated import GatedLearner, check_gates
from bert_tf.training.learners.learner import Learner, digest
from bert_tf.training.settings import FineTuneSettings
from bert_tf.training.train import BestWeights, Run, save_model, sole_writer, wait_for_workers
from bert_tf.training.trainer import Trainer, make_trainer


@dataclasses.dataclass
class Last:
    """What is in memory of the last trial.

    Attributes:
        best: its trainer, if it is the best trial, and the whole of it was saved.
        answers: examples and the result of `batches.predict`, by the trainer's state and what it
            was asked for.
    """

    best: Trainer | None = None
    answers: dict = dataclasses.field(default_factory=dict)

    def predict(self, trainer: Trainer, examples, *asked) -> tuple[dict, dict]:
        """The result of `batches.predict`, which is computed once for a step of a trainer."""
        step = int(trainer.step.numpy())
        key = (trainer, step, id(examples), *asked)
        if key not in self.answers:     # they keep the examples, so that no others get their id
            self.answers = {old: value for old, value in self.answers.items()
                            if old[:2] == key[:2]}
            self.answers[key] = examples, *batches.predict(trainer, examples, *asked)
        _, arrays, losses = self.answers[key]
        return dict(arrays), losses


@dataclasses.dataclass
class FineTuning:
    """Trains, evaluates and predicts under an output folder: trials of one objective.

    A trial has a folder of its own, where its curves and its `trial.json` stay. The best trial's
    weights are the `model.keras` of the output folder.

    Attributes:
        make_objective: function (config, dtype) -> the objective, or a list of the tasks'
            objectives.
        evaluate: function (predict) -> dict of metrics, whose `degenerate` is 1 if all answers are
            the same. `predict` takes an `ExampleSet` and whether to measure the loss, and returns
            the result of `batches.predict`. None where there is nothing to evaluate on.
        headline: the metric that decides between trials; more is better.
        options: further settings that make the objective, by flag; a resumed run must have the
            same.
        scored_on: JSON value that identifies the data of `evaluate`, such as identities of its
            examples.
        learner: function (network, objectives) -> Learner; auxiliary objectives are there in
            training alone.
        init_checkpoint: weights to begin with, of any format; "" for random ones.
        keep_head: whether to begin with that checkpoint's head, too.
        weights: the `Weights` of that checkpoint if it was opened; they are dropped when loaded.
        change_start: function (Learner) that changes the weights before training.
        last: what is in memory of the last trial.
    """

    settings: FineTuneSettings
    strategy: tf.distribute.Strategy
    config: EncoderConfig
    make_objective: Callable
    evaluate: Callable | None
    headline: str
    defaults: Any
    options: dict = dataclasses.field(default_factory=dict)
    scored_on: Any = None
    learner: Callable[..., Learner] = Learner
    init_checkpoint: str = ""
    keep_head: bool = False
    weights: "checkpoints.Weights | None" = None
    change_start: Callable[[Learner], None] | None = None
    last: Last = dataclasses.field(default_factory=Last, init=False)
    _is_checked = False

    def check_trial(self, settings: FineTuneSettings) -> None:
        """Raises InputError if a trial does not fit the network or the devices."""
        settings.check_warmup()
        if settings.lm_coef and not self.config.has_tied_lm:
            raise InputError("--lm_coef is for GPT, whose language model needs no extra weights; "
                             "leave the flag out.")
        if settings.concrete_coef:
            check_gates(self.config, self.learner, settings.concrete_stretch)
            if settings.concrete_learning_rate and not settings.learning_rate:
                raise InputError("--concrete_learning_rate scales the schedule of --learning_rate, "
                                 "which is 0; give a --learning_rate above 0.")
        if settings.adv_train != "none":
            adversarial.check(settings, networks.network_of(self.config), self.config, self.learner)
        if settings.frozen_layers or settings.reinit_layers or settings.layer_decay != 1:
            transfer.check(self.config, settings.frozen_layers, settings.reinit_layers,
                           settings.layer_decay)
        settings.check_replicas(self.strategy.num_replicas_in_sync, evaluates=bool(self.evaluate))

    def make_trainer(self, settings: FineTuneSettings, trains: bool = True) -> Trainer:
        """A Trainer for one trial, with auxiliary objectives if it is to train."""
        factors: tuple = ()
        if settings.layer_decay != 1:
            factors = transfer.layer_decay_factors(self.config, settings.layer_decay,
                                                   settings.layer_decay_top,
                                                   settings.layer_decay_of)
        return make_trainer(
            self.strategy, settings, lambda dtype: _make_learner(self, settings, trains, dtype),
            sums_losses=settings.loss_reduction == "sum", trains=trains,
            **{f"{settings.layer_decay_of}_factors": factors})

    def initialize(self, trainer: Trainer, settings: FineTuneSettings) -> str:
        """Gives a new Trainer its first weights; returns a digest of the weights of the encoder
        that the checkpoint holds, "" without a checkpoint. InputError if an earlier trial began
        with others."""
        path, self.weights, first = self.weights or self.init_checkpoint, None, ""
        if path:
            if self.keep_head:
                account = _load_all(path, trainer.learner)
            else:
                account = checkpoints.load(path, trainer.learner.encoder)
            print(account, flush=True)
            first = digest(variable for name, variable in variables(
                trainer.learner.encoder).items() if name in account.mapped)
        if settings.reinit_layers:
            transfer.reinitialize_top(trainer.learner.encoder, settings.reinit_layers)
        if self.change_start:
            self.change_start(trainer.learner)
        if first and any(trial["settings"][resume.FIRST_WEIGHTS] not in ("", first)
                         for trial in trials.kept_trials(self.settings.output_dir).values()):
            raise InputError(f"--init_checkpoint: {self.init_checkpoint} has other weights than "
                             "when an earlier trial began; restore the file, or name another "
                             "--output_dir.")
        return first

    def load(self, path: str) -> Trainer:
        """Returns a Trainer with all weights at `path`, the head's too, to evaluate and predict."""
        if self.last.best and path == os.path.join(self.settings.output_dir, MODEL_FILE):
            return self.last.best
        keras.backend.clear_session()
        settings = self.settings.resolve(self.defaults, 1)
        trainer = self.make_trainer(settings, trains=False)
        weights, self.weights = self.weights, None
        if path != self.init_checkpoint:
            weights = None
        _load_all(weights or path, trainer.learner)
        return trainer

    def predict(self, trainer: Trainer, examples, measures: bool = True) -> tuple[dict, dict]:
        return self.last.predict(trainer, examples, self.settings.eval_batch_size, measures)

    def measure(self, trainer: Trainer) -> dict:
        assert self.evaluate is not None
        return self.evaluate(
            lambda examples, measures=True: self.predict(trainer, examples, measures))

    def check(self, examples) -> tuple[dict, dict]:
        """Checks that the trials fit the devices and the contents of the output folder.

        Returns two dicts by the trial's name: the settings of all trials, and the results of the
        finished trials in the order of their runs.
        """
        settings = {name: trial.resolve(self.defaults, examples.size)
                    for name, trial in self.settings.trials().items()}
        results = {}
        for name, trial in settings.items():
            self.check_trial(trial)
            if result := self.kept(trial, examples).result():
                results[name] = result
        trials.check_output(self.settings.output_dir, list(settings),
                            bool(trials.counting(results)))
        self._is_checked = True
        return settings, dict(sorted(results.items(), key=lambda item: item[1]["number"]))

    def train(self, examples) -> dict | None:
        """Runs all trials that are not finished, prints the results and writes `results.json`.

        Returns the content of that file; None if training stopped at `stop_at_step`.
        """
        if not self._is_checked:
            self.check(examples)
        with self.sole_writer():
            return self._train(*self.check(examples), examples)

    def sole_writer(self) -> contextlib.AbstractContextManager:
        """Holds the lock of the output folder; see `run.sole_writer`."""
        return sole_writer(self.settings.output_dir, self.strategy)

    def _train(self, settings, results, examples):
        steps = next(iter(settings.values())).num_train_steps
        print(f"{counted(examples.size, 'example')}, {counted(len(settings), 'trial')} of "
              f"{counted(steps, 'step')}", flush=True)
        if self.settings.adv_train != "none":
            print(adversarial.describe(self.settings), flush=True)
        headline, old = self.headline, set(results)
        for name, trial in settings.items():
            if name in old and is_chief(self.strategy):
                self.kept(trial, examples).clear()       # a kill at its end left it
            if name not in results:
                result = _run_trial(self, trial, examples, results)
                if result is None:
                    print(f"stopped at --stop_at_step={trial.last_step}; to resume, run the "
                          "same command without the flag.", flush=True)
                    return None
                results[name] = result
            print(f"{name}: {trials.one_line(results[name], headline, name in old)}", flush=True)
        summary = trials.summarize(results, headline)
        if is_chief(self.strategy):
            write_json(os.path.join(self.settings.output_dir, trials.RESULTS), summary)
        if len(results) > 1:
            print(trials.describe(summary), flush=True)
        return summary

    def kept(self, settings: FineTuneSettings, examples: Any) -> trials.Trial:
        """Opens the file of a trial; InputError if it is of another one."""
        path = self.init_checkpoint and absolute(self.init_checkpoint)
        return trials.Trial(settings, {
            **resume.describe(settings), **self.options, "train_file": examples.identity(),
            "dev_file": self.scored_on if settings.early_stopping else None,
            "init_checkpoint": path, "keep_head": self.keep_head,
            "bert_config_file": self.config.to_dict()}, self.scored_on)


def _run_trial(tuning, settings, examples, earlier):
    """Trains one trial; returns its result, None if it stopped at `stop_at_step`."""
    start = time.monotonic()
    tuning.last = Last()
    keras.backend.clear_session()
    kept, trainer = tuning.kept(settings, examples), tuning.make_trainer(settings)
    evaluate, best = tuning.evaluate and (lambda: tuning.measure(trainer)), None
    if settings.early_stopping and evaluate and settings.num_train_steps:
        best = BestWeights(trainer, settings.output_dir, tuning.headline,
                           settings.early_stopping, settings.eval_steps)
    run = Run(trainer, settings, examples, evaluate, best)
    run.start = start
    first = {}
    if not run.resume():
        first[resume.FIRST_WEIGHTS] = tuning.initialize(trainer, settings)
    if is_chief(tuning.strategy):
        kept.begin(**first)
    wait_for_workers(tuning.strategy)
    bad_step = None
    try:
        run.train()
    except DivergedError as error:
        if len(tuning.settings.trials()) == 1:
            raise
        bad_step = error.step
    if not bad_step and settings.last_step < settings.num_train_steps and not (
            best and best.is_over(run.step)):
        return None
    step, metrics = bad_step or run.step, {}
    if best and not bad_step:
        wait_for_workers(tuning.strategy)
        step, metrics = best.restore(run.step, settings.num_train_steps)
    elif evaluate and not bad_step:
        metrics = run.report_evaluation()
    result = {"metrics": {name: value for name, value in metrics.items() if name != "degenerate"},
              "step": step, "seed": settings.random_seed,
              **{name: getattr(settings, name) for name in (
                  "train_batch_size", "learning_rate", "num_train_epochs")},
              "degenerate": bool(metrics.get("degenerate")), "seconds": run.seconds,
              "scored_on": tuning.scored_on, "number": 1 + max(
                  (each["number"] for each in earlier.values()), default=-1)}
    if bad_step:
        result[trials.DIVERGED] = True
    _end(tuning, trainer, kept, result, earlier)
    if best:        # which may have restored other weights than those of the last step
        tuning.last = Last()
    return result


def _make_learner(tuning, settings, trains, dtype):
    """The Learner of a trial, with auxiliary objectives if it trains."""
    # The first: the order decides the seeds of the first weights.
    network = networks.build(tuning.config, dtype=dtype)
    made = tuning.make_objective(tuning.config, dtype=dtype)
    heads = made if isinstance(made, list) else [made]
    if trains and settings.lm_coef:
        heads.append(TiedLM(tuning.config, by_row=True, auxiliary=True, dtype=dtype,
                            loss_weight=settings.lm_coef))
    make = tuning.learner
    if not trains and any(head.auxiliary for head in heads):
        heads = [head for head in heads if not head.auxiliary]
        make = getattr(make, "without_auxiliary", Learner)
        _give_losses(heads)
    if trains and settings.concrete_coef:
        factor = 1.0
        if settings.concrete_learning_rate:
            factor = settings.concrete_learning_rate / settings.learning_rate
        make = functools.partial(GatedLearner, rate_factor=factor)
        heads.append(HeadGates(tuning.config, loss_weight=settings.concrete_coef,
                               temperature=settings.concrete_temperature,
                               stretch=[float(end) for end in settings.concrete_stretch]))
    learner = make(network, heads)
    if settings.frozen_layers:
        transfer.freeze(learner.encoder, settings.frozen_layers)
    return learner


def _give_losses(heads):
    for head in heads:
        head.loss_weight = head.loss_weight or 1.0


def _end(tuning, trainer, kept, result, earlier):
    """Keeps the model and the result of a trial, and clears its folder."""
    headline = tuning.headline
    is_best = not result.get(trials.DIVERGED) and all(
        trials.rank_result(result, headline) > trials.rank_result(other, headline)
        for other in trials.counting(earlier).values())
    if is_chief(tuning.strategy):
        with trainer.averaged():
            if is_best:
                model = trainer.learner.parts()["model"]
                _give_losses(model.objectives)
                save_model(tuning.settings.output_dir, model)
                curves = os.path.join(kept.folder, "metrics.jsonl")
                if exists(curves):
                    copy_file(curves, os.path.join(tuning.settings.output_dir, "metrics.jsonl"))
            kept.put("result", result)
    if is_best and trainer.learner.parts().get("model") is trainer.learner:
        tuning.last.best = trainer
    else:
        tuning.last = Last()
    wait_for_workers(tuning.strategy)       # others may still have read the best weights
    if is_chief(tuning.strategy):
        kept.clear()


def _load_all(path, learner):
    """Loads a checkpoint that must hold the head too; returns its `Account`."""
    account = checkpoints.load(path, learner)
    heads = tuple(f"{objective.name}/" for objective in learner.objectives
                  if not objective.auxiliary)
    missing = [name for name in account.missing if name.startswith(heads)]
    if missing and all(name.startswith("masked_lm/") for name in missing):
        raise InputError(f"{account.source} has no masked LM, which this task starts from; name a "
                         "pre-trained model with a masked LM as --init_checkpoint.")
    if missing:
        raise InputError(f"{account.source} has no {', '.join(missing)}, so it was not fine-tuned "
                         "for this task; train it first, with --do_train and without --keep_head.")
    return account
