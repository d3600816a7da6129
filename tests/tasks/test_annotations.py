"""Files of annotation tools, and CoNLL-U."""

import json
import re

import pytest

from bert_tf.errors import InputError
from bert_tf.tasks.annotations import split_words
from bert_tf.tasks.conllu import read_sentences
from bert_tf.tasks.forms import form_of_table, form_of_words
from bert_tf.tasks.kinds.table import KINDS
from bert_tf.tasks.rows import Omissions
from bert_tf.tasks.tag_schemes import scheme_of
from bert_tf.tasks.task import Split
from bert_tf.tasks.task_flags import TaskFlags

TEXT = "Ann Lee left New-York, U.S.  (aspirin)"
WORDS = ["Ann", "Lee", "left", "New", "-", "York", ",", "U", ".", "S", ".", "(", "aspirin", ")"]
TAGS = ["B-PER", "I-PER", "O", "B-LOC", "I-LOC", "I-LOC", "O", *["O"] * 4, "O", "B-DRUG", "O"]
SPANS = [(0, 7, "PER"), (13, 21, "LOC"), (30, 37, "DRUG")]
WITHOUT = "No name."


def keyed(**names):
    return [{names[key]: value for key, value in zip(("start", "end", "label"), span)}
            for span in SPANS]


def studio(spans, **more):
    return {"id": 1, "result": [
        {"value": {"start": start, "end": end, "text": TEXT[start:end], "labels": [name]},
         "id": "a", "from_name": "label", "to_name": "text", "type": "labels", "origin": "manual"}
        for start, end, name in spans] + [
        {"value": {"choices": ["good"]}, "type": "choices", "from_name": "c", "to_name": "text"},
        {"type": "relation", "from_id": "a", "to_id": "b", "direction": "right"}],
        "was_cancelled": False, **more}


STUDIO = {"id": 7, "annotations": [studio(SPANS), studio([], was_cancelled=True)],
          "predictions": [], "data": {"text": TEXT, "source": "mail"}, "meta": {}, "project": 2}
START = {"start": "start", "end": "end", "label": "label"}
OFFSET = {"start": "start_offset", "end": "end_offset", "label": "label"}
# Each form of [a text with spans, a text without].
FORMS = {
    "doccano": [{"id": 1, "text": TEXT, "label": SPANS, "Comments": []},
                {"id": 2, "text": WITHOUT, "label": [], "Comments": []}],
    "doccano of an earlier version": [{"text": TEXT, "labels": SPANS}, {"text": WITHOUT,
                                                                        "labels": []}],
    "doccano with relations": [
        {"id": 1, "text": TEXT, "entities": [{"id": 5, **span} for span in keyed(**OFFSET)],
         "relations": [{"id": 3, "from_id": 5, "to_id": 5, "type": "x"}], "Comments": []},
        {"id": 2, "text": WITHOUT, "entities": [], "relations": []}],
    "Prodigy": [{"text": TEXT, "_input_hash": 1, "_task_hash": -3, "spans": [
        {**span, "token_start": 0, "token_end": 1} for span in keyed(**START)] + [
            {"start": 8, "end": 12, "label": "PER", "answer": "reject"}], "answer": "accept"},
        {"text": "A rejected one.", "spans": [], "answer": "reject"},
        {"text": WITHOUT, "spans": [], "answer": "accept", "meta": {"score": 0.5}}],
    "Label Studio": [STUDIO, {**STUDIO, "annotations": []},
                     {**STUDIO, "annotations": [studio([])], "data": {"words": WITHOUT}}],
    "Label Studio, JSON-MIN": [
        {"text": TEXT, "id": 7, "label": [{"start": start, "end": end, "text": TEXT[start:end],
                                           "labels": [name]} for start, end, name in SPANS],
         "annotator": 1, "annotation_id": 3, "created_at": "2024-01-01T00:00:00Z"},
        {"text": WITHOUT, "id": 8, "annotator": 1, "annotation_id": 4, "created_at": "2024"}],
    "spaCy's pairs": [[TEXT, {"entities": SPANS}], [WITHOUT, {"entities": []}]],
    "spaCy's pairs of an annotator": [{"classes": ["PER", "LOC", "DRUG"], "annotations": [
        [TEXT, {"entities": SPANS}], None, [WITHOUT, {"entities": []}]]}],
    "spaCy's Doc.to_json": [{"text": TEXT, "ents": keyed(**START), "sents": []},
                            {"text": WITHOUT, "ents": []}],
    "spaCy's JSON of training": [{"id": 0, "paragraphs": [{"raw": TEXT, "sentences": [
        {"tokens": [{"id": 0, "orth": word, "tag": "X", "ner": tag} for word, tag in zip(
            WORDS, ["B-PER", "L-PER", "O", "B-LOC", "I-LOC", "L-LOC", "O", *["O"] * 4, "O",
                    "U-DRUG", "O"])]},
        {"tokens": [{"orth": word, "ner": "O"} for word in ("No", "name", ".")]}]}]}],
    "Hugging Face": [{"id": "0", "tokens": WORDS, "ner_tags": TAGS},
                     {"tokens": ["No", "name", "."], "ner_tags": ["O"] * 3}],
    "words and their tags": [{"words": WORDS, "tags": TAGS}, {"words": ["No", "name", "."],
                                                             "tags": ["O"] * 3}],
}


