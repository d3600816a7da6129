"""Questions of TriviaQA (arXiv:1705.03551), of MRQA's shared task (arXiv:1910.09753) and of the
library datasets in the form of SQuAD.

TriviaQA's file is qa/NAME.json of its archive; a document is evidence/wikipedia/FILE or
evidence/web/FILE next to the folder qa. As in section 4.2 of arXiv:1810.04805, a document's first
400 words are read, and one to train on must hold an answer. Questions, documents and answers count
as in mandarjoshi90/triviaqa, evaluation/triviaqa_evaluation.py: a question of Wikipedia is one
whatever its documents. MRQA's file has JSON lines, with a header. The library's rows of SQuAD are
JSON lines or a list: a question each, with its paragraph."""

import collections
import itertools
import json
import os
import re
from collections.abc import Iterator
from typing import Any

from bert_tf.errors import InputError
from bert_tf.files import absolute, is_file, is_library_name, open_unpacked
from bert_tf.tasks.forms import head
from bert_tf.tasks.json_elements import read_elements
from bert_tf.tasks.libraries import official_rows, read_library
from bert_tf.tasks.rows import json_rows, read_lines

# Keys of questions: all right answers, wherever they are; the id that an official script knows.
ALIASES, OFFICIAL = "aliases", "official_id"
_MOST_WORDS = 400       # of a document of TriviaQA
_WORD = re.compile(r"\S+")
# The first key of a file, which shows its form; SQuAD's keys are "version" and "data".
_FORMS = {"trivia_qa": re.compile(rb'\s*\{\s*"(Data|Domain|Split|VerifiedEval|Version)"\s*:'),
          "mrqa": re.compile(rb'\s*\{\s*"(header|context|id|qas|context_tokens)"\s*:')}
_ROW = re.compile(rb'\s*(?:\[\s*)?\{\s*"\w+"\s*:')
_FOLDERS = {"EntityPages": "wikipedia", "SearchResults": "web"}
# Keys of the whole file, which may follow all questions.
_IS_VERIFIED, _IS_WEB, _IS_WIKIPEDIA = (re.compile(pattern) for pattern in (
    rb'"VerifiedEval"\s*:\s*true', rb'"Domain"\s*:\s*"Web"', rb'"Domain"\s*:\s*"Wikipedia"'))
_BLOCK, _LONGEST_MATCH = 1 << 20, 1 << 8

Paragraph = tuple[str, list[tuple[dict, str]]]      # the text; questions, and their names in errors


def form_of(path: str) -> str | None:
    """Returns "trivia_qa", "mrqa" or "rows", or None for another file, such as SQuAD's."""
    if is_library_name(path):
        return "trivia_qa" if "entity_pages" in next(official_rows(path), {}) else None
    start = head(path)
    form = next((form for form, pattern in _FORMS.items() if pattern.match(start)), None)
    if form != "trivia_qa" and b'"data"' not in start and _ROW.match(start) and (
            {"context", "question"} <= next(_rows(path)).keys()):
        return "rows"
    return form


def read_questions(path: str, form: str, is_training: bool) -> Iterator[Paragraph]:
    """Yields paragraphs of a file of another form, with questions as SQuAD has them: the places of
    all answers, and all `aliases` under a key of their own. Raises InputError if the file has
    another form, or a document is not there."""
    if form != "rows":
        yield from {"mrqa": _read_mrqa, "trivia_qa": _read_trivia_qa}[form](path, is_training)
        return
    for _, article in read_library(path, "squad", _rows(path)):
        for paragraph in article["paragraphs"]:
            yield paragraph["context"], [(raw, f"{path}: question {raw['id']!r}")
                                         for raw in paragraph["qas"]]


def _rows(path):
    rows, unit = json_rows(path), "line"
    if head(path).lstrip().startswith(b"["):
        rows, unit = enumerate(read_elements(path), 1), "row"
    for number, row in rows:
        if not isinstance(row, dict):
            raise InputError(f"{path}, {unit} {number} is not a JSON object; correct the {unit}.")
        yield row


