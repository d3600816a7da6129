"""Batches of a training run, and of a prediction over all examples of a set.

On a TPU, which must know every shape beforehand, there is one iterator for each length of batches.
Elsewhere one iterator gives batches of all lengths.

Shapes: N examples, B batch, S sequence, L the length of a batch (at most S).
"""

from __future__ import annotations

import functools
import itertools
import sys
import typing
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from bert_tf.data.batches import bucketing
from bert_tf.training.distribution import needs_static_shapes
from bert_tf.training.reporting import TimeLeft

if typing.TYPE_CHECKING:        # these need TensorFlow, which a Predictor does not
    from bert_tf.training.growing_batches import BatchSize
    from bert_tf.training.trainer import Trainer

# Logits of padding: so low that no answer begins or ends there.
_NO_LOGIT = -1e9


class Feed:
    """The batches of one run from some record on.

    Attributes:
        taken: records that were taken, also before.
        batch_size: records of the last step, over all devices.

    Args:
        records: has `training_batches`, as `RecordSet` and `ExampleSet`.
        position: the first arguments of `training_batches`: seed, records that were taken before,
            global batch size.
        batch: a `BatchSize`; None: all batches have the size in `position`.
    """

    def __init__(self, trainer: Trainer, records, position: tuple[int, int, int],
                 batch: BatchSize | None = None) -> None:
        self._trainer, self._records = trainer, records
        self._batch = batch or (lambda: (self.batch_size, sys.maxsize))
        self._has_static_shapes = needs_static_shapes(trainer.strategy)
        self._open(*position)

    def _open(self, *position):
        self._seed, self.taken, self.batch_size = position
        self._batches = functools.partial(self._records.training_batches, *position)
        if not self._has_static_shapes:     # a TPU's dataset is made on the TPU's own machine
            self._batches = functools.cache(self._batches)
        self._iterators, self._lengths = {}, itertools.repeat(None)
        if self._has_static_shapes and hasattr(self._records, "batch_lengths"):
            self._lengths = self._records.batch_lengths(*position)

    def train(self, count: int) -> dict[str, float]:
        """Takes `count` steps, or fewer after `Trainer.stop`; returns what `Trainer.train` does,
        averaged over them."""
        parts, is_stopped = [], False
        while count and not is_stopped:
            batch_size, most = self._batch()
            if batch_size != self.batch_size:
                self._open(self._seed, self.taken, batch_size)
            most = min(count, most)
            for length, group in itertools.groupby(itertools.islice(self._lengths, most)):
                steps, before = len(list(group)), self._trainer.step.numpy()
                metrics = self._trainer.train(self._iterator(length), steps)
                taken = int(self._trainer.step.numpy() - before)
                self.taken += taken * batch_size
                parts.append((taken, metrics))
                is_stopped = taken < steps
                if is_stopped:
                    break
            count -= most
        count, totals = sum(taken for taken, _ in parts), {}
        for taken, metrics in parts:
            for name, value in metrics.items():
                totals[name] = totals.get(name, 0.0) + value * taken / count
        return totals

    def _iterator(self, length):
        if length not in self._iterators:
            only = {} if length is None else {"length": length}
            self._iterators[length] = iter(self._trainer.distribute(
                lambda worker, workers, replicas: self._batches(replicas, worker, workers, **only)))
        return self._iterators[length]


def predict(trainer: Trainer, examples, batch_size: int,
            measures: bool = True) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """Returns a model's answers to all examples of a set, and the loss and the accuracy.

    The answers are arrays by the objective's names, [N, ...] in the order of the examples, or
    [N, S, ...] where they are about positions.

    Args:
        trainer: has one objective, further ones being auxiliary; or several tasks.
        examples: `ExampleSet`, or `TaskExamples` of one of the tasks.
        batch_size: examples a step, over all devices.
        measures: whether to measure the loss; the examples must have labels.
    """
    objectives = {objective.name: objective for objective in trainer.learner.objectives}
    objective = objectives.get(getattr(examples, "task", ""), trainer.learner.objectives[0])
    batches = bucketing.sorted_batches(examples.lengths, batch_size)
    last = batches[-1]
    batches[-1] = np.append(last, np.full(batch_size - len(last), ~last[0]))
    arrays, totals = {}, 0.0
    progress = TimeLeft("examples predicted", len(examples.lengths))
    predicted = _in_batches(trainer, examples, batches, measures)
    with trainer.averaged():
        for rows, (answers, sums) in zip(batches, predicted):
            put(arrays, rows, answers[objective.name], examples.lengths, examples.max_seq_length,
                objective.positional)
            totals = totals + sums
            progress(batch_size)
    return arrays, trainer.means(totals) if measures else {}


