"""The best weights so far, and whether to wait for better ones."""

import os

import numpy as np

from bert_tf.checkpoints import sealed
from bert_tf.training.distribution import is_chief


class BestWeights:
    """Keeps the weights of the best evaluation of a run, in its folder; for `Run`.

    Its state is that file: a run that is started again goes on with it.

    Args:
        trainer: `Trainer`.
        folder: of the run.
        headline: the metric that counts; more is better.
        patience: evaluations without a better one after which training ends.
        eval_steps: steps between evaluations.
    """

    def __init__(self, trainer, folder, headline, patience, eval_steps):
        self._trainer, self._path = trainer, os.path.join(folder, "best.safetensors")
        self._headline, self._patience_steps = headline, patience * eval_steps
        self._best = sealed.read(self._path)[1] if os.path.exists(self._path) else None

    def _variables(self):
        return {v.path: v for v in self._trainer.learner.weights}

    def keep(self, step, metrics):
        """Keeps the weights if they are the best."""
        if self._best and not metrics[self._headline] > self._best["metrics"][self._headline]:
            return
        self._best = {"step": step, "metrics": metrics}
        if is_chief(self._trainer.strategy):
            tensors = {name: np.array(v.numpy()) for name, v in self._variables().items()}
            sealed.write(self._path, tensors, self._best)

    def is_over(self, step):
        """Whether training is to end at this step: the best ones are too long ago."""
        return self._best is not None and step - self._best["step"] >= self._patience_steps

    def restore(self):
        """Gives the trainer the best weights; returns their step and their metrics."""
        tensors, best = sealed.read(self._path)
        for name, variable in self._variables().items():
            variable.assign(tensors[name])
        return best["step"], best["metrics"]

    def remove(self):
        """Removes the file."""
        if os.path.exists(self._path):
            os.remove(self._path)
