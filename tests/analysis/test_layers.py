"""Contextuality, similarity of layers and probes: cases that are known."""

import numpy as np
import pytest

from bert_tf.analysis import contextuality, tags


def test_cosines_by_a_slow_loop():
    rng = np.random.default_rng(0)
    vectors, words = rng.standard_normal((12, 5)) + 0.5, list("abcabcabdabe")

    def cosine(i, j):
        a, b = vectors[i], vectors[j]
        return a @ b / np.linalg.norm(a) / np.linalg.norm(b)

    pairs = [(i, j) for i in range(12) for j in range(i)]
    assert contextuality.mean_cosine(vectors) == pytest.approx(np.mean([cosine(*p) for p in pairs]))
    by_word = [np.mean([cosine(i, j) for i, j in pairs if words[i] == words[j] == word])
               for word in "abc"]
    assert contextuality.self_similarity(vectors, words) == pytest.approx(np.mean(by_word))
    assert contextuality.intra_sentence_similarity([np.ones((3, 4))]) == pytest.approx(1)


def test_similarity_of_layers():
    rng = np.random.default_rng(1)
    vectors = rng.standard_normal((400, 8))
    turned = 3 * vectors @ np.linalg.qr(rng.standard_normal((8, 8)))[0] + 5
    assert contextuality.linear_cka(vectors, turned) == pytest.approx(1)
    assert contextuality.linear_cka(vectors, rng.standard_normal((400, 8))) < 0.1
    line = np.outer(rng.standard_normal(400), np.ones(8))
    assert contextuality.first_component(line) == pytest.approx(1)


def test_figures_of_equal_vectors_are_numbers():
    """As of one word in several texts that have no other."""
    found = contextuality.describe_layers([[np.ones((1, 3)), np.ones((1, 3))]], ["a", "a"],
                                          np.arange(2))
    assert found["first_component"] == found["cka"] == 0


def test_a_probe_learns_tags_that_the_vectors_hold():
    rng = np.random.default_rng(2)
    directions = {"NN": 0, "VB": 1, "DT": 2}

    def sentences(count):
        labels = [list(rng.choice(list(directions), 6)) for _ in range(count)]
        vectors = [np.eye(8)[[directions[tag] for tag in row]] + 0.1 * rng.standard_normal((6, 8))
                   for row in labels]
        return vectors, labels

    (train, train_tags), (held_out, expected) = sentences(40), sentences(10)
    noise = [rng.standard_normal((6, 8)) for _ in train], [rng.standard_normal((6, 8))
                                                           for _ in held_out]
    good, bad = tags.probe_layers([train, noise[0]], train_tags, [held_out, noise[1]])
    assert good == expected and bad != expected
    assert tags.most_frequent([["a", "b", "a"]], [["X", "Y", "X"]], [["b", "c"]]) == [["Y", "X"]]


def test_heads_that_look_at_the_end_of_a_chunk():
    labels = ["I-NP", "I-NP", "I-NP", "I-VP", "B-VP", "I-VP", "O"]
    ends = [2, 2, 2, 3, 5, 5, 6]
    right, left = np.eye(7)[ends], np.eye(7)[[0, 0, 1, 2, 3, 4, 5]]
    heads = tags.ChunkHeads()
    heads.add(np.stack([right, left, right.T])[None], labels)
    assert heads.totals == {"NP": 2, "VP": 1}
    scores = heads.scores("NP")
    assert scores.shape == (2, 1, 3)
    assert scores[0, 0, 0] == 1 and scores[0, 0, 1] == 0 and scores[1, 0, 2] == 1
    assert heads.best_offset("VP") == (1, 1.0) and heads.best_offset("NP")[1] == 0.5