def read(path, **flags):
    """[(words, tags)] of a file to train on, and what was left out."""
    given = TaskFlags(task_kind="tagging", train_file=str(path), **flags)
    source, = given.find_sources(given.read_task(), [])
    omissions = Omissions(given.skip_malformed_lines)
    examples = list(source.examples(omissions))
    return [(example.texts, [source.task.labels[tag] for tag in example.label])
            for example in examples], omissions


def write(path, rows, as_list):
    path.write_text(json.dumps(rows, indent=1) if as_list else "".join(
        json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize("as_list", [True, False])
@pytest.mark.parametrize("name", FORMS)
def test_each_form_of_json_is_read(tmp_path, name, as_list):
    # Without an ending that says it, the form is told by the content.
    for ending in ("json", "jsonl", "ndjson", "txt"):
        path = write(tmp_path / f"a.{ending}", FORMS[name], as_list)
        found, omissions = read(path)
        assert found == [(WORDS, TAGS), (["No", "name", "."], ["O"] * 3)]
        assert omissions.without_label == (name in ("Prodigy", "Label Studio"))


def test_words_of_the_tool_are_kept(tmp_path):
    places = [(0, 3), (4, 7), (7, 8), (8, 12), (13, 21), (21, 38)]
    row = {"text": TEXT, "spans": [{"start": 13, "end": 21, "label": "LOC"}], "tokens": [
        {"text": TEXT[start:end], "start": start, "end": end, "id": number, "ws": True}
        for number, (start, end) in enumerate(places)]}
    (words, tags), = read(write(tmp_path / "a.jsonl", [row], False))[0]
    assert words == ["Ann", "Lee", "left", "New-York", ", U.S.  (aspirin)"]
    assert tags == ["O", "O", "O", "B-LOC", "O"]


def test_tags_that_are_numbers_need_names(tmp_path):
    names = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-DRUG"]
    row = {"tokens": WORDS, "ner_tags": list(map(names.index, TAGS))}
    path = write(tmp_path / "a.jsonl", [row], False)
    # Of the whole file: no line of it may be skipped.
    with pytest.raises(InputError, match="^[^ ]*jsonl, line 1: its tags are numbers, which .* "
                                         "--labels=O,B-PER,I-PER.$"):
        read(path, skip_malformed_lines=True)
    assert read(path, labels=names)[0] == [(WORDS, TAGS)]
    with pytest.raises(InputError, match="its tags are numbers"):
        read(path, labels=names[:-1])


def test_keys_may_be_named(tmp_path):
    path = write(tmp_path / "a.jsonl", [{"text": "x", "body": "Ann left", "names": [[0, 3, "P"]],
                                         "label": [[0, 1, "Q"]]}], False)
    assert read(path, text_a_column="body", label_column="names")[0] == [
        (["Ann", "left"], ["B-P", "O"])]


def test_characters_are_counted_as_the_tool_counts(tmp_path):
    text = "\U0001f600 Zo\u00eb met \u5317\u4eac"       # an emoji is two units of UTF-16
    row = {"data": {"text": text}, "annotations": [{"result": [
        {"value": {"start": 3, "end": 6, "text": "Zo\u00eb", "labels": ["PER"]}, "type": "labels"},
        {"value": {"start": 11, "end": 13, "text": "\u5317\u4eac", "labels": ["LOC"]},
         "type": "labels"}]}]}
    expected = [(["\U0001f600", "Zo\u00eb", "met", "\u5317", "\u4eac"],
                 ["O", "B-PER", "O", "B-LOC", "I-LOC"])]
    assert read(write(tmp_path / "a.json", [row], True))[0] == expected
    row = {"text": text, "label": [[2, 6, "PER"], [9, 12, "LOC"]]}     # with a blank at an end
    assert read(write(tmp_path / "b.json", [row], True))[0] == expected


@pytest.mark.parametrize("row, message", [
    ({"text": "aspirin", "label": [[0, 4, "D"]]},
     "line 2 has the span 'aspi' .D, 0 to 4., which cuts the word 'aspirin'"),
    ({"text": "a b c", "label": [[0, 3, "D"], [2, 5, "E"]]},
     "line 2 has spans that overlap, 'a b' .D, 0 to 3. and 'b c'"),
    ({"text": "a b", "label": [[0, 9, "D"]]}, "line 2 has the span .* in a text of 3 characters"),
    ({"text": "a  b", "label": [[1, 2, "D"]]}, "line 2 has the span"),
    ({"text": "a b", "label": ["positive"]}, "has 'positive' where a span must be"),
    ({"text": "a b", "label": [[0, 1, 3]]}, "where a span must be"),
    ({"text": "a b", "label": [{"start": 0, "end": 1, "labels": ["D", "E"]}]}, "a span must be"),
    ({"text": "a b", "spans": [{"start": 2, "end": 3, "label": "D", "text": "a"}]},
     "'b' .D, 2 to 3., whose own text is 'a'"),
    ({"text": "a b"}, "has no spans .*; it has 'text'"),
    ({"a": "b", "c": "d"}, "has no 'text'; it has 'a', 'c'"),
    ({"tokens": ["a", "b"], "ner_tags": ["O"]}, "has 2 words, but not as many tags"),
    ({"tokens": ["a"], "tags": [["O"]]}, "has tags that are not names"),
    ({"tokens": ["a"]}, "has no tags of its words"), (3, "not a JSON object of an annotated text"),
    ({**STUDIO, "annotations": [studio(SPANS), studio([])]}, "has 2 annotations that differ")])
def test_what_cannot_be_read_is_named(tmp_path, row, message):
    good = {"text": "Ann left", "label": [[0, 3, "PER"]]}
    path = write(tmp_path / "a.jsonl", [good, row], False)
    with pytest.raises(InputError, match=message):
        read(path)
    found, omissions = read(path, skip_malformed_lines=True)
    assert found == [(["Ann", "left"], ["B-PER", "O"])] and omissions.malformed == 1


def test_predicted_entities_have_their_characters():
    answer = {"words": [word for word, *_ in split_words(TEXT)], "tags": TAGS, "entities": [
        {"type": "LOC", "text": "New - York", "first": 3, "last": 5},
        {"type": "DRUG", "text": "aspirin", "first": 12, "last": 12}]}
    assert answer["words"] == WORDS
    assert KINDS["tagging"].placed(TEXT, answer)["entities"] == [
        {"type": "LOC", "text": "New-York", "first": 3, "last": 5, "start": 13, "end": 21},
        {"type": "DRUG", "text": "aspirin", "first": 12, "last": 12, "start": 30, "end": 37}]
    assert KINDS["tagging"].placed(("x",), {"entities": [1]}) == {"entities": [1]}


def brat(folder, name, text, annotations):
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.txt").write_bytes(text.encode())
    (folder / f"{name}.ann").write_text(annotations, encoding="utf-8")


def test_brats_files_are_read_beside_their_texts(tmp_path):
    brat(tmp_path / "set", "a", "Ann left.\r\n\r\nNew\nYork is big.\n",
         "T1\tPER 0 3\tAnn\nT2\tLOC 13 16;17 21\tNew York\nR1\tIn Arg1:T1 Arg2:T2\n"
         "#1\tNote T1\tx\n")
    brat(tmp_path / "set", "b", "No name.", "")
    both = [(["Ann", "left", "."], ["B-PER", "O", "O"]),
            (["New", "York", "is", "big", "."], ["B-LOC", "I-LOC", "O", "O", "O"])]
    assert read(tmp_path / "set")[0] == [*both, (["No", "name", "."], ["O"] * 3)]
    assert read(tmp_path / "set" / "a.ann")[0] == read(tmp_path / "set" / "a.txt")[0] == both
    brat(tmp_path, "c", "Ann and Lee", "T1\tPER 0 3;8 11\tAnn Lee\n")
    with pytest.raises(InputError, match="c.ann, line 1 is not an entity of one part"):
        read(tmp_path / "c.ann")
    brat(tmp_path, "d", "x\naspirin", "T1\tDRUG 2 6\taspi\n")
    with pytest.raises(InputError, match="d.txt, line 2 has the span 'aspi' .* cuts the word 'asp"):
        read(tmp_path / "d.ann")
    brat(tmp_path, "e", "Ann left.\nBo", "T1\tPER 0 3\tAnn\nT2\tPER 10 13\tBob\n")
    with pytest.raises(InputError, match="e.ann, line 2 has an entity that ends at 13, in a te"):
        read(tmp_path / "e.ann")
    (tmp_path / "e.txt").write_bytes(b"\xff")
    with pytest.raises(InputError, match="e.txt is not UTF-8; save it"):
        read(tmp_path / "e.ann")


@pytest.mark.parametrize("name, content, message", [
    ("a.tsv", b"#FORMAT=WebAnno TSV 3.3\n#T_SP=webanno.custom|value\n\n\n#Text=Ann left\n"
     b"1-1\t0-3\tAnn\tPER\n1-2\t4-8\tleft\t_\n", "WebAnno's TSV, which is not read; export CoNLL"),
    ("a.txt", b"<?xml version='1.0'?><xmi:XMI/>", "XML or HTML, which is not read"),
    ("a.xmi", b"<xmi:XMI/>", "XML or HTML"), ("a.spacy", b"x\x9c", "spaCy's binary form"),
    ("a", b"PAR1\x15", "Parquet"), ("a.parquet", b"PAR1", "Parquet"),
    ("a.csv", b"PK\3\4x", "a workbook"),
    ("a.txt", b"123|t|A title\n123|a|An abstract\n123\t2\t7\ttitle\tDisease\n", "PubTator's form"),
    ("a.json", b'{"%TYPES": {}}', "UIMA's JSON"),
    ("a.json", b'{\n "data": [\n  1]}\n', "one JSON object over several lines")])
def test_other_forms_are_refused_by_their_names(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        read(tmp_path / name)


def test_the_form_is_told_by_the_ending_or_the_content(tmp_path):
    conllu = "# sent_id = 1\n1\ta\ta\tDET\t_\t_\t2\tdet\t_\t_\n"
    for name, content, form in (
            ("a.conll", conllu, "conllu"), ("b.conllu", "", "conllu"), ("c.tsv", "a\tO\n", "words"),
            ("d.txt", "[ O\n{ O\n", "words"), ("e", "{ O\n", "words"), ("f", "[\n\"\n", "words")):
        (tmp_path / name).write_text(content)
        assert form_of_words(str(tmp_path / name)) == form
    for name, content, form in (("g", "a\tb\n", "tsv"), ("h", "a,b\n", "csv"), ("i", "[{\"a\": 1}]",
                                                                               "jsonl")):
        (tmp_path / name).write_text(content)
        assert form_of_table(str(tmp_path / name)) == form


# CoNLL-U

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


def write_conllu(path, rows=ROWS):
    lines = [line if line.startswith("#") else line.replace(" ", "\t") for line in rows.split("\n")]
    path.write_text("\n".join(lines).replace("\u00a0", " "), encoding="utf-8")
    return str(path)


def read_words(path, tag="upos"):
    return list(read_sentences(path, Split((path,), ("form",), tag, format="conllu"), Omissions()))


def test_words_are_the_syntactic_ones(tmp_path):
    assert read_words(write_conllu(tmp_path / "a.conllu")) == [
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
    assert read_words(write_conllu(tmp_path / "a.conllu"), column)[0][2] == tags


def test_a_feature_without_a_value_is_none(tmp_path):
    path = write_conllu(tmp_path / "a.conllu", "1 a a X _ Case= 0 root _ Typo|Gloss=the\n")
    assert [read_words(path, column)[0][2] for column in (
        "feats.Case", "misc.Typo", "misc.Gloss", "misc.Other")] == [["_"], ["_"], ["the"], ["_"]]


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
    found = read_words(path, column)
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
        read_words(write_conllu(tmp_path / "a.conllu", rows), tag)


def test_files_of_two_formats_are_refused():
    flags = TaskFlags(task_kind="tagging", train_file="train.conllu.gz", dev_file="dev.txt")
    with pytest.raises(InputError, match="--train_file=train.conllu.gz is read as conllu and "
                                         "--dev_file=dev.txt as words"):
        flags.read_task()


@pytest.mark.parametrize("column, labels", [
    ("", ("ADP", "CCONJ", "DET", "NOUN", "NUM", "PRON", "PROPN", "VERB", "X")),
    ("feats.Number", ("Dual", "Plur", "Sing", "_"))])
def test_flags_find_the_tags_of_all_files(tmp_path, column, labels):
    write_conllu(tmp_path / "train.conllu")
    write_conllu(tmp_path / "dev.conllu", "1 x x X _ Number=Dual 0 root _ _\n")
    flags = TaskFlags(task_kind="tagging", data_dir=str(tmp_path), train_file="train.conllu",
                      dev_file="dev.conllu", label_column=column)
    sources = flags.find_sources(flags.read_task(), [])
    assert sources[0].task.labels == labels
    assert [len(list(source.examples())) for source in sources] == [2, 1]
    assert sources[0].task.metrics == ("tag_accuracy",)


@pytest.mark.parametrize("mark", ["I-", "I---------"])
def test_parts_of_speech_like_tags_of_entities_are_none(tmp_path, mark):
    """Interjections of treebanks in the style of PROIEL, and of the Prague treebank of Arabic."""
    write_conllu(tmp_path / "train.conllu", (
        f"1 x x INTJ {mark} _ 0 root _ _\n2 y y VERB V- _ 1 x _ _\n\n"
        f"1 x x INTJ {mark} _ 0 root _ _\n2 y y VERB B- _ 1 x _ _\n3 y y VERB S- _ 1 x _ _\n"))
    flags = TaskFlags(task_kind="tagging", data_dir=str(tmp_path), train_file="train.conllu",
                      label_column="xpos")
    task = flags.find_sources(flags.read_task(), [])[0].task
    assert set(task.labels) == {mark, "V-", "B-", "S-"} and task.metrics == ("tag_accuracy",)
    assert scheme_of(task.labels) == "bio"
