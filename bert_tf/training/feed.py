"""The batches of a run, as iterators for `Trainer.train`.

A program takes batches of different lengths from one iterator, which compiles nothing for each. A
TPU must know every shape beforehand: there is one iterator for each length then, and the length of
every coming batch is known.
"""

import itertools

from bert_tf.training.distribution import needs_static_shapes


class Feed:
    """The batches of one run from some record on.

    Args:
        trainer: `Trainer`.
        records: `RecordSet` or `ExampleSet`.
        position: the first arguments of `training_batches`: seed, records that were taken before,
            global batch size.
        has_static_shapes: whether shapes must be known beforehand.
    """

    def __init__(self, trainer, records, position, has_static_shapes=None):
        self._trainer, self._records, self._position = trainer, records, position
        if has_static_shapes is None:
            has_static_shapes = needs_static_shapes(trainer.strategy)
        self._iterators, self._lengths = {}, itertools.repeat(None)
        if has_static_shapes and hasattr(records, "batch_lengths"):
            self._lengths = records.batch_lengths(*position)

    def train(self, count):
        """Takes `count` steps; returns what `Trainer.train` does, averaged over them."""
        totals = {}
        for length, group in itertools.groupby(itertools.islice(self._lengths, count)):
            steps = len(list(group))
            for name, value in self._trainer.train(self._iterator(length), steps).items():
                totals[name] = totals.get(name, 0.0) + value * steps / count
        return totals

    def _iterator(self, length):
        if length not in self._iterators:
            only = {} if length is None else {"length": length}
            self._iterators[length] = iter(self._trainer.distribute(
                lambda worker, workers, replicas: self._records.training_batches(
                    *self._position, replicas, worker, workers, **only)))
        return self._iterators[length]
