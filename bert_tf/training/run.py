"""A run in a folder: resumes where it stopped, saves, evaluates, reports, ends with a model."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import tensorflow as tf

from bert_tf.checkpoints import checksummed, names
from bert_tf.errors import DivergedError, InputError
from bert_tf.files import locked, make_folder, real_path, replace_aside
from bert_tf.signals import STATUS
from bert_tf.training import resume
from bert_tf.training.background import Background
from bert_tf.training.batches import Feed
from bert_tf.training.cluster import explain_lost_worker
from bert_tf.training.distribution import count_workers, is_chief, mean_over_workers
from bert_tf.training.early_stopping import BestWeights
from bert_tf.training.learners.learner import Learner
from bert_tf.training.progress import Progress
from bert_tf.training.reporting import Reporter, write_eval_results
from bert_tf.training.settings import SharedSettings
from bert_tf.training.stopping import Signals, Stopped
from bert_tf.training.trainer import Trainer


def _write(publish, *checkpoint):
    """Sends the curves up to a checkpoint's step, then the checkpoint."""
    if publish:
        publish()
    resume.write_checkpoint(*checkpoint)


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
                 evaluate: Callable[[], dict] | None = None, best: BestWeights | None = None,
                 more: Mapping[str, Any] | None = None, evaluated_on: str = "held-out") -> None:
        self._trainer, self._settings, self._evaluated_on = trainer, settings, evaluated_on
        wanted = getattr(settings, "file_shares", 0)
        self._records = _in_shares(records, wanted or count_workers(trainer.strategy))
        if wanted and getattr(self._records, "shares", 1) != wanted:
            raise InputError(f"--file_shares={wanted}: these records can't be divided into "
                             f"{wanted} shares of about equal size; leave the flag out, or make "
                             "more files.")
        self._evaluate, self._best, self._chief = evaluate, best, is_chief(trainer.strategy)
        self._description = {**resume.describe(settings, trainer.learner),
                             **_describe_schedule(records), **(more or {})}
        self._place = resume.Place(self._records, settings)
        self._timetable = _Timetable(settings, best)
        self._reporter: Reporter | None = None
        self._earlier_seconds = 0.0

    @property
    def seconds(self) -> float | None:
        """The time since `start`, plus the time of earlier invocations up to their last checkpoint;
        None where there is no `start`."""
        if self.start is None:
            return None
        return round(self._earlier_seconds + time.monotonic() - self.start, 1)

    @property
    def step(self) -> int:
        """Steps taken so far."""
        return int(self._trainer.step.numpy())

    @property
    def seed(self) -> int:
        """The seed of all that the run draws."""
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
        if not getattr(self._settings, "file_shares", 0):   # as the run began
            self._records = _in_shares(self._records, saved["order"]["shares"])
            self._place.divide(getattr(self._records, "shares", 1))
        self.is_in_order = self._place.restore(saved, self.step)
        if not self.is_in_order:
            self._trainer.state.reset()
        _, recipe = resume.compare(self._description, saved["run"], self._settings)
        if recipe:
            print(f"resuming with another {', '.join(recipe)}", flush=True)
        return saved

    def train(self) -> None:
        """Trains to `settings.last_step`; evaluates on the way if asked to.

        Raises:
            InputError: a record is damaged.
            DivergedError: the loss is not finite; the last checkpoint stays, and is named.
        """
        settings, trainer = self._settings, self._trainer
        if self._mean(self.step) != self.step:
            raise InputError("the workers start at different steps: --output_dir must be one "
                             f"folder that all workers read; here it is {settings.output_dir}.")
        number = resume.fingerprint([self._description, self._place.describe(self.step)])
        if self._mean(number) != number:
            raise InputError("the workers have different records or settings; give all workers the "
                             "same files and flags.")
        if self._timetable.is_over(self.step):
            print(f"step {self.step:,} is reached already", flush=True)
            return
        self._reporter = self._report_to()
        records = self._records
        if hasattr(records, "from_step"):       # which record comes depends on the step alone
            records = records.from_step(self.step)
        feed = Feed(trainer, records,
                    (settings.random_seed, self._place.taken(self.step), settings.train_batch_size))
        self._reporter.start(self.step)
        trainer.stop(False)
        progress = Progress(lambda: self.step, settings.last_step)
        with (_naming_kept(settings.output_dir), self._reporter, Background() as saving,
              Signals(trainer.stop) as signals):
            number = 0
            while not (number or self._timetable.is_over(self.step)):
                with named_errors(self._records), progress:
                    metrics = feed.train(self._timetable.steps_to_pause(self.step))
                self._reporter.train(self.step, metrics, progress.first)
                self._pause(saving)
                number = self._any_signal(signals.noted)
            if number and not self._timetable.is_saved(self.step):
                self._save(saving)
        if number:
            self._mean(0)       # no worker ends before the chief has written
            raise Stopped(f"stopped by a signal at step {self.step:,}, which is saved; run the "
                          "same command again to resume.", number)

    def _any_signal(self, noted):
        """The number of a signal that a worker has noted, 0 if none has."""
        if not self._mean(noted):
            return 0
        return [number for number in STATUS if self._mean(noted == number)][-1]

    def _pause(self, saving):
        """Evaluates and saves where it is time to."""
        step = self.step
        # Before saving: a run that resumes from this checkpoint does not evaluate its step again.
        if self._evaluate and self._timetable.is_evaluated(step):
            metrics = self._evaluate()
            self._reporter.evaluate(step, metrics)
            if self._best:
                self._best.keep(step, metrics)
        saving.check()
        if self._timetable.is_saved(step):
            self._save(saving)
        self._reporter.start(step)

    def save(self) -> None:
        """Writes a checkpoint of the step."""
        with Background() as saving:
            self._save(saving)

    def _save(self, saving):
        """Writes a checkpoint of the step while training continues, after the checkpoint before."""
        saving.wait()           # before the copy: there is one at a time
        state = resume.copy_state(self._trainer, self._trainer.state.tensors())
        if count_workers(self._trainer.strategy) > 1:
            resume.check_finite(state)      # the chief would raise alone
        if self._chief:
            saving.start(
                _write, self._reporter and self._reporter.copied(), self._settings.output_dir,
                state, {**self._place.describe(self.step), "run": self._description,
                        "seconds": self.seconds, "init_checkpoint": self.init_checkpoint},
                self._settings.keep_checkpoint_max)

    def _mean(self, number):
        """The mean of a number over all workers."""
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


