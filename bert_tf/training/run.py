"""A run in a folder: goes on where it stopped, saves, evaluates, reports, ends with a model."""

import contextlib
import os
import signal

import tensorflow as tf

from bert_tf.checkpoints import keras_file, sealed
from bert_tf.errors import InputError
from bert_tf.files import replace_aside
from bert_tf.training import resume
from bert_tf.training.distribution import is_chief, mean_over_workers
from bert_tf.training.feed import Feed
from bert_tf.training.reporting import Reporter, write_eval_results


class Run:
    """Training of one `Trainer` on one set of records, under `TrainSettings`.

    The state on disk is the checkpoints in `settings.output_dir`; with them is kept where in the
    records the run is. Records other than before are begun from their start.

    Args:
        trainer: `Trainer`, freshly made.
        settings: `TrainSettings`.
        records: `RecordSet` or `ExampleSet` to train on, or None.
        evaluate: function that returns a dict of metrics, the total "loss" first; None where there
            is nothing to evaluate on.
        best: `BestWeights`, which are then kept of every evaluation, the last step's too, and may
            end training; or None.
    """

    def __init__(self, trainer, settings, records, evaluate=None, best=None):
        self._trainer, self._settings, self._records = trainer, settings, records
        self._evaluate, self._best = evaluate, best
        self._chief = is_chief(trainer.strategy)
        self._order = {"records": records and records.identity(), "seed": settings.random_seed}
        # So many records had been taken when so many steps had been.
        self._taken, self._taken_at = 0, 0
        self._signal = None
        self._reporter = None

    @property
    def step(self):
        """Steps taken so far."""
        return int(self._trainer.step.numpy())

    def resume(self):
        """Goes on from the newest intact checkpoint of the folder; False if there is none.

        Raises:
            InputError: all checkpoints are damaged, or they are of another model.
        """
        damaged = None
        for path in reversed(resume.checkpoints(self._settings.output_dir)):
            try:
                self.restore(path)
                print(f"going on from step {self.step:,}: {path}", flush=True)
                return True
            except sealed.DamagedError as error:
                print(f"warning: {error}", flush=True)
                damaged = error
        if damaged:
            raise InputError(f"no checkpoint in {self._settings.output_dir} is intact: {damaged}")
        return False

    def restore(self, path):
        """Takes over weights, optimizer, step and place in the records from a checkpoint."""
        saved = resume.restore(path, self._trainer)
        # Other records begin at their start.
        self._taken = saved["taken"] if saved["order"] == self._order else 0
        self._taken_at = self.step

    def _records_taken(self):
        return self._taken + (self.step - self._taken_at) * self._settings.train_batch_size

    def train(self):
        """Trains to `settings.last_step`; evaluates on the way if asked to.

        Raises:
            InputError: a record is damaged, or the loss is not finite; the last checkpoint stands.
        """
        settings, trainer = self._settings, self._trainer
        if self._mean(self.step) != self.step:
            raise InputError("the workers begin at different steps: --output_dir must be one "
                             f"folder that all of them read; here it is {settings.output_dir}.")
        if self._is_over():
            print(f"step {self.step:,} is reached already", flush=True)
            return
        self._reporter = Reporter(settings.output_dir if self._chief else None, self.step,
                                  settings.last_step, settings.train_batch_size)
        feed = Feed(trainer, self._records,
                    (settings.random_seed, self._records_taken(), settings.train_batch_size))
        self._reporter.start(self.step)
        with self._signals():
            stopped = False
            while not (stopped or self._is_over()):
                metrics = self._guard(lambda: feed.train(self._steps_to_pause()))
                self._reporter.train(self.step, metrics)
                self._pause()
                stopped = self._mean(self._signal is not None) > 0
        if stopped:
            self._save()
            raise InputError(f"stopped by a signal at step {self.step:,}, which is saved; the same "
                             "command goes on from there.")

    def _steps_to_pause(self):
        """Steps until something is to be done besides training."""
        settings = self._settings
        steps = [settings.iterations_per_loop, settings.last_step - self.step]
        for every in (settings.save_checkpoints_steps, settings.eval_steps):
            if every:
                steps.append(every - self.step % every)
        return min(steps)

    def _is_over(self):
        """Whether this invocation has no step to take."""
        return self.step >= self._settings.last_step or (
            self._best is not None and self._best.is_over(self.step))

    def _pause(self):
        """Evaluates and saves where it is time to."""
        settings, step = self._settings, self.step
        # Evaluates first: who goes on from this checkpoint does not evaluate its step again.
        if self._evaluate and self._is_evaluated(step):
            metrics = self._evaluate()
            self._reporter.evaluate(step, metrics)
            if self._best:
                self._best.keep(step, metrics)
        if step >= settings.last_step or step % settings.save_checkpoints_steps == 0:
            self._save()
        self._reporter.start(step)

    def _is_evaluated(self, step):
        """Whether training pauses at a step to evaluate; at the end others do."""
        if step == self._settings.num_train_steps:
            return self._best is not None
        return self._settings.eval_steps and step % self._settings.eval_steps == 0

    def _save(self):
        if self._chief:
            resume.save_checkpoint(
                self._settings.output_dir, self._trainer,
                {"order": self._order, "taken": self._records_taken()},
                self._settings.keep_checkpoint_max)

    def _guard(self, work):
        with named_errors(self._records):
            return work()

    def _mean(self, number):
        """Of a number over all workers."""
        return self._guard(lambda: mean_over_workers(self._trainer.strategy, number))

    def _signals(self):
        """Within this, a first SIGINT or SIGTERM ends training at the next pause."""
        return _Signals(self._note_signal)

    def _note_signal(self, number, _):
        if self._signal:
            raise KeyboardInterrupt
        self._signal = number
        print("stopping after these steps; the state will be saved (again: stop at once)",
              flush=True)

    def report_evaluation(self):
        """Evaluates, reports, and writes `eval_results.txt`."""
        metrics = self._evaluate()
        if self._reporter is None:
            self._reporter = Reporter(self._settings.output_dir if self._chief else None, self.step,
                                      self._settings.last_step, self._settings.train_batch_size)
        self._reporter.evaluate(self.step, metrics)
        if self._chief:
            write_eval_results(self._settings.output_dir, {**metrics, "global_step": self.step})
        return metrics

    def save_model(self):
        """Writes the Learner as `model.keras` and its `bert_config.json`."""
        if self._chief:
            save_model(self._settings.output_dir, self._trainer.learner)


