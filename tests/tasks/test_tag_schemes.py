"""Schemes of tags: against the original's labels of ELECTRA, and against conlleval's rules."""

import json
import random

import numpy as np
import pytest

from bert_tf import metrics
from bert_tf.errors import InputError
from bert_tf.tasks import TaskFlags
from bert_tf.tasks.kinds.table import KINDS
from bert_tf.tasks.named import TASKS
from bert_tf.tasks.reading import read_examples
from bert_tf.tasks.tag_schemes import from_bioes, labels_in, scheme_of, to_bioes
from tests.test_metrics import conlleval

CONLL = TASKS["conll2003"]
TYPES = ("A", "B-x")


def slow_bioes(tags):
    """Each tag from it and the one after it, of sentences whose entities begin with B-."""
    found = []
    for tag, after in zip(tags, [*tags[1:], "O"]):
        ends = not after.startswith("I")
        place = {"B": "S" if ends else "B", "I": "E" if ends else "I", "O": ""}[tag[0]]
        found.append(place + tag[1:] if place else "O")
    return found


def slow_entities(tags):
    """(first, last, type) of BIOES tags in any order, by the rules of conlleval for each pair of
    neighbours."""
    found, pairs = [], [("O", *t.split("-", 1))[-2:] if t != "O" else ("O", "") for t in tags]
    for index, (place, kind) in enumerate(pairs):
        last, last_kind = pairs[index - 1] if index else ("O", "")
        if place == "O":
            continue
        if place in "BS" or last in "OES" or last_kind != kind:
            found.append((index, index, kind))
        else:
            found[-1] = (found[-1][0], index, kind)
    return found


@pytest.mark.parametrize("seed", range(20))
def test_tags_there_and_back(seed):
    rng = random.Random(seed)
    bio = metrics.to_bio(rng.choices(
        ["O", *(f"{place}-{kind}" for place in "BI" for kind in TYPES)], k=200))
    assert to_bioes(bio) == slow_bioes(bio)
    assert from_bioes(to_bioes(bio)) == bio
    wild = rng.choices(["O", *(f"{place}-{kind}" for place in "BIES" for kind in TYPES)], k=200)
    assert [(start, end - 1, kind) for start, end, kind in metrics.entities(from_bioes(wild))
            ] == slow_entities(wild)


@pytest.mark.parametrize("split", ["train", "dev"])
def test_the_original_labels(test_data, split):
    """Sentences that the original cuts are compared as far as it goes."""
    folder = test_data / "golden/electra"
    golden = np.load(folder / "features_chunk_s40.npz")
    names = sorted(json.loads(str(golden["label_mapping"])))
    counts = golden[f"{split}/chunk_labels_mask"].sum(1).astype(int)
    theirs = [[names[index] for index in row[:count]]
              for row, count in zip(golden[f"{split}/chunk_labels"], counts)]
    task = TaskFlags(task="conll2003", tag_scheme="bioes").read_task()
    assert set(names) <= set(task.labels) and len(task.labels) == 17
    ours = [[task.labels[label] for label in example.label]
            for example in read_examples(task, split, str(folder / f"chunk_{split}.txt"))]
    assert [tags[:count] for tags, count in zip(ours, counts, strict=True)] == theirs


def test_scores_do_not_depend_on_the_scheme():
    """Of predictions that are the same entities."""
    rng = random.Random(3)
    gold, predicted = ([metrics.to_bio(rng.choices(CONLL.labels, k=9)) for _ in range(50)]
                       for _ in range(2))
    expected = metrics.compute(CONLL.metrics, gold, predicted)
    assert metrics.compute(CONLL.metrics, *(
        [from_bioes(to_bioes(tags)) for tags in side] for side in (gold, predicted))) == expected
    correct, guessed, labelled = conlleval(gold, predicted)
    assert expected["entity_f1"] == pytest.approx(2 * correct / (guessed + labelled))


def test_labels_of_a_scheme():
    bioes = labels_in("bioes", ("O", "B-A", "I-A", "B-B"))
    assert bioes == ("O", "B-A", "B-B", "E-A", "E-B", "I-A", "I-B", "S-A", "S-B")
    assert scheme_of(bioes) == "bioes" and labels_in("bioes", bioes) == labels_in(None, bioes)
    assert scheme_of(CONLL.labels) == scheme_of(("S-x", "E-x", "NOUN")) == "bio"
    assert scheme_of(("", "B-x", "I-x")) == "bio"
    fits, own = KINDS["tagging"].fits_labels, labels_in("bioes", CONLL.labels)
    assert fits(CONLL.labels, own) and fits(own, CONLL.labels) and fits(own, own)
    assert fits(CONLL.labels, tuple(sorted(CONLL.labels)))
    assert not fits(CONLL.labels, bioes) and not fits(("NOUN", "VERB"), own)
    with pytest.raises(InputError, match="the labels are NOUN, VERB"):
        labels_in("bioes", ("NOUN", "VERB"))
    with pytest.raises(InputError, match="--tag_scheme=bioes is for tagging"):
        TaskFlags(task="MRPC", tag_scheme="bioes").read_task()