def _read_mrqa(path, is_training):
    for line, text in read_lines(path):
        try:
            row = json.loads(text)
            if "header" in row:
                continue
            context, asked = row["context"], []
            for question in row["qas"]:
                places = sorted({(int(start), int(end) + 1)
                                 for answer in question.get("detected_answers", ())
                                 for start, end in answer["char_spans"]})
                if places or not is_training:
                    asked.append((_question(question["qid"], question["question"], context, places,
                                            question.get("answers", ())),
                                  f"{path}: question {question['qid']!r}"))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path}, line {line} is not in MRQA's format "
                             f"({type(error).__name__}: {error}); correct it.") from error
        if asked:
            yield context, asked


def _read_trivia_qa(path, is_training):
    rows, (is_verified, is_web, is_one), text_of = _opened(path)
    for number, row in enumerate(rows):
        try:
            if is_verified and not row["QuestionPartOfVerifiedEval"]:
                continue
            answer = row.get("Answer") or {}
            aliases = list(dict.fromkeys([*answer.get("Aliases", ()),
                                          *answer.get("NormalizedAliases", ())]))
            right = [*answer.get("NormalizedAliases", aliases), *answer.get("HumanAnswers", ())]
            # By folder and file: some questions name a document twice.
            documents = {(folder, page["Filename"]): page for key, folder in _FOLDERS.items()
                         for page in row.get(key) or () if page.get("Filename") and not (
                             is_verified and is_web and not page["DocPartOfVerifiedEval"])}
            name, text = row["QuestionId"], row["Question"]
        except (AttributeError, KeyError, TypeError) as error:
            raise InputError(f"{path}: question {number} is not in TriviaQA's format "
                             f"({type(error).__name__}: {error}); correct it.") from error
        names = collections.Counter(file for _, file in documents)
        for (folder, file), page in documents.items():
            context = text_of(folder, page)
            ends = [word.end() for word in itertools.islice(_WORD.finditer(context), _MOST_WORDS)]
            context = context[:max(ends, default=0)]
            places = find_aliases(context, aliases)
            if places or not is_training:
                named = f"{name}--{folder}/{file}" if names[file] > 1 else f"{name}--{file}"
                question = _question(named, text, context, places, right)
                if is_one:
                    question[OFFICIAL] = name
                yield context, [(question, f"{path}: question {named!r}")]


def _opened(path):
    """Returns a file's questions; whether people verified the file, whether it is of the web, of
    Wikipedia; and the function of a folder and a page that returns a document's text."""
    if is_library_name(path):
        return ((row for _, row in read_library(path, "trivia_qa")),
                (False, False, "wikipedia" in path), lambda folder, page: page["Text"])
    evidence = os.path.join(os.path.dirname(os.path.dirname(absolute(path))), "evidence")

    def text_of(folder, page):
        document = os.path.join(evidence, folder, page["Filename"])
        if not is_file(document):
            raise InputError(f"{path} names the document {document}, which is missing; unpack the "
                             "whole archive of TriviaQA, with its folders qa and evidence.")
        with open_unpacked(document) as file:
            return file.read().decode("utf-8", "replace")

    return read_elements(path, "Data"), _find(path, _IS_VERIFIED, _IS_WEB, _IS_WIKIPEDIA), text_of


def _find(path, *patterns):
    is_there, tail = [False] * len(patterns), b""
    with open_unpacked(path) as file:
        while block := file.read(_BLOCK):
            tail += block
            is_there = [known or bool(pattern.search(tail))
                        for known, pattern in zip(is_there, patterns, strict=True)]
            tail = tail[-_LONGEST_MATCH:]
    return is_there


def _question(name: str, text: str, context: str, places: list, right: Any) -> dict:
    return {"id": name, "question": text, "is_impossible": False, ALIASES: list(right),
            "answers": [{"text": context[start:end], "answer_start": start}
                        for start, end in places]}


def find_aliases(text: str, aliases: list[str]) -> list[tuple[int, int]]:
    """Returns the places (first character, last one + 1) of whole words that are an alias, in any
    case, in the order of the text; where several begin at one place, the longest."""
    names = sorted({alias.strip() for alias in aliases} - {""}, key=len, reverse=True)
    if not names:
        return []
    pattern = "|".join(r"\s+".join(map(re.escape, alias.split())) for alias in names)
    return [match.span(1) for match in re.finditer(
        rf"(?<!\w)(?=({pattern})(?!\w))", text, re.IGNORECASE)]