@contextlib.contextmanager
def named_errors(records):
    """Within this, an error in reading `records`, if there are any, is told by file and record, and
    one of other workers by what to do."""
    try:
        yield
    except (tf.errors.DataLossError, tf.errors.InvalidArgumentError, tf.errors.NotFoundError):
        if records:
            records.locate_damage()
        raise
    except (tf.errors.UnavailableError, tf.errors.AbortedError) as error:
        raise InputError("another worker is gone; start all of them again, and they go on from "
                         "the last checkpoint.") from error


def wait_for_workers(strategy):
    """Waits until all workers are here.

    Raises:
        InputError: one is gone.
    """
    with named_errors(None):
        mean_over_workers(strategy, 0)


def make_evaluation(trainer, settings, records):
    """The function that measures a trainer on a `RecordSet`, for a `Run`."""
    def evaluate():
        batches = trainer.distribute(
            lambda worker, workers, replicas: records.evaluation_batches(
                settings.eval_batch_size, settings.max_eval_steps, replicas, worker, workers))
        with named_errors(records):
            return trainer.evaluate(batches)
    return evaluate


def save_model(folder, learner):
    """Writes a Learner as `model.keras`, whole or not at all, and its `bert_config.json`."""
    learner.encoder.config.to_json_file(os.path.join(folder, "bert_config.json"))
    path = os.path.join(folder, keras_file.NAME)
    with replace_aside(path, ".keras") as aside:
        learner.save(aside)
    print(f"wrote {path}", flush=True)


class _Signals:
    """Sends SIGINT and SIGTERM to a handler within a block."""

    def __init__(self, handler):
        self._handler, self._before = handler, {}

    def __enter__(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            try:
                self._before[number] = signal.signal(number, self._handler)
            except ValueError:      # not in the main thread: signals go elsewhere
                break

    def __exit__(self, *_):
        for number, handler in self._before.items():
            signal.signal(number, handler)
