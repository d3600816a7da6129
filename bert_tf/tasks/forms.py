"""The form of a user's file: told by the ending of its name, else by its first bytes. Fine-tuning,
prediction and the other commands that read examples share this rule."""

import os
import re

from bert_tf import files
from bert_tf.errors import InputError
from bert_tf.files import TABLES, shown_name

# Of files for a tagger.
CONLLU, ANNOTATIONS, WORDS = "conllu", "annotations", "words"
BRAT = ".ann"
WORD_ENDINGS = (".conll", ".iob", ".bio")

_HEAD = 1 << 16     # bytes
# What no command reads as text: endings of names, the pattern of the first bytes, and a way to a
# form that it reads.
_REFUSED = (
    ((".parquet", ".pq"), b"PAR1", "Parquet", "save it as JSON lines (pandas: to_json(path, "
     "orient=\"records\", lines=True))"),
    ((".xlsx", ".ods", ".docx", ".zip"), b"PK\3\4", "a workbook or an archive", "save it as .csv"),
    ((".xls", ".doc"), b"\xd0\xcf\x11\xe0", "a file of an office program", "save it as .csv"),
    ((".arrow", ".feather"), b"ARROW1", "Arrow", "save it as JSON lines (datasets: "
     "to_json(path))"),
    ((".pkl", ".pickle"), None, "a pickle of Python", "save it as JSON lines"),
    ((".spacy",), None, "spaCy's binary form", "save doc.to_json() of each text, one per line"),
    ((".xmi", ".xml", ".html", ".htm"), rb"<\?xml", "XML or HTML",
     "save it as CoNLL or JSON lines"),
    ((), b"#FORMAT=WebAnno TSV", "WebAnno's TSV", "export CoNLL 2002 from WebAnno or INCEpTION"),
    ((), b'{"%TYPES"', "UIMA's JSON", "export CoNLL 2002"),
    ((), rb"\d+\|t\|", "in PubTator's form", "convert it to CoNLL or JSON lines"),
)
OTHERS = tuple(ending for endings, *_ in _REFUSED for ending in endings)
_JSON = re.compile(rb'\s*(?:\{\s*(?:"|\})|\[\s*[{\[]\s*["}]|\[ ?"[^\n]*\])')
_CONLLU = re.compile(rb"(?:[^\S\n]*\n|#[^\n]*\n)*"
                     rb"(?:1|1-\d+|0\.1)\t(?:[^\t\n]+\t){8}[^\t\n]+(?:\n|$)")


def head(path: str) -> bytes:
    """Returns the first bytes of a file, unpacked and without a byte-order mark."""
    with files.open_unpacked(path) as file:
        return file.read(_HEAD).removeprefix(b"\xef\xbb\xbf")


def form_of(path: str) -> str:
    """Returns "tsv", "csv", "jsonl" or "conllu", or "" where nothing shows one of these. Raises
    InputError if the file has a form that no command reads; names it."""
    if files.is_library_name(path):
        return ""
    for part in ("*.arrow", "*/*.arrow") if files.is_folder(path) else ():
        for name in files.match_names(path, part):      # of a data set that its library saved
            form_of(name)       # which refuses it, and says what to do
    end, begins = files.ending(path), head(path) if files.is_file(path) else b""
    for endings, mark, name, advice in _REFUSED:
        if end in endings or mark and re.match(mark, begins):
            raise InputError(f"{shown_name(path)} is {name}, which is not read; {advice}.")
    if end in TABLES or end == f".{CONLLU}":
        return TABLES.get(end, CONLLU)
    if _JSON.match(begins):
        return "jsonl"
    return CONLLU if _CONLLU.match(begins) else ""


def form_of_words(path: str) -> str:
    """Returns the form of a file for a tagger: "conllu", "annotations" (JSON, or brat's .ann files
    beside their texts) or "words", one word per line. InputError: see `form_of`."""
    if files.is_library_name(path):
        return WORDS
    if is_brat(path):
        return ANNOTATIONS
    form = form_of(path)
    if form == "csv":
        raise InputError(f"{shown_name(path)} is a table (.csv), and a tagger reads one word per "
                         "line, CoNLL-U or JSON; convert it.")
    return {"jsonl": ANNOTATIONS, CONLLU: CONLLU}.get(form, WORDS)


def is_brat(path: str) -> bool:
    """Returns whether a name is a file or a folder of brat: .ann, or the text beside it."""
    body, end = os.path.splitext(path)
    return end == BRAT or end == ".txt" and files.is_file(body + BRAT) or files.is_folder(path)


def words_in(path: str) -> str:
    """Returns the name of a form that is for taggers alone, if a file has it; else ""."""
    names = {**dict.fromkeys(WORD_ENDINGS, "tagged words"), BRAT: "a file of brat"}
    return names.get(files.ending(path)) or {CONLLU: "CoNLL-U"}.get(form_of(path), "")


def form_of_table(path: str) -> str:
    """Returns the form of a table: "tsv", "csv" or "jsonl". The first line of a pipe, which has no
    ending, tells "tsv" from "csv". Raises InputError if neither the ending nor the file's beginning
    shows its form."""
    form = form_of(path)
    if not form and not files.ending(path) and files.is_file(path):
        line = head(path).partition(b"\n")[0]
        marks = {b"\t": "tsv", b",": "csv", b";": "csv"}
        form = next((marks[mark] for mark in marks if mark in line), "")
    if not form and files.is_folder(path):
        raise InputError(f"{shown_name(path)} is a folder; name a file in it.")
    if form not in TABLES.values():
        raise InputError(f"{shown_name(path)} must have the extension {', '.join(TABLES)}, which "
                         "names its format; .gz or another compression may follow.")
    return form


def check_lines(path: str) -> None:
    """Raises InputError if a file that has one text per line has another form."""
    form = form_of(path)
    if form or words_in(path):
        name = words_in(path) or {"jsonl": "JSON"}.get(form, f"a table (.{form})")
        raise InputError(f"{shown_name(path)} is {name}, and one text per line is read here; save "
                         "its texts so, in a .txt file.")
