"""Divergences between two tensors of logits, by name.

Each function takes float32 logits [..., C], of the model that learns and of another, and returns
addends [..., C] of the divergence. `ns_kl` and the names below it are the criteria of
namisan/mt-dnn, mt_dnn/loss.py, with the gradients that they have there.
"""

import math
from collections.abc import Callable

from keras import ops

from bert_tf.layers.base import Tensor

_EPSILON = 1e-6


def kl(logits: Tensor, other: Tensor) -> Tensor:
    """The divergence of the distribution from the other one."""
    log_p, log_q = ops.log_softmax(other), ops.log_softmax(logits)
    return ops.exp(log_p) * (log_p - log_q)


def cross_entropy(logits: Tensor, other: Tensor) -> Tensor:
    """The cross-entropy of both distributions."""
    return -ops.softmax(other) * ops.log_softmax(logits)


def mse(logits: Tensor, other: Tensor) -> Tensor:
    return ops.square(logits - other)


def log_mse(logits: Tensor, other: Tensor) -> Tensor:
    """IntelLabs/nlp-architect's default, a slip: logarithms are compared with probabilities."""
    return ops.square(ops.log_softmax(logits) - ops.softmax(other))


def _log_odds(p):
    return -ops.log(ops.stop_gradient(1 / (p + _EPSILON) - 1 + _EPSILON))


def ns_kl(logits: Tensor, other: Tensor) -> Tensor:
    """NsKlCriterion: twice the difference of the log odds, which are constants of the gradient,
    weighted by the probabilities; the other logits are constants too."""
    p, q = ops.softmax(logits), ops.softmax(ops.stop_gradient(other))
    return 2 * p * (_log_odds(p) - _log_odds(q))


def _both_ways(one_way):
    def function(logits, other):
        constants = ops.stop_gradient(logits), ops.stop_gradient(other)
        return one_way(logits, constants[1]) + one_way(other, constants[0])
    return function


def js(logits: Tensor, other: Tensor) -> Tensor:
    """JSCriterion: the sum, not the mean, of both divergences from the mean distribution, which is
    a constant of the gradient."""
    log_p, log_q = ops.log_softmax(logits), ops.log_softmax(other)
    log_mean = ops.stop_gradient(ops.logaddexp(log_p, log_q)) - math.log(2)
    return ops.exp(log_mean) * (2 * log_mean - log_p - log_q)


def hl(logits: Tensor, other: Tensor) -> Tensor:
    """The squared difference of the roots of probabilities. HLCriterion has this value, but no
    gradient, so that nothing learns from it."""
    return ops.square(ops.exp(ops.log_softmax(logits) / 2) - ops.exp(ops.log_softmax(other) / 2))


DIVERGENCES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "kl": kl, "cross_entropy": cross_entropy, "mse": mse, "log_mse": log_mse, "ns_kl": ns_kl,
    "sym_kl": _both_ways(kl), "ns_sym_kl": _both_ways(ns_kl), "js": js, "hl": hl}
# Divergences whose criterion in MT-DNN is the mean over classes; the others are sums. For spans,
# whose classes are the places of a batch, all are sums, since padding would change a mean.
OF_MEAN = ("mse", "hl")
# Divergences that do not depend on the temperature.
OF_LOGITS = ("mse",)
# Divergences that are large where both probabilities are 0.
OF_EACH = ("mse", "log_mse")
# Divergences that are infinite where either probability alone is 0.
BOTH_WAYS = ("sym_kl", "js")


def binary(logits: Tensor) -> Tensor:
    """Returns the logits of no and yes [..., 2] of decisions with the logits [...]."""
    return ops.stack([ops.zeros_like(logits), logits], axis=-1)
