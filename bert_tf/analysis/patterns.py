"""The five classes of attention maps of Kovaleva et al. (arXiv:1908.08593), by the rule of
`classify`, and a small network that learns them from the picture alone. The original's labels and
network are not public.

Three numbers describe a map: vertical, the weight on special tokens, [CLS] and [SEP], mean over
rows; diagonal, the weight on the tokens before and after, divided by n; block, the weight that
stays in the own segment, beyond an even spread and as a share of the possible: 0 if even, 1 if none
leaves it. Only ordinary tokens at least n / 4 apart count, so that a broad diagonal is not a block.
"""

from collections.abc import Sequence

import numpy as np

CLASSES = ("vertical", "diagonal", "vertical + diagonal", "block", "heterogeneous")
_BOTH, _VERTICAL, _DIAGONAL, _BLOCK = 0.25, 0.5, 0.4, 0.5
_SIDE = 32      # width and height of the pictures that the network sees


def describe(attention: np.ndarray, special: np.ndarray, segments: np.ndarray) -> np.ndarray:
    """Returns the numbers vertical, diagonal and block of maps: [..., n, n] -> float64 [..., 3].
    `special`, bool [n], marks [CLS] and [SEP]; `segments`, int [n], is 0 or 1."""
    attention = np.asarray(attention, np.float64)
    n = attention.shape[-1]
    vertical = attention[..., special].sum((-1, -2)) / n
    diagonal = (np.trace(attention, -1, -2, -1) + np.trace(attention, 1, -2, -1)) / n
    block = np.zeros_like(vertical)
    places = np.arange(n)
    far = (np.abs(places[:, None] - places) >= n / 4) & ~special[:, None] & ~special
    own = (segments[:, None] == segments) & far
    even = own.sum() / max(far.sum(), 1)
    if even < 1:
        between = attention * far
        inside = (between * own).sum((-1, -2)) / np.maximum(between.sum((-1, -2)), 1e-12)
        block = (inside - even) / (1 - even)
    return np.stack([vertical, diagonal, block], -1)


def classify(numbers: np.ndarray) -> np.ndarray:
    """Returns the places in `CLASSES` for the numbers of `describe`, [..., 3] -> int [...]: the
    first of these conditions that fits; "heterogeneous" if none does."""
    vertical, diagonal, block = np.moveaxis(numbers, -1, 0)
    conditions = [(vertical >= _BOTH) & (diagonal >= _BOTH), vertical >= _VERTICAL,
                  diagonal >= _DIAGONAL, block >= _BLOCK]
    return np.select(conditions, [2, 0, 1, 3], 4)


def shares(classes: np.ndarray) -> np.ndarray:
    """Returns the share of each of `CLASSES`: float64 [5]."""
    return np.bincount(np.ravel(classes), minlength=len(CLASSES)) / np.size(classes)


def synthesize(count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Makes `count` maps of each class in texts of 24 to 64 tokens and two segments. Returns their
    pictures, float32 [5 * count, S, S], and their classes, int."""
    pictures, classes = [], []
    for label in range(len(CLASSES)):
        for _ in range(count):
            n = int(rng.integers(24, 65))
            middle = int(rng.integers(n // 4, 3 * n // 4))
            pictures.append(picture(_synthetic(label, n, middle, rng)))
            classes.append(label)
    return np.stack(pictures), np.array(classes)


def _synthetic(label: int, n: int, middle: int, rng: np.random.Generator) -> np.ndarray:
    noise = rng.dirichlet(np.full(n, rng.uniform(0.1, 2)), n)
    if label in (0, 2):     # one of the special tokens, or both kinds
        columns = [[0], [middle, n - 1], [0, middle, n - 1]][rng.integers(3)]
        vertical = np.zeros((n, n))
        vertical[:, columns] = rng.uniform(0.2, 1, len(columns))
        vertical /= vertical.sum(1, keepdims=True)
    if label in (1, 2):
        offset = rng.choice([-1, 1])
        diagonal = np.eye(n)[np.clip(np.arange(n) + offset, 0, n - 1)]
    if label == 0:
        share = rng.uniform(0.6, 0.98)
        return share * vertical + (1 - share) * noise
    if label == 1:
        share = rng.uniform(0.5, 0.98)
        return share * diagonal + (1 - share) * noise
    if label == 2:
        share = rng.uniform(0.35, 0.6)
        return share * vertical + (0.95 - share) * diagonal + 0.05 * noise
    if label == 3:
        first = np.arange(n) <= middle
        noise = noise * np.where(first[:, None] == first, 1, rng.uniform(0, 0.1))
        return noise / noise.sum(1, keepdims=True)
    return noise


def picture(attention: np.ndarray, side: int = _SIDE) -> np.ndarray:
    """Returns a map [..., m, n] as a square picture of fixed size, float32 [..., S, S]: the root of
    each cell's largest weight, which keeps lines visible."""
    for axis in (-1, -2):
        n = attention.shape[axis]
        take = np.maximum.reduceat if n >= side else np.take
        attention = take(attention, np.arange(side) * n // side, axis)
    return np.sqrt(attention).astype(np.float32)


class PatternNetwork:
    """A convolutional network that predicts the class from a map's picture alone, without knowing
    which tokens are special."""

    def __init__(self, seed: int = 0):
        import keras
        keras.utils.set_random_seed(seed)
        self._model = keras.Sequential([
            keras.layers.Input((_SIDE, _SIDE, 1)),
            *(keras.layers.Conv2D(filters, 3, strides, padding="same", activation="relu")
              for filters, strides in ((8, 1), (16, 2), (32, 2), (32, 2))),
            keras.layers.Flatten(), keras.layers.Dropout(0.2, seed=seed),
            keras.layers.Dense(len(CLASSES))])
        self._model.compile(keras.optimizers.Adam(2e-3),
                            keras.losses.SparseCategoricalCrossentropy(from_logits=True))

    def fit(self, pictures: np.ndarray, classes: np.ndarray, epochs: int = 10) -> "PatternNetwork":
        """Trains on pictures [M, S, S] and their classes [M]; returns itself."""
        counts = np.bincount(classes, minlength=len(CLASSES))
        weights = (len(classes) / len(CLASSES) / np.maximum(counts, 1)) ** 0.5
        self._model.fit(pictures[..., None], classes, 32, epochs, verbose=0,
                        class_weight=dict(enumerate(weights)))
        return self

    def predict(self, pictures: np.ndarray) -> np.ndarray:
        """Returns the classes of pictures [M, S, S]: int [M]."""
        return self._model.predict(pictures[..., None], verbose=0).argmax(-1)


def macro_f1(labels: Sequence[int], predictions: Sequence[int]) -> float:
    """Returns the mean F1 of the classes that occur among the labels."""
    from sklearn.metrics import f1_score
    return float(f1_score(labels, predictions, labels=np.unique(labels), average="macro"))
