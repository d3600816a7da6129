"""The form of files to predict, told as in fine-tuning: no raw line of a structured file."""

import json
import os
import subprocess
import sys

import pytest

from bert_tf.errors import InputError
from bert_tf.files import as_file, is_pipe, shown_name, warn_of_tables
from bert_tf.tasks import forms
from bert_tf.tasks.rows import Omissions, json_rows
from bert_tf.tasks.saved_task import SavedTask
from bert_tf.tasks.task import OWN, Split, Task
from run_scripts import example_files

TAGGER = SavedTask(Task(OWN, "tagging", {}, ("O", "B-LOC", "B-PER", "I-LOC", "I-PER")), 32, True)
CLASSIFIER = SavedTask(Task(OWN, "classification", {}, ("neg", "pos")), 32, True,
                       columns={"texts": ["text"], "choices": []})
CONLLU = ("# sent_id = 1\n1\tAnn\tAnn\tPROPN\t_\t_\t2\tnsubj\t_\t_\n"
          "2\tleft\tleave\tVERB\t_\t_\t0\troot\t_\t_\n")
COLUMNS = "Ann B-PER\nleft O\n\nBob B-PER\nsaw O\n"
SPANS = '{"text": "Ann left.", "label": [[0, 3, "PER"]]}\n'


def form_of(folder, saved, name, content, column=""):
    (folder / name).write_text(content, encoding="utf-8")
    return example_files.form_of(str(folder / name), saved, column)


@pytest.mark.parametrize("name, content, form", [
    ("a.conllu", CONLLU, "conllu"), ("a.txt", CONLLU, "conllu"), ("a", CONLLU, "conllu"),
    ("a.txt", COLUMNS, "words"), ("a", COLUMNS, "words"), ("a.conll", "Ann\n", "words"),
    ("a.tsv", COLUMNS.replace(" ", "\t"), "words"), ("a.txt", "Ann U-PER\nleft O\n", "words"),
    ("a.txt", "Ann\nleft\n\nBob\n", "words"), ("a.txt", "# id = 1\nAnn\tX\nleft\tY\n", "words"),
    ("a.json", f"[{SPANS}]", "annotations"), ("a.jsonl", SPANS, "annotations"),
    ("a", SPANS, "annotations"), ("a.txt", "Ann left.\nBob saw Paris.\n", "lines"),
    ("a.txt", "Ann left .\nBob left .\n", "lines"), ("a.txt", "Ann\n", "lines"),
    ("a.txt", "", "lines")])
def test_the_form_of_a_file_for_a_tagger(tmp_path, name, content, form):
    assert form_of(tmp_path, TAGGER, name, content) == form


@pytest.mark.parametrize("content", ["Ann\nleft\n", "Ann N\nleft V\n. P\nBob N\nsaw V\n\n" * 3])
def test_lines_that_may_be_texts_or_words_are_refused(tmp_path, content):
    with pytest.raises(InputError, match="a.txt: its lines may be words or texts; give --input_fo"):
        form_of(tmp_path, TAGGER, "a.txt", content)


def test_texts_that_end_with_a_label_are_no_words(tmp_path):
    tagger = SavedTask(Task(OWN, "tagging", {}, ("NN", ".", "VB")), 32, True)
    for content in ("Ann left .\nBob came .\n", "Ann left town .\n\nBob left home .\n\n" * 9):
        assert form_of(tmp_path, tagger, "a.txt", content) == "lines"
    assert form_of(tmp_path, tagger, "a.txt", "Ann NN\nleft VB\n. .\n") == "words"


def test_a_tagger_reads_the_column_of_a_table(tmp_path):
    assert form_of(tmp_path, TAGGER, "a.tsv", "text\tn\na\t1\n", "text") == "tsv"
    assert form_of(tmp_path, TAGGER, "a.csv", "text,n\na,1\n", "text") == "csv"


@pytest.mark.parametrize("name, content, form", [
    ("a.json", "[]", "jsonl"), ("a.ndjson", "", "jsonl"), ("a", '[\n {\n  "text": "x"}]', "jsonl"),
    ("a.txt", '{"text": "x"}\n', "jsonl"), ("a", "text,label\nx,pos\n", "csv"),
    ("a.txt", "id\ttext\n1\tx\n", "tsv"), ("a", "text\nx\n", "tsv"), ("a", '"text","b"\n', "csv"),
    ("a.txt", "a text, and more\n", "lines"), ("a.txt", "[1] is a reference\n", "lines"),
    ("a.txt", '{x} "y"\n', "lines"), ("a.csv", "a,b\n", "csv")])
def test_the_form_of_a_file_for_a_classifier(tmp_path, name, content, form):
    assert form_of(tmp_path, CLASSIFIER, name, content) == form


@pytest.mark.parametrize("name, content, message", [
    ("a.conllu", CONLLU, "CoNLL-U, which is for taggers"), ("a", CONLLU, "CoNLL-U"),
    ("a.parquet", "PAR1", "Parquet"), ("a.xml", "<a/>", "XML"), ("a.xlsx", "PK", "a workbook")])
