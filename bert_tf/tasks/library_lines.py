"""The rows of a library's data set in the form of a task's official file, for the readers of such
files."""

import functools
import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from bert_tf.errors import InputError
from bert_tf.tasks.libraries import has_configuration, official_rows, split_of

Row = dict[str, Any]
# Labels that official files write otherwise than classes are named; of a hidden class they have no
# label.
_LABELS = {"False": False, "True": True, "choice1": 0, "choice2": 1}
_HIDDEN = -1
_SPAN = ("span1_index", "span1_text", "span2_index", "span2_text")


def _labelled(row: Row) -> Row:
    label = row.get("label", _HIDDEN)
    rest = {key: value for key, value in row.items() if key != "label"}
    return rest if label == _HIDDEN else {**rest, "label": _LABELS.get(label, label)}


def _schemas(rows):
    """Yields lines of WSC."""
    for row in map(_labelled, rows):
        yield {**row, "target": {key: row[key] for key in _SPAN}}


def _passages(rows):
    """Yields lines of MultiRC, of rows for answers."""
    for number, group in itertools.groupby(rows, lambda row: row["idx"]["paragraph"]):
        answers = list(group)
        yield {"idx": number, "passage": {"text": answers[0]["paragraph"], "questions": [
            _question(*pair) for pair in itertools.groupby(
                answers, lambda row: row["idx"]["question"])]}}


def _question(number, rows):
    rows = [_labelled(row) for row in rows]
    return {"idx": number, "question": rows[0]["question"], "answers": [
        {"idx": row["idx"]["answer"], "text": row["answer"],
         **({"label": row["label"]} if "label" in row else {})} for row in rows]}


def _clozes(rows):
    """Yields lines of ReCoRD, one for each query; entities come in the order of the passage."""
    for row in rows:
        text, spans = row["passage"], row.get("entity_spans")
        if spans:
            places = list(zip(spans["start"], spans["end"], strict=True))
        else:
            places = sorted((at := text.index(entity), at + len(entity))
                            for entity in row["entities"])
        yield {"idx": row["idx"]["passage"],
               "passage": {"text": text, "entities": [
                   {"start": start, "end": end - 1} for start, end in places]},
               "qas": [{"idx": row["idx"]["query"], "query": row["query"],
                        "answers": [{"text": answer} for answer in row["answers"]]}]}


def _articles(rows):
    """Yields the files of RACE in their order, of rows for questions."""
    rows = sorted(rows, key=lambda row: row["example_id"])
    for name, group in itertools.groupby(rows, lambda row: row["example_id"]):
        asked = list(group)
        yield {**asked[0], "id": name, **{many: [row[one] for row in asked] for many, one in (
            ("questions", "question"), ("options", "options"), ("answers", "answer"))}}


def _paragraphs(rows):
    """Yields articles of SQuAD, one for each paragraph. A question of v2.0 without an answer is
    impossible, whether or not the rows say so."""
    paragraphs: dict[tuple, list] = {}
    for row in rows:
        texts, starts = row["answers"]["text"], row["answers"]["answer_start"]
        paragraphs.setdefault((row.get("title", ""), row["context"]), []).append({
            "id": row["id"], "question": row["question"],
            "is_impossible": bool(row.get("is_impossible", not texts)),
            "answers": [{"text": text, "answer_start": start}
                        for text, start in zip(texts, starts, strict=True)]})
    for (title, context), asked in paragraphs.items():
        yield {"title": title, "paragraphs": [{"context": context, "qas": asked}]}


def _documents(rows):
    """Yields questions of TriviaQA, with the texts of their documents."""
    for row in rows:
        yield {"QuestionId": row["question_id"], "Question": row["question"],
               "Answer": {"Aliases": row["answer"]["aliases"],
                          "NormalizedAliases": row["answer"]["normalized_aliases"]},
               **{key: [{"Filename": name, "Text": text} for name, text in zip(
                   row[column]["filename"], row[column][context], strict=True)]
                  for key, column, context in (
                      ("EntityPages", "entity_pages", "wiki_context"),
                      ("SearchResults", "search_results", "search_context"))}}


def _sentences(rows):
    """Yields the words of CoNLL-2003's sentences and the tags of their entities."""
    for row in rows:
        yield {"words": row["tokens"], "tags": row["ner_tags"]}


_FORMS: dict[str, Callable[[Iterable[Row]], Iterator[Row]]] = {
    "library": iter, "jsonl": functools.partial(map, _labelled),
    "wsc": _schemas, "multirc": _passages, "record": _clozes, "race": _articles,
    "squad": _paragraphs, "trivia_qa": _documents, "words": _sentences}


def read_library(name: str, form: str, rows: Iterable[Row] | None = None
                 ) -> Iterator[tuple[int, Row]]:
    """Yields (number from 1, line) of a data set's split.

    Args:
        form: of the official file, a format of `Split`, or "trivia_qa".
        rows: of a file; None: those of the data set.

    Raises:
        InputError: there is no such split, or its rows have another form.
    """
    if rows is None:
        known, split = split_of(name, "train")
        whole = f"{known}/all:{split}"      # RACE has a configuration for each kind of school
        rows = official_rows(name if form != "race" or has_configuration(name) else whole)
    try:
        yield from enumerate(_FORMS[form](rows), 1)
    except InputError:
        raise
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{name} does not have the usual columns of this task "
                         f"({type(error).__name__}: {error}); name another data set, or the folder "
                         "of the official files.") from error


def holds_documents(name: str) -> bool:
    """Returns whether the rows of a data set have TriviaQA's documents."""
    return "entity_pages" in next(official_rows(name), {})


def part_of(article: str) -> str:
    """Returns the folder of RACE that an article's id names, middle or high."""
    match = re.match("[a-z]+", article)
    return match[0] if match else ""
