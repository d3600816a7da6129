"""Muon for the kernels inside the layers, AdamW for all other weights."""

import math
import re
from collections.abc import Sequence
from typing import Any

from keras import ops

from bert_tf.layers.base import Tensor, register
from bert_tf.training.optimizers.adam import AdamWeightDecay
from bert_tf.training.optimizers.table import MATRICES

_LEAST = 1e-7
# The factors of x, x^3 and x^5 in each step of an iteration: five equal ones, by Keller Jordan; and
# three that bring singular values of 1% of the norm and more as near to 1 as three can, each step
# those that the one before leaves (arXiv:2505.16932).
FIVE_STEPS = ((3.4445, -4.7750, 2.0315),) * 5
THREE_STEPS = ((8.0934, -23.6204, 17.4462), (3.6366, -2.7219, 0.5365), (2.6613, -1.9772, 0.4526))


def _polynomial(square, factors):
    first, third, fifth = factors
    return (first * ops.eye(square.shape[0], dtype=square.dtype) + third * square
            + fifth * ops.matmul(square, square))


def orthogonalised(x: Tensor, steps: Sequence[Sequence[float]] = THREE_STEPS) -> Tensor:
    """Returns nearly U V^T for a matrix U S V^T, float [rows, columns], by a Newton-Schulz
    iteration (kellerjordan.github.io/posts/muon).

    By `THREE_STEPS` the new singular values are between 0.72 and 1.27 if the old ones are above 1%
    of the norm; smaller ones grow to 79 times their share of it, or less. By `FIVE_STEPS` they are
    between 0.68 and 1.21 above 0.2%, and smaller ones grow to 485 times their share.
    """
    if x.shape[0] > x.shape[1]:     # so that the squares are small
        return ops.transpose(orthogonalised(ops.transpose(x), steps))
    x = x / (ops.norm(x) + _LEAST)
    rows, columns = x.shape
    if columns < 2 * rows:
        for factors in steps:
            x = ops.matmul(_polynomial(ops.matmul(x, ops.transpose(x)), factors), x)
    else:       # the same, but each step multiplies small squares only
        square = ops.matmul(x, ops.transpose(x))
        factor = product = _polynomial(square, steps[0])
        for factors in steps[1:]:
            square = ops.matmul(ops.matmul(factor, square), factor)
            factor = _polynomial(square, factors)
            product = ops.matmul(factor, product)
        x = ops.matmul(product, x)
    return x


def as_matrix(path: str, shape: Sequence[int]) -> tuple[int, int, int]:
    """Returns rows and columns of a kernel as a matrix, and how many matrices are side by side in
    it: three in [H, 3 H] of queries, keys and values. Where several queries share a key, the three
    differ in width, and are one.

    A kernel with more axes, as of keras.layers.MultiHeadAttention, is one matrix: [H, N, D] of
    queries, keys or values is [H, N * D], and [N, D, H] of their output is [N * D, H].
    """
    inputs = 1 if re.search(r"(^|/)(query|key|value)/", path) else len(shape) - 1
    rows, columns = math.prod(shape[:inputs]), math.prod(shape[inputs:])
    is_joined = re.search(r"(^|/)qkv/", path) and columns == 3 * rows
    return rows, columns, 3 if is_joined else 1


@register
class Muon(AdamWeightDecay):
    """Muon (kellerjordan.github.io/posts/muon), whose steps are orthogonal matrices.

    A step is the momentum, orthogonalised, times `scale` and the root of the matrix's longer side.
    So its root mean square is near `scale`, as in AdamW, and both kinds of variables share a
    learning rate and a weight decay (Moonlight, arXiv:2502.16982).

    Args:
        scale: see above.
        momentum: the share of the momentum that a step keeps (Nesterov's momentum).
        word_factor: the factor of the learning rate of the table of word embeddings.
        steps: of the iteration, see `orthogonalised`. Keras's and PyTorch's Muon has `FIVE_STEPS`.
        matrices: regular expressions searched in the paths of the variables that take these steps,
            if they have two axes or more. All others take AdamW's.
    """

    default_name = "muon"
    config_keys = ("scale", "momentum", "word_factor", "steps", "matrices")

    def __init__(self, *args: Any, scale: float = 0.2, momentum: float = 0.95,
                 word_factor: float = 2.0, steps: Sequence[Sequence[float]] = THREE_STEPS,
                 matrices: Sequence[str] = MATRICES, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.scale, self.momentum, self.word_factor = scale, momentum, word_factor
        self.steps, self.matrices = tuple(map(tuple, steps)), tuple(matrices)

    def is_matrix(self, variable: Any) -> bool:
        return len(variable.shape) > 1 and any(
            re.search(pattern, variable.path) for pattern in self.matrices)

    def build(self, variables: list) -> None:
        """Creates two moments for each variable; one for a matrix."""
        if self.built:
            return
        super().build(variables)
        self._rate_factors = [
            factor * (self.word_factor if variable.path.endswith("/word_embeddings") else 1)
            for factor, variable in zip(self._rate_factors, variables)]

    def _add_state(self, variables):
        self._momentums = self.add_optimizer_variables(variables, "momentum")
        self._velocities = [
            None if self.is_matrix(variable)
            else self.add_variable_from_reference(variable, "velocity") for variable in variables]

    def _clips_late(self, index):
        return self._velocities[index] is not None and self._is_compiled(
            self._trainable_variables[index])

    def _update(self, index, gradient, variable, rate):
        if self._velocities[index] is not None:
            super()._update(index, gradient, variable, rate)
            return
        old = self._momentums[index]
        momentum = self.momentum * old + (1 - self.momentum) * gradient
        ahead = self.momentum * momentum + (1 - self.momentum) * gradient
        rows, columns, count = as_matrix(self._trainable_variables[index].path, variable.shape)
        delta = self.scale * math.sqrt(max(rows, columns // count)) * ops.concatenate(
            [orthogonalised(matrix, self.steps)
             for matrix in ops.split(ops.reshape(ahead, (rows, columns)), count, axis=1)], axis=1)
        delta = ops.reshape(delta, variable.shape)
        if self._is_decayed[index]:
            delta = delta + self.decay * variable
        self._assign([(variable, variable - rate * delta), (old, momentum)])
