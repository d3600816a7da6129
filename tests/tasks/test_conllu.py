"""CoNLL-U files: their words, and the tags and features of words."""

import re

import pytest

from bert_tf.errors import InputError
from bert_tf.tasks.conllu import read_sentences
from bert_tf.tasks.rows import Omissions
from bert_tf.tasks.tag_schemes import scheme_of
from bert_tf.tasks.task import Split
from bert_tf.tasks.task_flags import TaskFlags

# After the examples of universaldependencies.org/format.html.
ROWS = """# newdoc id = a
# sent_id = 1
# text = v\u00e1monos al mar
1-2 v\u00e1monos _ _ _ _ _ _ _ _
1 vamos ir VERB V Mood=Imp|Number=Plur 0 root _ _
2 nos nosotros PRON P Case=Acc|Number=Plur 1 obj _ _
3-4 al _ _ _ _ _ _ _ SpaceAfter=No
3 a a ADP A _ 5 case _ _
4 el el DET D Gender=Masc|Number=Sing 5 det _ _
5 mar mar NOUN N Number=Sing 1 obl _ _

# newpar
# newdoc id = b
1 Sue Sue PROPN P _ 2 nsubj _ _
2 likes like VERB V _ 0 root _ _
3 300\u00a0000 n NUM C _ 2 obj _ _
4 and and CCONJ C _ 5 cc _ _
5 Paul Paul PROPN P _ 2 conj _ _
5.1 likes like VERB V _ _ _ 2:conj _
6 tea tea NOUN N Number=Sing 5 orphan _ _
"""


def write(path, rows=ROWS):
    lines = [line if line.startswith("#") else line.replace(" ", "\t") for line in rows.split("\n")]
    path.write_text("\n".join(lines).replace("\u00a0", " "), encoding="utf-8")
    return str(path)


def read(path, tag="upos"):
    return list(read_sentences(path, Split((path,), ("form",), tag, format="conllu"), Omissions()))


def test_words_are_the_syntactic_ones(tmp_path):
    assert read(write(tmp_path / "a.conllu")) == [
        (5, ["vamos", "nos", "a", "el", "mar"], ["VERB", "PRON", "ADP", "DET", "NOUN"], 0),
        (14, ["Sue", "likes", "300 000", "and", "Paul", "tea"],
         ["PROPN", "VERB", "NUM", "CCONJ", "PROPN", "NOUN"], 1)]


@pytest.mark.parametrize("column, tags", [
    ("FEATS", ["Mood=Imp|Number=Plur", "Case=Acc|Number=Plur", "_", "Gender=Masc|Number=Sing",
               "Number=Sing"]),
    *((name, ["Plur", "Plur", "_", "Sing", "Sing"])
      for name in ("feats.Number", "FEATS.number", "5.Number", "-5.NUMBER")),
    ("7", ["root", "obj", "case", "det", "obl"]),
    ("-7", ["VERB", "PRON", "ADP", "DET", "NOUN"]), (None, [])])
def test_columns(tmp_path, column, tags):
    assert read(write(tmp_path / "a.conllu"), column)[0][2] == tags


def test_a_feature_without_a_value_is_none(tmp_path):
    path = write(tmp_path / "a.conllu", "1 a a X _ Case= 0 root _ Typo|Gloss=the\n")
    assert [read(path, column)[0][2] for column in (
        "feats.Case", "misc.Typo", "misc.Gloss", "misc.Other")] == [["_"], ["_"], ["the"], ["_"]]


def test_every_line_is_read_as_a_slow_reader_reads_it(tmp_path):
    """Words are the lines whose number is whole."""
    path = write(tmp_path / "a.conllu", "\n\n".join([ROWS.strip()] * 40) + "\n")
    with open(path, encoding="utf-8") as file:
        wanted = re.findall(r"^\d+\t([^\t]*)\t[^\t]*\t([^\t]*)", file.read(), re.M)
    found = read(path)
    assert [pair for _, words, tags, _ in found for pair in zip(words, tags)] == wanted
    assert len(found) == 80


