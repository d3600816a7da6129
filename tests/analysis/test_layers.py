"""What vectors of layers hold: similarity, tags, senses, dependencies."""

import numpy as np
import pytest

from bert_tf.analysis import contextuality, dependencies, tags
from bert_tf.analysis.dependencies import DependencyProbe, Parsed, attachment, offset_heads
from bert_tf.analysis.senses import Neighbours
from bert_tf.analysis.tags import LinkHeads
from bert_tf.errors import InputError
from bert_tf.tasks.senses import Instance, read_senses


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


# Senses

PLAIN = """The\t_\t_
bank\tbank NOUN\tbank%1|bank%2
closed\tclose VERB\tclose%1

They\t_\t_
closed in\tclose_in VERB\tclose_in%1
"""
XML = """<?xml version="1.0" encoding="UTF-8"?>
<corpus><text id="d0"><sentence id="d0.s0"><wf lemma="the" pos="DET">The</wf>
<instance id="d0.s0.t0" lemma="bank" pos="NOUN">bank</instance>
<instance id="d0.s0.t1" lemma="close" pos="VERB">closed</instance></sentence>
<sentence id="d0.s1"><wf lemma="they" pos="PRON">They</wf>
<instance id="d0.s1.t0" lemma="close_in" pos="VERB">closed in</instance></sentence></text></corpus>
"""
KEYS = "d0.s0.t0 bank%1 bank%2\nd0.s0.t1 close%1\nd0.s1.t0 close_in%1\n"


def test_both_forms_of_files_say_the_same(tmp_path):
    (tmp_path / "a.txt").write_text(PLAIN)
    (tmp_path / "a.data.xml").write_text(XML)
    with pytest.raises(InputError, match="a.gold.key.txt, the file with the senses, is missing"):
        read_senses(str(tmp_path / "a.data.xml"))
    (tmp_path / "a.gold.key.txt").write_text(KEYS)
    plain, marked = (read_senses(str(tmp_path / name)) for name in ("a.txt", "a.data.xml"))
    assert plain[0] == marked[0] == (["The", "bank", "closed"], [
        Instance(range(1, 2), "bank NOUN", ("bank%1", "bank%2")),
        Instance(range(2, 3), "close VERB", ("close%1",))])
    assert marked[1] == (["They", "closed", "in"],
                         [Instance(range(1, 3), "close_in VERB", ("close_in%1",))])
    assert plain[1][1][0].senses == marked[1][1][0].senses


@pytest.mark.parametrize("name, text, message", [
    ("a.txt", "The\tthe\n", "line 1: write a word, its lemma and its sense"),
    ("a.txt", "The\t_\t_\n", "tags no word"),
    ("a.data.xml", "<corpus>", "is not XML"),
    ("a.data.xml", XML.replace("d0.s0.t1", "x"), "has no sense for 'x'")])
def test_bad_files_are_named(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    (tmp_path / "a.gold.key.txt").write_text(KEYS)
    with pytest.raises(InputError, match=message):
        read_senses(str(tmp_path / name))


@pytest.mark.parametrize("count", [1, 2, 3, 7, 50])
def test_neighbours_are_those_of_a_slow_search(count):
    rng = np.random.default_rng(count)
    known, others = Neighbours(), rng.normal(size=(20, 5))
    vectors, kept = rng.normal(size=(12, 5)), rng.choice(list("abc"), 12).tolist()
    for vector, sense in zip(vectors, kept):
        known.add("word", [sense], vector)
    wanted = []
    for one in others:
        cosines = [vector @ one / np.sqrt((vector @ vector) * (one @ one)) for vector in vectors]
        nearest = [kept[i] for i in sorted(range(12), key=lambda i: -cosines[i])[:count]]
        wanted.append(max(nearest, key=lambda sense: (nearest.count(sense), -nearest.index(sense))))
    assert known.predict("word", others, count) == wanted
    assert kept.count(known.most_frequent("word")) == max(map(kept.count, "abc"))
    assert known.most_frequent("other") is None


def test_an_instance_counts_for_each_of_its_senses():
    known = Neighbours()
    known.add("word", ("a", "b"), np.ones(3))
    assert known.counts["word"] == {"a": 1, "b": 1}


# Dependencies

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
