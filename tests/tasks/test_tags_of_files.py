"""Tags of words in files, and the schemes of tags."""

import json
import random
import re

import numpy as np
import pytest

from bert_tf import metrics
from bert_tf.errors import InputError, warn
from bert_tf.metrics import to_bio
from bert_tf.tasks.kinds.table import KINDS
from bert_tf.tasks.named import TASKS
from bert_tf.tasks.reading import read_examples
from bert_tf.tasks.rows import Omissions
from bert_tf.tasks.tag_schemes import from_bioes, in_bio, labels_in, scheme_of, to_bioes
from bert_tf.tasks.task_flags import TaskFlags
from tests.test_metrics import conlleval

PLACES = {"BILOU": {"B": "B", "I": "I", "E": "L", "S": "U"},
          "BIOES": {"B": "B", "I": "I", "E": "E", "S": "S"},
          "BMES": {"B": "B", "I": "M", "E": "E", "S": "S"},
          "BMEW": {"B": "B", "I": "M", "E": "E", "S": "W"}}


def read(folder, train, dev=None, **flags):
    """{split: [(words, tags)]} and the labels."""
    given = {"skip_malformed_lines": False, **flags}
    for split, content in (("train", train), ("dev", dev)):
        if content is not None:
            (folder / f"{split}.txt").write_text(content, encoding="utf-8")
            given[f"{split}_file"] = str(folder / f"{split}.txt")
    job = TaskFlags(task_kind="tagging", **given)
    found = {}
    for source in job.find_sources(job.read_task(), []):
        omissions = Omissions(job.skip_malformed_lines)
        names = source.task.labels
        found[source.split] = [
            (e.texts, [names[tag] if isinstance(tag, int) else tag for tag in e.label])
            for e in source.examples(omissions)]
        found[f"{source.split} omissions"] = omissions
    return found, names


def lines(tags):
    return "".join(f"w {tag}\n" for tag in tags) + "\n"


@pytest.mark.parametrize("scheme", PLACES)
@pytest.mark.parametrize("way", ["{}-{}", "{}_{}", "{1}-{0}", "{1}_{0}"])
def test_every_scheme_gives_the_same_entities(tmp_path, scheme, way):
    rng = random.Random(scheme + way)
    bio = [to_bio(rng.choices(["O", "B-PER", "I-PER", "B-x.y", "I-x.y"], k=rng.randint(1, 8)))
           for _ in range(40)]
    written = [[tag if tag == "O" else way.format(PLACES[scheme][tag[0]], tag[2:])
                for tag in to_bioes(tags)] for tags in bio]
    found, labels = read(tmp_path, "".join(map(lines, written[:30])),
                         "".join(map(lines, written[30:])))
    assert [tags for _, tags in found["train"]] == bio[:30]
    assert [tags for _, tags in found["dev"]] == bio[30:]
    assert labels == ("O", "B-PER", "B-x.y", "I-PER", "I-x.y")


@pytest.mark.parametrize("seed", range(10))
def test_iob1_and_bio_are_read_as_conlleval_reads_them(seed):
    tags = random.Random(seed).choices(["O", "B-A", "I-A", "B-B", "I-B"], k=200)
    assert in_bio(tags, "before") == to_bio(tags)


@pytest.mark.parametrize("strange, count", [("PER", 1), ("0", 1), ("b-per", 1), ("_", 1), ("o", 2)])
@pytest.mark.parametrize("split", ["train", "dev"])
def test_a_strange_tag_is_refused_wherever_it_is(tmp_path, strange, count, split):
    """Also in a sentence, or a file, without other entities."""
    usual = lines(["B-PER", "I-PER", "O"])
    files = {"train": usual, "dev": usual, split: usual + lines(["O", strange] * count)}
    with pytest.raises(InputError, match=rf"{split}.txt, the sentence of line 5: the tag "
                                         rf"'{strange}' is neither O .*: '{strange}' .{count}."):
        read(tmp_path, **files)


def test_a_scheme_needs_no_b_or_i(tmp_path):
    found, labels = read(tmp_path, lines(["U-PER", "O"]) + lines(["O", "U-LOC"]))
    assert [tags for _, tags in found["train"]] == [["B-PER", "O"], ["O", "B-LOC"]]
    # Train and dev are judged together: dev's tags alone would be plain labels.
    found, _ = read(tmp_path, lines(["B-PER", "O"]) + lines(["S-LOC", "O"]), lines(["S-LOC"]))
    assert found["dev"] == [(["w"], ["B-LOC"])]