@pytest.mark.parametrize("column, place, feature", [
    ("upos", 3, ""), ("xpos", 4, ""), ("feats", 5, ""), ("feats.Number", 5, "Number"),
    ("deprel", 7, "")])
def test_every_word_and_label_of_a_real_treebank_is_read(test_data, column, place, feature):
    path = str(test_data / "ud/en_partut-ud-dev.conllu")
    with open(path, encoding="utf-8") as file:
        rows = [line.split("\t") for line in file.read().split("\n") if line[:1].isdigit()]
    rows = [row for row in rows if row[0].isdigit()]
    labels = [row[place] for row in rows]
    if feature:
        labels = [(re.findall(rf"\b{feature}=([^|]*)", label) or ["_"])[0] for label in labels]
    found = read(path, column)
    assert [word for _, words, _, _ in found for word in words] == [row[1] for row in rows]
    assert [tag for _, _, tags, _ in found for tag in tags] == labels and len(labels) > 2000
    assert len(found) == sum(row[0] == "1" for row in rows)


@pytest.mark.parametrize("rows, tag, message", [
    ("1 a b", "upos", "line 1 does not have 10 columns"),
    ("x a a X _ _ 0 _ _ _", "upos", "line 1 has 'x' where the number of a word must be"),
    (ROWS.replace("\n\n", "\n"), "upos", "line 13 has word 1 after word 5; put a blank line "
     "between sentences: correct the line"),
    (ROWS, "upso", "CoNLL-U has no column 'upso'; did you mean upos"),
    (ROWS, "upos.x", "no column 'upos.x'"), (ROWS, "3.x", "no column '3.x'"),
    (ROWS, "10", "no column '10'")])
def test_refusals(tmp_path, rows, tag, message):
    with pytest.raises(InputError, match=re.escape(message)):
        read(write(tmp_path / "a.conllu", rows), tag)


def test_files_of_two_formats_are_refused():
    flags = TaskFlags(task_kind="tagging", train_file="train.conllu.gz", dev_file="dev.txt")
    with pytest.raises(InputError, match="--train_file=train.conllu.gz is read as conllu and "
                                         "--dev_file=dev.txt as words"):
        flags.read_task()


@pytest.mark.parametrize("column, labels", [
    ("", ("ADP", "CCONJ", "DET", "NOUN", "NUM", "PRON", "PROPN", "VERB", "X")),
    ("feats.Number", ("Dual", "Plur", "Sing", "_"))])
def test_flags_find_the_tags_of_all_files(tmp_path, column, labels):
    write(tmp_path / "train.conllu")
    write(tmp_path / "dev.conllu", "1 x x X _ Number=Dual 0 root _ _\n")
    flags = TaskFlags(task_kind="tagging", data_dir=str(tmp_path), train_file="train.conllu",
                      dev_file="dev.conllu", label_column=column)
    sources = flags.find_sources(flags.read_task(), [])
    assert sources[0].task.labels == labels
    assert [len(list(source.examples())) for source in sources] == [2, 1]
    assert sources[0].task.metrics == ("tag_accuracy",)


@pytest.mark.parametrize("mark", ["I-", "I---------"])
def test_parts_of_speech_like_tags_of_entities_are_none(tmp_path, mark):
    """Interjections of treebanks in the style of PROIEL, and of the Prague treebank of Arabic."""
    write(tmp_path / "train.conllu", f"1 x x INTJ {mark} _ 0 root _ _\n2 y y VERB V- _ 1 x _ _\n\n"
          f"1 x x INTJ {mark} _ 0 root _ _\n2 y y VERB B- _ 1 x _ _\n3 y y VERB S- _ 1 x _ _\n")
    flags = TaskFlags(task_kind="tagging", data_dir=str(tmp_path), train_file="train.conllu",
                      label_column="xpos")
    task = flags.find_sources(flags.read_task(), [])[0].task
    assert set(task.labels) == {mark, "V-", "B-", "S-"} and task.metrics == ("tag_accuracy",)
    assert scheme_of(task.labels) == "bio"
