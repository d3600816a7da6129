"""Where the numbers of a regression lie, and how a head that says numbers around 0 learns them."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from bert_tf.errors import warn

# The labels of STS-B, from 0 to 5, are learned as they are in BERT's paper and in all that follow.
_REACH = 5.0
_LEAST_DEVIATION = 0.1
_FEW = 5            # labels that do not show where others lie
_MOST_APART = 2     # scales between the means of two trainings
_FAR_OUT = 10       # interquartile ranges from the median


def mean_and_deviation(labels: Iterable[float]) -> tuple[float, float] | None:
    """The mean and the standard deviation of labels that a new head does not reach; else None.

    A new head says numbers around 0, and training moves them by a few units. It reaches labels from
    -5 to 5 whose deviation is at least 0.1. A label more than 10 interquartile ranges from the
    median counts in neither, so that a few wrong numbers do not decide about all others. The
    deviation of equal labels is given as 1.
    """
    values = np.fromiter(labels, np.float64)
    values = values[~_is_far_out(values)]
    mean, deviation = float(values.mean()), float(values.std())
    if np.abs(values).max() <= _REACH and deviation >= _LEAST_DEVIATION:
        return None
    # The deviation of equal numbers may be their rounding.
    is_constant = deviation <= 1e-7 * abs(mean)
    return mean, 1.0 if is_constant else deviation


def _is_far_out(values):
    """Whether each of some labels is far from most of them."""
    low, median, high = np.percentile(values, [25, 50, 75])
    return (high > low) & (np.abs(values - median) > _FAR_OUT * (high - low))


def is_reached(options: Mapping[str, Any], labels: Iterable[float]) -> bool:
    """Returns whether a head with `label_mean` and `label_scale` says numbers like these labels: at
    most 5 scales from the mean. Five labels or more must also have a deviation of at least 0.1
    scales and, where training began at a mean, a mean at most 2 scales from it.
    """
    mean, scale = options.get("label_mean") or 0, options.get("label_scale") or 1
    values = (np.fromiter(labels, np.float64) - mean) / scale
    values = values[~_is_far_out(values)]
    if np.abs(values).max() > _REACH:
        return False
    is_near = not mean or abs(values.mean()) <= _MOST_APART
    return len(values) < _FEW or bool(is_near and values.std() >= _LEAST_DEVIATION)


def with_range(options: Mapping[str, Any], labels: Iterable[float]) -> dict[str, Any]:
    """Returns the options of a regression with `label_mean` and `label_scale` for labels that a new
    head does not reach, unless they are given; says so. Warns of labels that are far from most."""
    labels = list(labels)
    values = np.array(labels, np.float64)
    far = values[_is_far_out(values)]
    if far.size:
        warn(f"{far.size:,} of {len(labels):,} labels are more than {_FAR_OUT} interquartile "
             f"ranges from the median, such as {max(far, key=abs):.6g}; correct or remove wrong "
             "ones, since a few such errors outweigh all others.")
    fitted = {name: value for name, value in zip(("label_mean", "label_scale"),
                                                 mean_and_deviation(labels) or ())
              if options.get(name) is None}
    if fitted:
        flags = ", ".join(f"--{name}={value:.6g}" for name, value in fitted.items())
        print(f"labels from {min(labels):.6g} to {max(labels):.6g} are far from what a new head "
              f"says, so that it starts at their mean and deviation: {flags}", flush=True)
    return {**options, **fitted}