@pytest.mark.parametrize("tags", [["(PER*", "*)", "*", "(LOC)"], ["b-per", "i-per", "o"] * 3])
def test_tags_in_brackets_and_small_letters_are_refused(tmp_path, tags):
    """Brackets are of CoNLL-2012."""
    with pytest.raises(InputError, match=(
            f"line 1: the tag '{re.escape(tags[0])}' is neither O nor a position")):
        read(tmp_path, lines(tags))


def test_tags_without_a_position_are_told(tmp_path, capsys):
    warn.cache_clear()      # it warns once a process
    found, _ = read(tmp_path, lines(["O", "O", "O", "PER"]))
    assert found["train"] == [(["w"] * 4, ["O", "O", "O", "PER"])]
    assert "the score counts words (tag_accuracy) and not entities" in capsys.readouterr().err


@pytest.mark.parametrize("tags", [["NN", "O", "VB"], ["I-", "B", "I---------"], ["S-x", "U", "V"],
                                  ["A-B", "N-S"]])
def test_tags_that_are_no_entities_stay(tmp_path, tags):
    found, labels = read(tmp_path, lines(tags))
    assert found["train"] == [(["w"] * len(tags), tags)] and set(labels) == {*tags}


def test_comments_are_no_words(tmp_path):
    found, _ = read(tmp_path, "#\thttp://x [2010-01-01]\n1\tAnn\tB-PER\tO\n2\tleft\tO\tO\n\n"
                    "# a\n# id = 2\n1\t#\tO\tO\n2\tx\tO\tO\n", text_a_column="1",
                    label_column="2", skip_malformed_lines=True)
    assert found["train"] == [(["Ann", "left"], ["B-PER", "O"]), (["#", "x"], ["O", "O"])]
    omissions = found["train omissions"]
    assert (omissions.comments, omissions.malformed) == (3, 0)
    found, _ = read(tmp_path, "#\tn-tv.de 26.02.2005 [x]\n1\tAnn\tB-PER\tO\n2\tx\tO\tO\n",
                    text_a_column="1", label_column="2")     # as many words as columns
    assert found["train"] == [(["Ann", "x"], ["B-PER", "O"])]
    # A word may be # or begin so; a comment may have as many columns as words have.
    found, _ = read(tmp_path, "# sent_id = 1\n# O x -\n#tag B-T y -\n\nz O w -\n# O v -\n",
                    label_column="1")
    assert found["train"] == [(["#", "#tag"], ["O", "B-T"]), (["z", "#"], ["O", "O"])]


def test_numbers_of_words_are_no_words(tmp_path):
    germeval = ("#\thttp://a [2009-10-17]\n1\tIn\tO\tO\n2\tRom\tB-LOC\tO\n\n"
                "#\thttp://b [2009-10-17]\n1\tUdine\tB-LOC\tO\n\n")
    with pytest.raises(InputError, match="column 0 numbers the words .* --text_a_column"):
        read(tmp_path, germeval)
    found, _ = read(tmp_path, germeval, text_a_column="1", label_column="2")
    assert found["train"] == [(["In", "Rom"], ["O", "B-LOC"]), (["Udine"], ["B-LOC"])]
    found, _ = read(tmp_path, "1 O\n\n1 O\n2 O\n\n2 B-X\n1 O\n")
    assert [words for words, _ in found["train"]] == [["1"], ["1", "2"], ["2", "1"]]


def test_blanks_within_words_are_not_skipped_as_columns(tmp_path):
    with pytest.raises(InputError, match="line 3 has a blank in a word or a tag"):
        read(tmp_path, "a\tO\nb\tO\nNew York\tB-X\n", skip_malformed_lines=True)
    found, _ = read(tmp_path, "a \t O\nb \t B-X\n")
    assert found["train"] == [(["a", "b"], ["O", "B-X"])]


def test_words_that_are_broken_are_still_named(tmp_path):
    with pytest.raises(InputError, match="line 2 has 3 columns where there must be 2"):
        read(tmp_path, "a O\n# no comment\nb B-X\nc O\n")
    # Most lines decide, not the first.
    found, _ = read(tmp_path, "a b c O\nx O\ny B-X\n", skip_malformed_lines=True)
    assert found["train"] == [(["x", "y"], ["O", "B-X"])]


# Schemes

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
