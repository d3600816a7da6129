"""What a model answers to all examples of a set, in batches of like length."""

import functools
import itertools
import time

import numpy as np

from bert_tf.data import bucketing
from bert_tf.training.distribution import needs_static_shapes
from bert_tf.training.reporting import duration

_REPORT_SECONDS = 10
# Logits of padding: so low that no answer begins or ends there.
_NO_LOGIT = -1e9


def predict(trainer, examples, batch_size, measures=True):
    """Shapes: N examples, S sequence.

    Args:
        trainer: `Trainer` with one objective.
        examples: `ExampleSet`.
        batch_size: examples a step, over all devices.
        measures: whether to measure the loss; the examples must have labels.

    Returns:
        dict of what the objective answers, each an array [N, ...] in the order of the examples and
        as long as S where it is about positions; and a dict of the loss and the like.
    """
    (objective,) = trainer.learner.objectives
    batches = bucketing.sorted_batches(examples.lengths, batch_size)
    last = batches[-1]
    batches[-1] = np.append(last, np.full(batch_size - len(last), ~last[0]))
    length = examples.max_seq_length if objective.source == "sequence_output" else None
    found, totals = {}, 0.0
    start = reported = time.monotonic()
    predicted = _in_batches(trainer, examples, batches, measures)
    for number, (rows, (answers, sums)) in enumerate(zip(batches, predicted)):
        put(found, rows, answers[objective.name], examples.lengths, length)
        totals = totals + sums
        now = time.monotonic()
        if now - reported > _REPORT_SECONDS:
            reported, done = now, number + 1
            left = (now - start) / done * (len(batches) - done)
            print(f"predicting: {min(done * batch_size, examples.size):,} of {examples.size:,} "
                  f"examples, about {duration(left)} left", flush=True)
    return found, trainer.means(totals) if measures else {}


def _in_batches(trainer, examples, batches, measures):
    """Yields what `Trainer.predict` does for each batch."""
    def length_of(rows):
        return examples.batch_length(rows) if needs_static_shapes(trainer.strategy) else None

    for length, group in itertools.groupby(batches, length_of):
        group = list(group)
        data = iter(trainer.distribute(functools.partial(_deal, examples, group, length)))
        yield from trainer.predict(data, len(group), measures)


def _deal(examples, batches, length, worker, workers, replicas):
    """All batches, to each worker."""
    del worker
    return examples.prediction_batches(batches, replicas // workers, length)


def put(found, rows, answers, lengths, max_seq_length=None):
    """Puts what a model answers to a batch at its place among the answers to all examples.

    Args:
        found: dict of arrays [N, ...] to fill, which begins empty.
        rows: int [B], the places of the batch; ~row fills a batch up and is left out.
        answers: dict of arrays [B, ...]; of answers about positions [B, L, ...].
        lengths: int [N], the tokens of each example.
        max_seq_length: S, where answers are about positions: they become [N, S, ...], and say
            nothing of padding, so that they do not depend on how much there is of it.
    """
    is_real = rows >= 0
    rows = rows[is_real]
    for name, values in answers.items():
        values = values[is_real]
        if max_seq_length:
            values = _padded(values, lengths[rows], max_seq_length,
                             _NO_LOGIT if "logits" in name else 0.0)
        if name not in found:
            found[name] = np.empty((len(lengths), *values.shape[1:]), values.dtype)
        found[name][rows] = values


def _padded(values, lengths, max_seq_length, fill):
    """[B, L, ...] as [B, S, ...], with `fill` beyond each length."""
    padded = np.full((len(values), max_seq_length, *values.shape[2:]), fill, values.dtype)
    is_token = np.arange(values.shape[1]) < lengths[:, None]
    padded[:, :values.shape[1]][is_token] = values[is_token]
    return padded
