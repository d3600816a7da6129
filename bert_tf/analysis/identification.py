"""Whether a hidden vector still says which token it came from (Brunner et al., arXiv:1908.04211).

A token is identified if, of all input vectors x_j of its text, its own is the nearest to its hidden
vector, or to what a probe makes of that. The input vectors are the output of the embeddings, which
the first layer reads; in every text its tokens are compared with each other only.
"""

import numpy as np

MEASURES = ("cosine", "l2")


def identified(hidden: np.ndarray, inputs: np.ndarray, measure: str = "cosine") -> np.ndarray:
    """Whether the nearest input vector of each token is its own: bool [n].

    Args:
        hidden: float [n, H], the hidden vectors of a text, or a probe's outputs.
        inputs: float [n, H], its input vectors.
        measure: "cosine" or "l2".
    """
    hidden, inputs = np.asarray(hidden, np.float64), np.asarray(inputs, np.float64)
    if measure == "cosine":
        inputs = inputs / np.maximum(np.linalg.norm(inputs, axis=1, keepdims=True), 1e-12)
        nearest = (hidden @ inputs.T).argmax(1)
    else:
        nearest = ((inputs ** 2).sum(1) - 2 * hidden @ inputs.T).argmin(1)
    return nearest == np.arange(len(inputs))


class LinearProbe:
    """The affine map from hidden vectors to others with the least squared error.

    Solved from sums over texts, so that any number of them can be added in one pass.

    Args:
        width: H.
        targets: T, the width of the others.
        ridge: what is added to the diagonal of the covariance, as a share of its mean.
    """

    def __init__(self, width: int, targets: int, ridge: float = 1e-4):
        self._products = np.zeros((width + 1, width + 1))
        self._targets = np.zeros((width + 1, targets))
        self._ridge = ridge

    def add(self, hidden: np.ndarray, targets: np.ndarray) -> None:
        """Adds vectors [n, H] and [n, T] to learn from."""
        rows = _with_one(hidden)
        self._products += rows.T @ rows
        self._targets += rows.T @ np.asarray(targets, np.float64)

    def solve(self) -> "LinearProbe":
        """Finds the map; returns itself."""
        share = self._ridge * np.diag(self._products)[:-1].mean()
        penalty = share * np.eye(len(self._products))
        penalty[-1, -1] = 0.0
        self._map = np.linalg.solve(self._products + penalty, self._targets)
        return self

    def __call__(self, hidden: np.ndarray) -> np.ndarray:
        """From float [n, H] to float64 [n, T]."""
        return _with_one(hidden) @ self._map


def _with_one(hidden):
    hidden = np.asarray(hidden, np.float64)
    return np.concatenate([hidden, np.ones((len(hidden), 1))], 1)
