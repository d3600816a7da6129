"""Contextuality of vectors (Ethayarajh, arXiv:1909.00512) and similarity of layers (Kornblith et
al., arXiv:1905.00414)."""

from collections.abc import Mapping, Sequence

import numpy as np


def _unit(vectors):
    vectors = np.asarray(vectors, np.float64)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)


def mean_cosine(vectors: np.ndarray) -> float:
    """Returns the mean cosine of all pairs of the vectors [n, H], n >= 2."""
    n, total = len(vectors), _unit(vectors).sum(0)
    return float((total @ total - n) / (n * (n - 1)))


def first_component(vectors: np.ndarray) -> float:
    """The share of [n, H]'s variance that its first principal component has; of equal rows 0."""
    vectors = np.asarray(vectors, np.float64)
    sizes = np.linalg.eigvalsh(np.cov(vectors.T))
    return float(sizes[-1] / sizes.sum()) if sizes.sum() > 0 else 0.0


def self_similarity(vectors: np.ndarray, words: Sequence[str]) -> float:
    """Returns the mean cosine of one word's vectors in several places, mean over words. `words`
    names the word of each row of `vectors`, float [n, H]; one must occur twice."""
    places: dict[str, list[int]] = {}
    for place, word in enumerate(words):
        places.setdefault(word, []).append(place)
    return float(np.mean([mean_cosine(vectors[rows]) for rows in places.values() if len(rows) > 1]))


def intra_sentence_similarity(sentences: Sequence[np.ndarray]) -> float:
    """Returns the cosine of vectors [n, H] with their sentence's mean, mean over sentences."""
    return float(np.mean([(_unit(vectors) @ _unit(vectors.mean(0))).mean()
                          for vectors in sentences]))


def linear_cka(first: np.ndarray, second: np.ndarray) -> float:
    """Returns the linear centred kernel alignment of two layers' vectors of the same words, [n, H]
    and [n, H2]: 1 if one is the other turned and scaled, 0 if they are not correlated, or if all
    vectors of a layer are equal."""
    a, b = (np.asarray(x, np.float64) - np.mean(x, 0, dtype=np.float64) for x in (first, second))
    scale = np.linalg.norm(a.T @ a) * np.linalg.norm(b.T @ b)
    return float(np.linalg.norm(a.T @ b) ** 2 / scale) if scale > 0 else 0.0


def describe_layers(layers: Sequence[Sequence[np.ndarray]], words: Sequence[str],
                    sample: np.ndarray) -> Mapping[str, np.ndarray]:
    """Returns the figures of each layer, float64 [L + 1]: `anisotropy`, the mean cosine of random
    words, which is 0 where they point into all directions alike; `first_component`; and less the
    anisotropy, as in the paper, `self_similarity`, which is left out where no word occurs twice,
    and `intra_sentence`. `cka` is [L + 1, L + 1]. `layers` has for each layer the vectors [n, H] of
    each sentence's words; `words` are all words in order, `sample` places of random words, at least
    two."""
    whole = [np.concatenate(sentences) for sentences in layers]
    base = np.array([mean_cosine(vectors[sample]) for vectors in whole])
    figures = {"anisotropy": base}
    if len(set(words)) < len(words):
        figures["self_similarity"] = np.array(
            [self_similarity(vectors, words) for vectors in whole]) - base
    return {
        **figures, "intra_sentence": np.array(list(map(intra_sentence_similarity, layers))) - base,
        "first_component": np.array([first_component(vectors) for vectors in whole]),
        "cka": np.array([[linear_cka(a[sample], b[sample]) for b in whole] for a in whole])}
