"""Identification of a hidden vector's own token (Brunner et al., arXiv:1908.04211).

A token is identified if, of all input vectors of its text, those that the first layer reads, its
own is the nearest to its hidden vector, or to a probe's output for that. Without positions in
these, as in XLNet and T5, equal tokens have one input vector, so that a token's word is identified.
"""

from collections.abc import Sequence

import numpy as np

MEASURES = ("cosine", "l2")


def identified(hidden: np.ndarray, inputs: np.ndarray, measure: str = "cosine") -> np.ndarray:
    """Returns whether each token's nearest input vector is its own, bool [n], by the `measure`
    "cosine" or "l2". `hidden`, float [n, H], are a text's hidden vectors or a probe's outputs, and
    `inputs`, float [n, H], its input vectors."""
    hidden, inputs = np.asarray(hidden, np.float64), np.asarray(inputs, np.float64)
    if measure == "cosine":
        inputs = inputs / np.maximum(np.linalg.norm(inputs, axis=1, keepdims=True), 1e-12)
        nearest = (hidden @ inputs.T).argmax(1)
    else:
        nearest = ((inputs ** 2).sum(1) - 2 * hidden @ inputs.T).argmin(1)
    return (inputs[nearest] == inputs).all(1)


class MlpProbe:
    """A network with one hidden layer of `units` from hidden vectors [H] to others [T], trained on
    their cosine. `fit` starts from the initial weights each time."""

    _BATCH = 256

    def __init__(self, width: int, targets: int, units: int = 1000, epochs: int = 10,
                 seed: int = 0):
        import keras
        import tensorflow as tf

        def dense(units, number, activation=None):
            return keras.layers.Dense(units, activation, kernel_initializer=
                                      keras.initializers.GlorotUniform(seed + number))

        self._epochs, self._seed = epochs, seed
        self._model = keras.Sequential([
            keras.layers.Input((width,)), dense(units, 0, "gelu"), dense(targets, 1)])
        self._optimizer = keras.optimizers.Adam(1e-3)
        self._optimizer.build(self._model.trainable_variables)
        self._initial = [variable.numpy() for variable in (
            *self._model.variables, *self._optimizer.variables)]

        @tf.function(autograph=False, input_signature=[
            tf.TensorSpec([None, size]) for size in (width, targets)])
        def step(hidden, goals):
            with tf.GradientTape() as tape:
                loss = -tf.reduce_mean(keras.ops.sum(
                    keras.ops.normalize(self._model(hidden)) * keras.ops.normalize(goals), -1))
            variables = self._model.trainable_variables
            self._optimizer.apply(tape.gradient(loss, variables), variables)

        self._step = step

    def fit(self, train: Sequence[tuple[np.ndarray, np.ndarray]],
            validation: Sequence[tuple[np.ndarray, np.ndarray]]) -> "MlpProbe":
        """Trains on texts, and keeps the weights of the epoch that identifies most tokens of the
        validation texts. Each text is vectors [n, H] and [n, T]. Returns itself."""
        variables = (*self._model.variables, *self._optimizer.variables)
        for variable, value in zip(variables, self._initial):
            variable.assign(value)
        hidden, targets = (np.concatenate(parts).astype(np.float32) for parts in zip(*train))
        rng = np.random.default_rng(self._seed)
        best, weights = -1.0, self._model.get_weights()
        for _ in range(self._epochs):
            order = rng.permutation(len(hidden))
            for start in range(0, len(order), self._BATCH):
                rows = order[start:start + self._BATCH]
                self._step(hidden[rows], targets[rows])
            right = np.concatenate([identified(self(x), y) for x, y in validation]).mean()
            if right > best:
                best, weights = right, self._model.get_weights()
        self._model.set_weights(weights)
        return self

    def __call__(self, hidden: np.ndarray) -> np.ndarray:
        """float [n, H] -> float32 [n, T]."""
        return np.asarray(self._model(np.asarray(hidden, np.float32)))


class LinearProbe:
    """The affine map from hidden vectors [H] to others [T] with the least squared error, solved
    from sums over texts, which are added in one pass. `ridge` is added to the diagonal of the
    covariance, as a share of its mean."""

    def __init__(self, width: int, targets: int, ridge: float = 1e-4):
        self._products = np.zeros((width + 1, width + 1))
        self._targets = np.zeros((width + 1, targets))
        self._ridge = ridge

    def add(self, hidden: np.ndarray, targets: np.ndarray) -> None:
        """Adds training vectors [n, H] and [n, T]."""
        rows = _with_one(hidden)
        self._products += rows.T @ rows
        self._targets += rows.T @ np.asarray(targets, np.float64)

    def solve(self) -> "LinearProbe":
        """Solves for the map and returns itself."""
        share = self._ridge * np.diag(self._products)[:-1].mean()
        penalty = share * np.eye(len(self._products))
        penalty[-1, -1] = 0.0
        self._map = np.linalg.solve(self._products + penalty, self._targets)
        return self

    def __call__(self, hidden: np.ndarray) -> np.ndarray:
        """float [n, H] -> float64 [n, T]."""
        return _with_one(hidden) @ self._map


def _with_one(hidden):
    hidden = np.asarray(hidden, np.float64)
    return np.concatenate([hidden, np.ones((len(hidden), 1))], 1)
