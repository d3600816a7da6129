"""Sensitivity of a model's layers: the largest eigenvalue of the Hessian of its loss (Q-BERT,
arXiv:1909.05840, section 3.1; amirgholami/PyHessian, hessian.py)."""

from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from bert_tf.errors import InputError
from bert_tf.training.learners.learner import Learner

Batch = dict[str, tf.Tensor]


def top_eigenvalue(product: Callable[[np.ndarray], np.ndarray], size: int, seed: int = 0,
                   tolerance: float = 1e-3, most: int = 100) -> float:
    """The eigenvalue of the greatest magnitude of a symmetric matrix, with its sign, by power
    iteration from a random vector. `product` returns the matrix times a vector, float64 [size]. The
    iteration ends when the eigenvalue changes by less than the share `tolerance`, or after `most`
    products."""
    vector = np.random.default_rng(seed).standard_normal(size)
    eigenvalue = None
    for _ in range(most):
        vector = vector / (np.linalg.norm(vector) + 1e-6)
        image = product(vector)
        before, eigenvalue = eigenvalue, float(vector @ image)
        if before is not None and abs(before - eigenvalue) / (abs(before) + 1e-6) < tolerance:
            break
        vector = image
    return eigenvalue or 0.0


class LayerHessian:
    """The Hessian of the mean loss, without dropout, of a `Learner` of one objective over some
    examples with respect to the weights of one layer of its encoder. InputError if its numbers are
    rounded, so that there is no second derivative; or layers share weights, or are not numbered."""

    def __init__(self, learner: Learner, number: int) -> None:
        config = learner.encoder.config
        if not config.can_be_rounded:
            raise InputError(f"the model is of the type {config.model_type}, whose layers get no "
                             "bits of their own; take another model.")
        if config.quantisation:
            raise InputError("the model is quantised, so its loss has no second derivative; take "
                             "the float model.")
        if config.shares_layers:
            raise InputError("the model's layers share weights, so all layers must have the same "
                             "bits; take another model.")
        self._learner = learner
        self._variables = [v.value for v in learner.encoder.layers_[number].trainable_variables]
        self._shapes = [v.shape for v in self._variables]
        self.size = sum(shape.num_elements() for shape in self._shapes)
        self._of_batch = tf.function(self._product, autograph=False, reduce_retracing=True)

    def _product(self, batch, vector):
        """The Hessian of a batch's summed losses times a vector, float32 [size]; its divisor."""
        sizes = [shape.num_elements() for shape in self._shapes]
        parts = [tf.reshape(part, shape)
                 for part, shape in zip(tf.split(vector, sizes), self._shapes)]
        with tf.GradientTape(watch_accessed_variables=False) as outer:
            outer.watch(self._variables)
            with tf.GradientTape(watch_accessed_variables=False) as inner:
                inner.watch(self._variables)
                measures, = self._learner.measure(batch).values()
                loss, count = measures["loss"]
            # Matrices of a layer without heads are empty.
            gradients = inner.gradient(loss, self._variables, unconnected_gradients="zero")
            along = tf.add_n([tf.reduce_sum(g * part) for g, part in zip(gradients, parts)])
        products = outer.gradient(along, self._variables, unconnected_gradients="zero")
        return tf.concat([tf.reshape(part, [-1]) for part in products], 0), count

    def product(self, batches: Sequence[Batch], vector: np.ndarray) -> np.ndarray:
        """The Hessian of the mean loss over all of `batches` times a vector, float64 [size]."""
        total, weight = np.zeros(self.size), 0.0
        for batch in batches:
            image, count = self._of_batch(batch, tf.constant(vector, tf.float32))
            total, weight = total + image.numpy(), weight + float(count)
        return total / weight

    def eigenvalue(self, batches: Sequence[Batch], **options: float) -> float:
        """`top_eigenvalue` of the mean loss over `batches`; `options` are its own."""
        return top_eigenvalue(lambda vector: self.product(batches, vector), self.size,
                              **options)  # type: ignore[arg-type]


def sensitivity(eigenvalues: Sequence[float]) -> float:
    """|mean| + standard deviation of a layer's eigenvalues over samples of the data."""
    return float(abs(np.mean(eigenvalues)) + np.std(eigenvalues))


def choose_bits(sensitivities: Sequence[float], bits: tuple[int, int], count: int) -> list[int]:
    """The bits of each layer: `bits[0]`, and of the `count` most sensitive ones `bits[1]`."""
    order = np.argsort(sensitivities, kind="stable")[::-1]
    chosen = np.full(len(order), bits[0])
    chosen[order[:count]] = bits[1]
    return chosen.tolist()