def _in_batches(trainer, examples, batches, measures):
    def length_of(rows):
        return examples.batch_length(rows) if needs_static_shapes(trainer.strategy) else None

    for length, group in itertools.groupby(batches, length_of):
        group = list(group)
        # All batches, to each worker.
        data = trainer.distribute(
            lambda _, workers, replicas, batches=group, length=length:
                examples.prediction_batches(batches, replicas // workers, length))
        yield from trainer.predict(iter(data), len(group), measures)


def answer_rows(forward: Callable[..., Mapping], features: Mapping[str, np.ndarray],
                reads: Sequence[str], max_seq_length: int, batch_size: int,
                positional: Sequence[str] = (), has_choices: bool = False,
                fixed: Sequence[str] = (), num_heads: int = 0) -> dict[str, np.ndarray]:
    """Returns a model's answers to rows of features, [N, ...] by name, in batches of similar
    length, each padded to its longest row.

    Args:
        forward: function of the features `reads`, int32 [B, L] or [B, C, L], in their order;
            returns a dict of tensors [B, ...].
        features: arrays [N, S], or with choices [N, C * S].
        reads: names of the features that `forward` takes.
        max_seq_length: S.
        batch_size: most rows that are given at a time.
        positional: names of the answers about positions; see `put`.
        has_choices: whether rows have C sequences each.
        fixed: names of features that are not sequences, which `forward` takes as they are.
        num_heads: as for `data.sorted_batches`.
    """
    inputs = {name: features[name].astype("int32") for name in reads}
    sequences = [name for name in reads if name not in fixed]
    if has_choices:
        for name in sequences:
            inputs[name] = inputs[name].reshape(len(inputs[name]), -1, max_seq_length)
    # A row has a mask for each of its choices.
    mask = features["input_mask"].astype("int32")
    mask = mask.reshape(len(mask), mask.shape[1] // max_seq_length, max_seq_length)
    lengths, is_left = mask.sum(-1).max(1), bucketing.pads_left(mask)
    arrays: dict[str, np.ndarray] = {}
    for rows in bucketing.sorted_batches(lengths, batch_size, num_heads * mask.shape[1]):
        length = max(int(lengths[rows].max()), 1)
        part = slice(max_seq_length - length, None) if is_left else slice(length)
        batch = {name: inputs[name][rows] for name in reads}
        batch |= {name: batch[name][..., part] for name in sequences}
        values = forward(*batch.values())
        put(arrays, rows, {name: value.numpy() for name, value in values.items()}, lengths,
            max_seq_length, positional)
    return arrays


def put(arrays: dict[str, np.ndarray], rows: np.ndarray, answers: dict[str, np.ndarray],
        lengths: np.ndarray, max_seq_length: int, positional: Sequence[str] = ()) -> None:
    """Puts the answers to a batch in their place among the answers to all examples.

    Args:
        arrays: arrays [N, ...] to fill; empty before the first batch.
        rows: int [B], the places of the batch; ~row fills a batch up and is left out.
        answers: arrays [B, ...]; [B, L, ...] where they are about positions.
        lengths: int [N], the tokens of each example.
        positional: names of the answers about positions: they become [N, S, ...], and answers to
            padding become a constant, so that they do not depend on the amount of padding.
    """
    is_real = rows >= 0
    rows = rows[is_real]
    for name, values in answers.items():
        values = values[is_real]
        if name in positional:
            fill = _NO_LOGIT if "logits" in name else 0.0
            padded = np.full((len(values), max_seq_length, *values.shape[2:]), fill, values.dtype)
            is_token = np.arange(values.shape[1]) < lengths[rows][:, None]
            padded[:, :values.shape[1]][is_token] = values[is_token]
            values = padded
        if name not in arrays:
            arrays[name] = np.empty((len(lengths), *values.shape[1:]), values.dtype)
        arrays[name][rows] = values
