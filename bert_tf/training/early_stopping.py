"""The best weights so far, and whether to wait for better ones."""

import os
from collections.abc import Mapping
from typing import Any

from bert_tf.checkpoints import checksummed, names
from bert_tf.errors import InputError
from bert_tf.files import exists
from bert_tf.training.distribution import is_chief
from bert_tf.training.resume import read_value
from bert_tf.training.trainer import Trainer
from bert_tf.training.trials import rank


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
        """Whether there was an evaluation."""
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
        """Keeps the weights if they are the best."""
        if self._best and not self._rank(metrics) > self._rank(self._best["metrics"]):
            return
        self._best = {"step": step, "metrics": metrics}
        if is_chief(self._trainer.strategy):
            with self._trainer.averaged():
                tensors = {name: read_value(v) for name, v in self._variables().items()}
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