def test_a_classifier_refuses_other_forms(tmp_path, name, content, message):
    with pytest.raises(InputError, match=message):
        form_of(tmp_path, CLASSIFIER, name, content)


@pytest.mark.parametrize("name, content, what", [
    ("a.json", "[]", "JSON"), ("a", SPANS, "JSON"), ("a.csv", "a,b\n", "a table"),
    ("a.txt", CONLLU, "CoNLL-U"), ("a.conllu", CONLLU, "CoNLL-U")])
def test_texts_on_lines_have_no_other_form(tmp_path, name, content, what):
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=f"is {what}.* one text per line is read here"):
        forms.check_lines(str(tmp_path / name))
    (tmp_path / "b.txt").write_text("a text\n")
    forms.check_lines(str(tmp_path / "b.txt"))


@pytest.mark.parametrize("form, name, content, words", [
    ("conllu", "a.txt", CONLLU, [("Ann", "left")]), ("words", "a.txt", COLUMNS, [
        ("Ann", "left"), ("Bob", "saw")]), ("annotations", "a.json", SPANS, [("Ann", "left", ".")]),
    ("annotations", "a.json", '{"tokens": ["Ann", "left."]}', [("Ann", "left.")]),
    ("annotations", "a.json", '{"text": "Ann left."}', [("Ann", "left", ".")])])
def test_sentences_of_each_form_are_words(tmp_path, form, name, content, words):
    (tmp_path / name).write_text(content)
    found = list(example_files.read_words(str(tmp_path / name), form, TAGGER, "", Omissions()))
    assert [row.texts for row in found] == words
    assert found[0].cells == (json.loads(content) if form == "annotations"
                              else {"words": list(words[0])})


def test_a_list_of_objects_is_a_table_with_the_numbers_of_its_lines(tmp_path):
    rows = [{"text": "a", "n": n} for n in range(3)]
    for content, lines in ((json.dumps(rows), [1, 1, 1]), (json.dumps(rows, indent=1), [2, 6, 10]),
                           ("\n".join(map(json.dumps, rows)), [1, 2, 3])):
        (tmp_path / "a.json").write_text(content)
        assert list(json_rows(str(tmp_path / "a.json"))) == list(zip(lines, rows))


def test_a_pipe_is_read_as_often_as_needed(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    writing = "import sys; open(sys.argv[1], 'w').write('a,b\\n')"
    with subprocess.Popen([sys.executable, "-c", writing, tmp_path / "pipe.csv"]):
        path = as_file(str(tmp_path / "pipe.csv"))
    assert path.endswith("pipe.csv") and not is_pipe(path) and is_pipe(str(tmp_path / "pipe.csv"))
    assert path == as_file(str(tmp_path / "pipe.csv")) and as_file(path) == path
    assert forms.head(path) == forms.head(path) == b"a,b\n"
    assert shown_name(path) == str(tmp_path / "pipe.csv")


def test_tables_that_are_read_as_plain_text_are_told_of(capsys):
    warn_of_tables(["a.txt", "b.csv.txt", "c"])
    assert capsys.readouterr().err == ""
    warn_of_tables(["a.txt", "posts.CSV.gz", "b.jsonl"])
    assert "warning: posts.CSV.gz is read as plain text" in capsys.readouterr().err
    warn_of_tables(["a.txt", "page.html"])
    assert "page.html is read as plain text, with the tags of a web page" in capsys.readouterr().err


@pytest.mark.parametrize("separator", ",;\t|")
@pytest.mark.parametrize("names", [["text", "n"], ["a, b", "c;d", "e\tf"], ["c;d"], ["e\tf\r"]])
def test_csv_that_is_written_is_read_again(separator, names, tmp_path):
    path, texts = tmp_path / "a.csv", ["a\rb", "\r", "c\r\nd", "e\n", 'f,"', "g;h|i", ""]
    wanted = [{**dict.fromkeys(names, text), "predicted_label": "x"} for text in texts]
    with open(path, "w", encoding="utf-8", newline="") as file:
        write = example_files.writer("csv", file)
        for line, text in enumerate(texts):
            write(example_files.Row(line, text, dict.fromkeys(names, text), separator),
                  {"label": "x"})
    layout = Split((str(path),), ("predicted_label",), format="csv")
    rows = example_files.read_table(str(path), layout, Omissions())
    assert [row.cells for row in rows] == wanted


@pytest.mark.parametrize("form, wanted", [
    ("jsonl", r'{"text": "a", "id": "b \ud83d", "prediction": {"label": "x"}}'),
    ("csv", "text,id,predicted_label\na,b \\ud83d,x")])
def test_half_of_a_pair_beside_the_text_is_written_as_its_escape(form, wanted, tmp_path):
    """As in a message that was cut in the middle of an emoji."""
    row = example_files.Row(1, "a", {"text": "a", "id": "b \ud83d"})
    example_files.answer_rows(
        [row], "in.jsonl", str(tmp_path / "out"), lambda texts, where: [{"label": "x"}],
        lambda file: example_files.writer(form, file))
    assert (tmp_path / "out").read_text("utf-8") == f"{wanted}\n"
