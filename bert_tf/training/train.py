"""A training run in a folder: the loop, checkpoints, evaluations, reports, the saved model.

Read `Run.train` first: it is the whole of training, from top to bottom.
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import tensorflow as tf

from bert_tf.checkpoints import checksummed, names
from bert_tf.errors import DivergedError, InputError
from bert_tf.files import exists, locked, make_folder, real_path, replace_aside
from bert_tf.signals import STATUS, FirstSignal
from bert_tf.training import resume
from bert_tf.training.batches import Feed
from bert_tf.training.cluster import explain_lost_worker
from bert_tf.training.distribution import count_workers, is_chief, mean_over_workers
from bert_tf.training.learners.learner import Learner
from bert_tf.training.reporting import Progress, Reporter, write_eval_results
from bert_tf.training.settings import SharedSettings
from bert_tf.training.trainer import Trainer
from bert_tf.training.trials import rank


class Stopped(InputError):
    """A signal ended the training, whose state is saved.

    Args:
        number: of the signal; programs end with its status.
    """

    is_asked_for = True

    def __init__(self, message: str, number: int) -> None:
        super().__init__(message)
        self.status = STATUS[number]


class Run:
    """Training of one `Trainer` on one set of records, under `SharedSettings`.

    The state on disk is the checkpoints in `settings.output_dir`, which also keep the run's
    settings and its place in the records.

    Args:
        evaluate: function that returns a dict of metrics, the total "loss" first, or None.
        best: keeps the best evaluation, and may end training. The last step is then evaluated, too.
        more: further settings, by flag, that are compared when a run is resumed.
        evaluated_on: the name in reports of the records of `evaluate`.

    Attributes:
        is_in_order: whether the run continues in the records and the order of its checkpoint.
        start: `time.monotonic` when this invocation began, if checkpoints keep the time that the
            run has taken; pre-training keeps no time, so that equal runs have equal checkpoints.
        init_checkpoint: the checkpoint that the run began with, "" for random weights; None if it
            is not known or not kept. A resumed run has the value in its checkpoint.
    """

    is_in_order = True
    start: float | None = None
    init_checkpoint: str | None = None

    def __init__(self, trainer: Trainer, settings: SharedSettings, records,
                 evaluate: Callable[[], dict] | None = None, best: "BestWeights | None" = None,
                 more: Mapping[str, Any] | None = None, evaluated_on: str = "held-out") -> None:
        self._trainer, self._settings, self._evaluated_on = trainer, settings, evaluated_on
        self._records = _divide(records, settings, count_workers(trainer.strategy))
        self._evaluate, self._best, self._chief = evaluate, best, is_chief(trainer.strategy)
        self._description = {**resume.describe(settings), **trainer.learner.describe(),
                             **_describe_schedule(records), **(more or {})}
        self._place = resume.Place(self._records, settings)
        self._reporter: Reporter | None = None
        self._earlier_seconds = 0.0
        self._batch = _growing(trainer, settings, self._records)

    def train(self) -> None:
        """Trains to `settings.last_step`; evaluates on the way if asked to.

        Raises:
            InputError: a record is damaged.
            DivergedError: the loss is not finite; the last checkpoint stays, and is named.
            Stopped: a signal came; its step is saved.
        """
        settings, trainer, folder = self._settings, self._trainer, self._settings.output_dir
        self._check_workers()
        if self._is_over:
            print(f"step {self.step:,} is reached already", flush=True)
            return

        # The batches from the run's place in the records on.
        records = self._records
        if hasattr(records, "from_step"):       # which record comes depends on the step alone
            records = records.from_step(self.step)
        feed = Feed(trainer, records, (
            settings.random_seed, self._place.taken, settings.train_batch_size), batch=self._batch)

        reporter = self._reporter = self._report_to()
        progress = Progress(lambda: self.step, settings.last_step)
        number = 0      # of a signal
        trainer.stop(False)
        reporter.start(self.step)
        with (_naming_last_checkpoint(folder), reporter, Background() as writing,
              FirstSignal(trainer.stop) as signals):
            while not (number or self._is_over):
                # Steps in one call of TensorFlow, until the next report, evaluation or checkpoint.
                with named_errors(self._records), progress:
                    metrics = feed.train(_steps_to_pause(settings, self.step))
                step, reporter.sequences = self.step, feed.batch_size
                reporter.train(step, metrics, progress.first, feed.taken - self._place.taken)
                self._place.taken = feed.taken

                # Before saving: a run that resumes here does not evaluate its step again.
                is_end = step == settings.num_train_steps      # evaluated after `train`, too
                if self._evaluate and (self._best if is_end else _is_time(
                        settings.eval_steps, step)):
                    metrics = self._evaluate()
                    reporter.evaluate(step, metrics)
                    if self._best:
                        self._best.keep(step, metrics)

                # A thread writes the checkpoint while training continues.
                writing.check()
                is_saved = step >= settings.last_step or _is_time(
                    settings.save_checkpoints_steps, step)
                if is_saved:
                    self._save(writing)
                number = _any_signal(self._mean, signals.noted)
                if number and not is_saved:
                    self._save(writing)
                reporter.start(step)
        if number:
            self._mean(0)       # no worker ends before the chief has written
            raise Stopped(f"stopped by a signal at step {self.step:,}, which is saved; run the "
                          "same command again to resume.", number)

    def _check_workers(self):
        if self._mean(self.step) != self.step:
            raise InputError("the workers start at different steps: --output_dir must be one "
                             f"folder that all workers read; here it is "
                             f"{self._settings.output_dir}.")
        number = resume.fingerprint([self._description, self._place.describe()])
        if self._mean(number) != number:
            raise InputError("the workers have different records or settings; give all workers the "
                             "same files and flags.")

    @property
    def _is_over(self):
        return self.step >= self._settings.last_step or (
            self._best is not None and self._best.is_over(self.step))

    @property
    def seconds(self) -> float | None:
        """The time since `start`, plus the time of earlier invocations up to their last checkpoint;
        None where there is no `start`."""
        if self.start is None:
            return None
        return round(self._earlier_seconds + time.monotonic() - self.start, 1)

    @property
    def step(self) -> int:
        return int(self._trainer.step.numpy())

    @property
    def seed(self) -> int:
        return self._settings.random_seed

    def resume(self) -> bool:
        """Resumes from the newest intact checkpoint of the folder; returns False without any."""
        damaged = None
        for path in reversed(resume.checkpoints(self._settings.output_dir)):
            try:
                saved = self.restore(path)
                self.init_checkpoint = _begun_with(saved, self.init_checkpoint)
                print(f"resuming at step {self.step:,}: {path}", flush=True)
                # The run may have begun without early stopping.
                if self._best:
                    self._best.check(self.step, saved["run"])
                return True
            except checksummed.DamagedError as error:
                print(f"warning: {error}", flush=True)
                damaged = error
        if damaged:
            raise InputError(f"no checkpoint in {self._settings.output_dir} is intact: {damaged} "
                             "Remove the checkpoints to begin again at step 0.")
        return False

    def restore(self, path: str) -> dict:
        """Takes over weights, optimizer, step and place in the records from a checkpoint, and
        reports the settings that have changed; returns the checkpoint's JSON values."""
        saved = resume.restore(path, self._trainer)
        self._earlier_seconds = saved["seconds"] or 0.0
        self._records = _divide(self._records, self._settings, saved["order"]["shares"])
        self._place.divide(getattr(self._records, "shares", 1))
        self.is_in_order = self._place.restore(saved)
        if self._trainer.state and not self.is_in_order:
            self._trainer.state.reset()
        _, recipe = resume.compare(self._description, saved["run"], self._settings)
        if recipe:
            print(f"resuming with another {', '.join(recipe)}", flush=True)
        return saved

    def save(self) -> None:
        with Background() as writing:
            self._save(writing)

    def _save(self, writing):
        writing.wait()          # before the copy: there is one at a time
        state = resume.copy_state(self._trainer)
        if count_workers(self._trainer.strategy) > 1:
            resume.check_finite(state)      # the chief would raise alone
        if self._chief:
            send_reports = self._reporter.copied() if self._reporter else lambda: None
            extra = {**self._place.describe(), "run": self._description,
                     "seconds": self.seconds, "init_checkpoint": self.init_checkpoint}

            def write():
                send_reports()      # the curves up to the step come first
                resume.write_checkpoint(self._settings.output_dir, state, extra,
                                        self._settings.keep_checkpoint_max)
            writing.start(write)

    def _mean(self, number):
        with named_errors(self._records):
            return mean_over_workers(self._trainer.strategy, number)

    def _report_to(self):
        return Reporter(self._settings.output_dir if self._chief else None, self.step,
                        self._settings.last_step, self._settings.train_batch_size,
                        self._evaluated_on)

    def report_evaluation(self) -> dict:
        """Evaluates, reports, and writes `eval_results.txt`."""
        metrics = self._evaluate()
        self._reporter = self._reporter or self._report_to()
        self._reporter.evaluate(self.step, metrics)
        if self._chief:
            write_eval_results(self._settings.output_dir, {**metrics, "global_step": self.step})
            self._reporter.publish()
        return metrics

    def save_model(self) -> None:
        """Writes the models that the Learner leaves, and `bert_config.json`."""
        if self._chief:
            with self._trainer.averaged():
                for name, learner in self._trainer.learner.parts().items():
                    save_model(self._settings.output_dir, learner, name)


