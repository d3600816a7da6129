"""Heads of words from attention, beside a slow computation of the paper's equations."""

import numpy as np
import pytest

from bert_tf.analysis import dependencies
from bert_tf.analysis.dependencies import DependencyProbe, Parsed, attachment, offset_heads
from bert_tf.analysis.tags import LinkHeads

LAYERS, HEADS, WIDTH = 2, 3, 4


def sentences(count, width=WIDTH, seed=0):
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        size = int(rng.integers(2, 6))
        heads = [int((word + rng.integers(1, size)) % size) for word in range(size)]
        heads[int(rng.integers(size))] = -1
        found.append(Parsed(rng.random((LAYERS, HEADS, size, size)), heads,
                            rng.normal(size=(size, width)) if width else None))
    return found


def slow_odds(sentence, parameters):
    """p(i | j) of each two words, by the paper's equation; its weights w, u or W, U."""
    size, width = len(sentence.heads), parameters.shape[1] // 2
    scores = np.full((size, size), -np.inf)
    for i in range(size):
        for j in range(size):
            if i == j:
                continue
            words = [1.0]
            if sentence.vectors is not None:
                words += [*sentence.vectors[i], *sentence.vectors[j]]
            scores[i, j], k = 0.0, 0
            for way in ((j, i), (i, j)):
                for layer in range(LAYERS):
                    for head in range(HEADS):
                        weight = sum(a * b for a, b in zip(parameters[k], words, strict=True))
                        scores[i, j] += weight * sentence.attention[layer, head][way]
                        k += 1
    assert width == (0 if sentence.vectors is None else WIDTH)
    odds = np.exp(scores)
    return odds / odds.sum(0)


@pytest.mark.parametrize("width", [0, WIDTH])
def test_loss_and_gradient_are_those_of_the_equations(width):
    given, rng = sentences(4, width), np.random.default_rng(1)
    parameters = rng.normal(size=(2 * LAYERS * HEADS, 1 + 2 * width))
    probe = DependencyProbe(decay=0.01)
    parts = [dependencies._part(one) for one in given]
    losses = [-np.log(slow_odds(one, parameters)[head, word])
              for one in given for word, head in enumerate(one.heads) if head >= 0]
    found, slope = probe.loss(parts, parameters)
    assert found == pytest.approx(np.mean(losses) + 0.01 * (parameters ** 2).sum(), abs=1e-10)
    for place in rng.choice(parameters.size, 8, replace=False):
        step = np.zeros(parameters.size)
        step[place] = 1e-6
        ends = [probe.loss(parts, parameters + sign * step.reshape(parameters.shape))[0]
                for sign in (1, -1)]
        assert slope[place] == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-6)
    probe.parameters = parameters
    for one in given:
        assert probe.predict(one).tolist() == slow_odds(one, parameters).argmax(0).tolist()


def test_the_loss_of_an_unlikely_head_is_a_number():
    """exp(-1000) is 0, but its logarithm is needed: the search stops at an infinite loss."""
    maps = np.zeros((1, 1, 3, 3))
    maps[0, 0, 1, 2] = 1            # word 1 looks at word 2; its head is word 0
    parts = [dependencies._part(Parsed(maps, [-1, 0, -1]))]
    assert DependencyProbe(decay=0).loss(parts, np.array([[1000.0], [0]]))[0] == 1000


def test_a_probe_finds_the_head_that_knows():
    given = sentences(30, 0)
    for one in given:
        for word, head in enumerate(one.heads):
            if head >= 0:
                one.attention[1, 2, word, head] = 3.0
    probe = DependencyProbe()
    loss = probe.train(given[:20])
    found = [probe.predict(one) for one in given[20:]]
    assert loss < 0.1 and attachment(given[20:], found) == 1
    assert probe.parameters[LAYERS * HEADS - 1, 0] == probe.parameters.max()


def test_shares_of_heads_are_counted_slowly():
    given, links = sentences(20), LinkHeads()
    for one in given:
        links.add_links(one.attention, [(word, head, "a" if word % 2 else "b")
                                        for word, head in enumerate(one.heads) if head >= 0])
    for kind in "ab":
        right, total = np.zeros((2, LAYERS, HEADS)), 0
        for one in given:
            for word in range(kind == "a", len(one.heads), 2):
                if one.heads[word] < 0:
                    continue
                total += 1
                others = [other for other in range(len(one.heads)) if other != word]
                for layer in range(LAYERS):
                    for head in range(HEADS):
                        maps = one.attention[layer, head]
                        right[0, layer, head] += one.heads[word] == max(
                            others, key=lambda other, maps=maps: maps[word, other])
                        right[1, layer, head] += one.heads[word] == max(
                            others, key=lambda other, maps=maps: maps[other, word])
        assert links.totals[kind] == total
        np.testing.assert_allclose(links.scores(kind), right / total)
    apart = [head - word for one in given for word, head in enumerate(one.heads)
             if head >= 0 and word % 2]
    offset, share = links.best_offset("a")
    assert share == max(map(apart.count, apart)) / len(apart) == apart.count(offset) / len(apart)


def test_distances_that_leave_the_sentence_are_wrong():
    one = Parsed(np.zeros((1, 1, 3, 3)), [1, -1, 1])
    assert attachment([one], [offset_heads(one, 1)]) == 0.5
    assert attachment([one], [offset_heads(one, -1)]) == 0.5
    assert attachment([one], [offset_heads(one, 2)]) == 0
