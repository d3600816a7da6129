"""The best weights so far, and whether to wait for better ones."""

import os

import numpy as np

from bert_tf.checkpoints import sealed


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
        self._headline, self._patience, self._eval_steps = headline, patience, eval_steps

    def _variables(self):
        return {v.path: v for v in self._trainer.learner.weights}

    def _read(self):
        """Weights, step and value, or None."""
        if not os.path.exists(self._path):
            return None
        tensors, extra = sealed.read(self._path)
        return tensors, extra["step"], extra["value"]

    def __call__(self, step, metrics):
        """Keeps the weights if they are the best; returns whether training is to end."""
        best = self._read()
        value = metrics[self._headline]
        # An evaluation of the same step or a later one is from before a kill: it is made again.
        if best is None or value > best[2] or best[1] >= step:
            tensors = {name: np.array(v.numpy()) for name, v in self._variables().items()}
            sealed.write(self._path, tensors, {"step": step, "value": value})
            return False
        return step - best[1] >= self._patience * self._eval_steps

    def restore(self):
        """Gives the trainer the best weights; returns the step that they are of."""
        tensors, step, _ = self._read()
        for name, variable in self._variables().items():
            variable.assign(tensors[name])
        return step

    def remove(self):
        """Removes the file."""
        if os.path.exists(self._path):
            os.remove(self._path)