def _begun_with(saved, given):
    """Returns the checkpoint that a run began with; prints it if another one is given."""
    kept = saved["init_checkpoint"]
    if given and kept is not None and not (kept and real_path(kept) == real_path(given)):
        print(f"--init_checkpoint={given} is not used: this run began with "
              f"{kept or 'random weights'}", flush=True)
    return kept


def _in_shares(records, shares):
    """Returns the records in `shares` shares, or as they are if they can't be divided."""
    return records.in_shares(shares) if hasattr(records, "in_shares") else records


def _describe_schedule(records):
    """Returns the steps of each task, if the records have several, as checkpoints keep them."""
    schedule = getattr(records, "schedule", None)
    return {"task_schedule": dict(zip(schedule.names, map(list, schedule.table)))
            } if schedule else {}


class _Timetable:
    """The steps at which a run evaluates, saves and ends."""

    def __init__(self, settings, best):
        self._settings, self._best = settings, best

    def is_over(self, step):
        """Returns whether this invocation has no further step to take."""
        return step >= self._settings.last_step or (
            self._best is not None and self._best.is_over(step))

    def is_evaluated(self, step):
        """Returns whether training pauses at a step to evaluate; the end is evaluated elsewhere."""
        if step == self._settings.num_train_steps:
            return self._best is not None
        return self._settings.eval_steps and step % self._settings.eval_steps == 0

    def is_saved(self, step):
        """Returns whether a step has a checkpoint."""
        return (step >= self._settings.last_step
                or step % self._settings.save_checkpoints_steps == 0)

    def steps_to_pause(self, step):
        """Returns the number of steps until training pauses."""
        settings = self._settings
        every = settings.iterations_per_loop, settings.save_checkpoints_steps, settings.eval_steps
        return min(settings.last_step - step, *(steps - step % steps for steps in every if steps))


@contextlib.contextmanager
def _naming_kept(folder):
    """Names the last checkpoint of a folder in errors of a run that diverges."""
    try:
        yield
    except DivergedError as error:
        kept = resume.checkpoints(folder)
        where = f"The last checkpoint is {kept[-1]}." if kept else "No checkpoint was saved yet."
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
