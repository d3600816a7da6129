"""Senses of words: two forms of files, and neighbours beside a slow search."""

import numpy as np
import pytest

from bert_tf.analysis.senses import Neighbours
from bert_tf.errors import InputError
from bert_tf.tasks.senses import Instance, read_senses

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