def _any_signal(mean, noted):
    """The number of a signal that a worker has noted, 0 if none has; `mean` is over all workers."""
    if not mean(noted):
        return 0
    return [number for number in STATUS if mean(noted == number)][-1]


def _is_time(every, step):
    return every and step % every == 0


def _steps_to_pause(settings, step):
    every = settings.iterations_per_loop, settings.save_checkpoints_steps, settings.eval_steps
    return min(settings.last_step - step, *(steps - step % steps for steps in every if steps))


class BestWeights:
    """Keeps the weights of the best evaluation of a run in the run's folder.

    An evaluation that gives all examples one answer (`degenerate` in its metrics) is never better
    than one with several answers. The file of the weights is the whole state: a run that is resumed
    continues with it.

    Args:
        headline: the metric that counts; more is better.
        patience: evaluations without a better one after which training ends.
        eval_steps: steps between evaluations.

    Raises:
        InputError: the file is damaged.
    """

    def __init__(self, trainer: Trainer, folder: str, headline: str, patience: int,
                 eval_steps: int) -> None:
        self._trainer, self._path = trainer, os.path.join(folder, names.BEST_FILE)
        self._headline, self._eval_steps = headline, eval_steps
        self._patience_steps = patience * eval_steps
        try:
            self._best = checksummed.read(self._path)[1] if exists(self._path) else None
        except checksummed.DamagedError as error:
            raise InputError(f"{error} It holds the best weights so far. Remove "
                             f"{folder} to begin again at step 0.") from error

    @property
    def is_known(self) -> bool:
        return self._best is not None

    def _variables(self):
        return {v.path: v for v in self._trainer.learner.weights}

    def _rank(self, metrics):
        return rank(metrics, self._headline, bool(metrics.get("degenerate")))

    def check(self, step: int, begun: Mapping[str, Any]) -> None:
        """Raises InputError if a run that resumes at a step has lost its best weights. `begun` is
        its description until then, where it may have had other evaluations, or none that count."""
        every = begun.get("eval_steps") or self._eval_steps
        if self._best is None and begun.get("early_stopping") and step >= every > 0:
            raise InputError(f"{self._path} is not there, but this run has been evaluated: its "
                             "best weights are lost. Put the file back, or name another "
                             "--output_dir.")

    def keep(self, step: int, metrics: dict) -> None:
        if self._best and not self._rank(metrics) > self._rank(self._best["metrics"]):
            return
        self._best = {"step": step, "metrics": metrics}
        if is_chief(self._trainer.strategy):
            with self._trainer.averaged():
                tensors = {name: resume.read_value(v) for name, v in self._variables().items()}
            checksummed.write(self._path, tensors, self._best)

    def is_over(self, step: int) -> bool:
        """Returns whether training ends here because `patience` evaluations were no better."""
        return self._best is not None and step - self._best["step"] >= self._patience_steps

    def restore(self, step: int, num_train_steps: int) -> tuple[int, dict]:
        """Gives the trainer of a run that ended at a step the best weights, and reports on it;
        returns their step and their metrics."""
        tensors, best = checksummed.read(self._path)
        for name, variable in self._variables().items():
            variable.assign(tensors[name])
        trainer = self._trainer
        for average, variable in zip(trainer.optimizer.averages,
                                     trainer.learner.trainable_variables):
            average.assign(variable.numpy())
        print(f"ended at step {step:,} of {num_train_steps:,}; the weights of step "
              f"{best['step']:,} are the best", flush=True)
        return best["step"], best["metrics"]


