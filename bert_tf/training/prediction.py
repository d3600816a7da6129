"""What a model answers to all examples of a set, in batches of like length."""

import time

import numpy as np

from bert_tf.data import bucketing
from bert_tf.training.reporting import duration

_REPORT_SECONDS = 10
# Logits of positions beyond a batch's length: so low that no answer begins or ends there.
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
    data = iter(trainer.distribute(lambda worker, workers, replicas: examples.prediction_batches(
        batches, replicas // workers)))
    found, totals = {}, 0.0
    start = reported = time.monotonic()
    for number, (answers, sums) in enumerate(trainer.predict(data, len(batches), measures)):
        rows = batches[number]
        for name, values in answers[objective.name].items():
            _put(found, name, rows, values, objective.source == "sequence_output", examples)
        totals = totals + sums
        now = time.monotonic()
        if now - reported > _REPORT_SECONDS:
            reported, done = now, number + 1
            left = (now - start) / done * (len(batches) - done)
            print(f"predicting: {done * batch_size:,} of {examples.size:,} examples, "
                  f"about {duration(left)} left", flush=True)
    return found, trainer.means(totals) if measures else {}


def _put(found, name, rows, values, along, examples):
    """Puts the values of a batch at their place among those of all examples."""
    is_real = rows >= 0
    if name not in found:
        shape = (examples.max_seq_length, *values.shape[2:]) if along else values.shape[1:]
        fill = _NO_LOGIT if "logits" in name else 0.0
        found[name] = np.full((examples.size, *shape), fill, values.dtype)
    if along:
        found[name][rows[is_real], :values.shape[1]] = values[is_real]
    else:
        found[name][rows[is_real]] = values[is_real]