class Background:
    """Does one thing at a time in a thread; the end of its block waits for it."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._work: Future | None = None

    def start(self, work: Callable[[], Any]) -> None:
        self._work = self._pool.submit(work)

    def wait(self) -> None:
        """Waits until the work is done; raises its error."""
        work, self._work = self._work, None
        if work:
            work.result()

    def check(self) -> None:
        """Raises the error of the work if it has failed already."""
        if self._work and self._work.done():
            self.wait()

    def __enter__(self) -> "Background":
        return self

    def __exit__(self, kind, *_) -> None:
        self._pool.shutdown()
        try:
            self.wait()
        except Exception as error:
            if not kind:
                raise
            print(f"warning: {error}", flush=True)      # another error ends the block


def _begun_with(saved, asked):
    """Returns the checkpoint that a run began with; prints it if another one is given."""
    begun = saved["init_checkpoint"]
    if asked and begun is not None and not (begun and real_path(begun) == real_path(asked)):
        print(f"--init_checkpoint={asked} is not used: this run began with "
              f"{begun or 'random weights'}", flush=True)
    return begun


def _growing(trainer, settings, records):
    """Returns the `BatchSize` of a run whose batches grow; None for others."""
    if not getattr(settings, "batch_size_warmup_min_size", 0):
        return None
    from bert_tf.training.growing_batches import BatchSize
    return BatchSize(trainer, settings, records)


def _divide(records, settings, shares):
    """Returns the records in `shares` shares, or as they are if they can't be divided, which is an
    InputError where --file_shares asks for it."""
    asked = getattr(settings, "file_shares", 0)
    if hasattr(records, "in_shares"):
        records = records.in_shares(asked or shares)
    if asked and getattr(records, "shares", 1) != asked:
        raise InputError(f"--file_shares={asked}: these records can't be divided into {asked} "
                         "shares of about equal size; leave the flag out, or make more files.")
    return records


def _describe_schedule(records):
    schedule = getattr(records, "schedule", None)
    if schedule:
        return {"task_schedule": dict(zip(schedule.names, map(list, schedule.table)))}
    return {}


@contextlib.contextmanager
def _naming_last_checkpoint(folder):
    """Names the last checkpoint of a folder in errors of a run that diverges."""
    try:
        yield
    except DivergedError as error:
        saved = resume.checkpoints(folder)
        where = f"The last checkpoint is {saved[-1]}." if saved else "No checkpoint was saved yet."
        raise DivergedError(f"{error} {where}", error.step) from error


@contextlib.contextmanager
def sole_writer(folder: str, strategy: tf.distribute.Strategy) -> Iterator[None]:
    """Makes the output folder, and holds its lock: no other run writes to it. Of several workers
    the chief alone takes the lock, as it alone writes."""
    with contextlib.ExitStack() as stack:
        if is_chief(strategy):
            make_folder(folder, "output_dir")
            stack.enter_context(locked(folder, "--output_dir"))
        yield


@contextlib.contextmanager
def named_errors(records) -> Iterator[None]:
    """Names the file and the record in errors of reading, the remedy in errors of other workers."""
    try:
        yield
    except (tf.errors.DataLossError, tf.errors.InvalidArgumentError, tf.errors.NotFoundError):
        if records:
            records.locate_damage()
        raise
    except (tf.errors.UnavailableError, tf.errors.AbortedError) as error:
        raise explain_lost_worker(error) from error     # type: ignore[misc]


def wait_for_workers(strategy: tf.distribute.Strategy) -> None:
    """Waits until all workers are here; InputError if one is gone."""
    with named_errors(None):
        mean_over_workers(strategy, 0)


def make_evaluation(trainer: Trainer, settings: SharedSettings, records) -> Callable[[], dict]:
    """The function that measures a trainer on a `RecordSet`, for a `Run`."""
    def evaluate():
        batches = trainer.distribute(
            lambda worker, workers, replicas: records.evaluation_batches(
                settings.eval_batch_size, settings.max_eval_steps, replicas, worker, workers))
        with named_errors(records):
            return trainer.evaluate(batches)
    return evaluate


def save_model(folder: str, learner: Learner, name: str = "model") -> None:
    """Writes a Learner as `model.keras`, whole or not at all, and its `bert_config.json`.

    Args:
        name: of another model; its files are in a folder of that name.
    """
    if name != "model":
        folder = os.path.join(folder, name)
        make_folder(folder, "output_dir")
    learner.encoder.config.to_json_file(os.path.join(folder, "bert_config.json"))
    path = os.path.join(folder, names.MODEL_FILE)
    with replace_aside(path) as aside:
        learner.save(aside)
    print(f"wrote {path}", flush=True)
