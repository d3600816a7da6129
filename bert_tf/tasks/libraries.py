"""Rows of data sets by name, from the libraries that have them: tfds:NAME:SPLIT of
tensorflow_datasets, and hf://datasets/OWNER/NAME of the Hugging Face Hub by `datasets`; and their
rows in the form of a task's official file, for the readers of such files."""

import dataclasses
import functools
import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from bert_tf.errors import InputError, from_extra
from bert_tf.files import dataset_commit
from bert_tf.files.places import HUB, TFDS, first_line

_HUB_NAME = re.compile(r"hf://datasets/([\w.-]+(?:/[\w.-]+)?)(?:@([\w.-]+))?(?:/([\w.-]+))?(?::(.+))?")
_VERSION = re.compile(r"[\d*]+(?:\.[\d*]+){2}")       # of a data set of tensorflow_datasets
_CONVERTED = "refs/convert/parquet"
# Where a row of SuperGLUE may be in its file.
_PARTS = ("passage", "paragraph", "query", "question", "answer")
Row = dict[str, Any]
# Labels that official files write otherwise than classes are named; of a hidden class they have no
# label.
_LABELS = {"False": False, "True": True, "choice1": 0, "choice2": 1}
_HIDDEN = -1
_SPAN = ("span1_index", "span1_text", "span2_index", "span2_text")


@dataclasses.dataclass(frozen=True)
class DataSet:
    """A split of a data set, with all that says which version it is."""

    name: str
    config: str
    split: str
    commit: str = ""

    def rows(self, is_kept: bool = False) -> Iterator[dict[str, Any]]:
        """Yields rows of plain values; classes are their names. The library keeps a set `is_kept`
        on disk, for those who read it several times."""
        return _hub_rows(self, is_kept) if self.commit else _tfds_rows(self)


def split_of(name: str, default: str) -> tuple[str, str]:
    """Returns the name of a data set without its split, and the split, else `default`."""
    known, _, own = name.rpartition(":")
    if not known or known in ("hf", TFDS[:-1]) or _VERSION.fullmatch(own):
        return name, default
    return known, own


def find(name: str, split: str = "train") -> DataSet:
    """Returns the data set of a name, tfds:NAME or hf://datasets/OWNER/NAME[@REVISION][/CONFIG].

    The name ends in :SPLIT where it is not `split`. Raises InputError if the name has another form,
    or the Hub has no such data set."""
    if name.startswith(TFDS):
        known, own = split_of(name, split)
        return DataSet(known.removeprefix(TFDS), "", own)
    match = _HUB_NAME.fullmatch(name)
    if not match:
        raise InputError(f"{name}: write data sets of the Hub as hf://datasets/OWNER/NAME, and "
                         "optionally @REVISION, /CONFIGURATION and :SPLIT.")
    known, revision, config, own = match.groups()
    return DataSet(known, config or "", own or split,
                   dataset_commit(name, known, revision or "main"))


def has_configuration(name: str) -> bool:
    if name.startswith(TFDS):
        return "/" in name
    match = _HUB_NAME.fullmatch(name)
    return bool(match and match[3])


def pinned_name(name: str) -> str:
    """The name in the Hub of a data set with a revision or a configuration; "" of others."""
    match = _HUB_NAME.fullmatch(name)
    return match[1].rpartition("/")[2] if match and (match[2] or match[3]) else ""


def official_rows(name: str) -> Iterator[dict[str, Any]]:
    """Yields the rows of a data set in the order of the official file, where they count it in
    `idx`: tensorflow_datasets shuffles them."""
    rows = find(name).rows(is_kept=True)
    first = list(itertools.islice(rows, 1))
    if not first or "idx" not in first[0]:
        return itertools.chain(first, rows)

    def place(row):
        numbers = row["idx"]
        if not isinstance(numbers, dict):
            return numbers
        return [numbers[part] for part in _PARTS if part in numbers]

    return iter(sorted([*first, *rows], key=place))


def _tfds_rows(data_set):
    tfds = from_extra("tensorflow_datasets", "tfds", f"{TFDS}{data_set.name}")
    try:
        rows, info = tfds.load(data_set.name, split=data_set.split, with_info=True)
    except (ImportError, OSError, ValueError) as error:
        raise InputError(f"tensorflow_datasets has no split {data_set.split!r} of "
                         f"{data_set.name!r} ({type(error).__name__}: {first_line(error)}); name "
                         "one that it has.") from error
    for row in tfds.as_numpy(rows):
        yield _plain(row, info.features)


def _hub_rows(data_set, is_kept):
    datasets = from_extra("datasets", "datasets", f"{HUB}{data_set.name}")
    try:
        rows = _loaded(datasets, data_set, {"split": data_set.split, "streaming": not is_kept})
    except (OSError, ValueError, RuntimeError) as error:
        raise InputError(f"{HUB}{data_set.name}: there is no split {data_set.split!r}"
                         f"{f' of {data_set.config!r}' if data_set.config else ''} "
                         f"({type(error).__name__}: {first_line(error)}); name one that it has."
                         ) from error
    for row in rows:
        yield _plain(row, rows.features)


def _loaded(datasets, data_set, options):
    """Loads a split. Of a set that is a script, which the library no longer runs, the Hub has the
    rows as Parquet in a branch of its own."""
    name, config, split = data_set.name, data_set.config, data_set.split
    try:
        return datasets.load_dataset(name, config or None, revision=data_set.commit, **options)
    except RuntimeError as error:
        if "scripts are no longer supported" not in str(error):
            raise
    commit = dataset_commit(f"{HUB}{name}", name, _CONVERTED)
    files = f"{HUB}{name}@{commit}/{config or '*'}/{split}/*.parquet"
    return datasets.load_dataset("parquet", data_files={split: files}, **options)


def _plain(value, feature):
    """Returns str, int, float, or lists and dicts of these; `feature` is the library's description
    of the value, or None."""
    value = getattr(value, "to_list", getattr(value, "tolist", lambda: value))()
    # A list's feature holds the one of its parts, and a list of dicts is read as one.
    inner = getattr(feature, "feature", feature)
    if isinstance(value, dict):
        return {key: _plain(part, inner[key] if hasattr(inner, "keys") and key in inner else None)
                for key, part in value.items()}
    if isinstance(value, list):
        return [_plain(part, inner) for part in value]
    if isinstance(value, bytes):
        return value.decode("utf-8")
    names = getattr(feature, "names", None)
    # A class of -1 is hidden.
    return names[value] if names and isinstance(value, int) and value >= 0 else value


def _labelled(row: Row) -> Row:
    labelled = dict(row)
    label = labelled.pop("label", _HIDDEN)
    if label != _HIDDEN:
        labelled["label"] = _LABELS.get(label, label)
    return labelled


def _passages(rows):
    """Yields lines of MultiRC, of rows for answers."""
    for number, group in itertools.groupby(map(_labelled, rows),
                                           lambda row: row["idx"]["paragraph"]):
        questions: dict[Any, Row] = {}
        for row in group:
            question = questions.setdefault(row["idx"]["question"], {
                "idx": row["idx"]["question"], "question": row["question"], "answers": []})
            question["answers"].append({"idx": row["idx"]["answer"], "text": row["answer"], **{
                name: row[name] for name in ("label",) if name in row}})
            text = row["paragraph"]
        yield {"idx": number, "passage": {"text": text, "questions": list(questions.values())}}


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
    rows = sorted(rows, key=lambda row: row["example_id"])
    for name, group in itertools.groupby(rows, lambda row: row["example_id"]):
        asked = list(group)
        yield {**asked[0], "id": name, **{many: [row[one] for row in asked] for many, one in (
            ("questions", "question"), ("options", "options"), ("answers", "answer"))}}


def _paragraphs(rows):
    """Yields articles of SQuAD, one for each paragraph. A question of v2.0 with a list of no
    answers is impossible, whether or not the rows say so."""
    paragraphs: dict[tuple, list] = {}
    for row in rows:
        answers = row.get("answers")
        if isinstance(answers, dict):
            answers = [{"text": text, "answer_start": start} for text, start in zip(
                answers["text"], answers["answer_start"], strict=True)]
        paragraphs.setdefault((row.get("title", ""), row["context"]), []).append({
            "id": row["id"], "question": row["question"], "answers": answers or [],
            "is_impossible": bool(row.get("is_impossible", answers == []))})
    for (title, context), asked in paragraphs.items():
        yield {"title": title, "paragraphs": [{"context": context, "qas": asked}]}


def _documents(rows):
    for row in rows:
        yield {"QuestionId": row["question_id"], "Question": row["question"],
               "Answer": {"Aliases": row["answer"]["aliases"],
                          "NormalizedAliases": row["answer"]["normalized_aliases"]},
               **{key: [{"Filename": name, "Text": text} for name, text in zip(
                   row[column]["filename"], row[column][context], strict=True)]
                  for key, column, context in (
                      ("EntityPages", "entity_pages", "wiki_context"),
                      ("SearchResults", "search_results", "search_context"))}}


_FORMS: dict[str, Callable[[Iterable[Row]], Iterator[Row]]] = {
    "library": iter, "jsonl": functools.partial(map, _labelled),
    "wsc": lambda rows: ({**_labelled(row), "target": {key: row[key] for key in _SPAN}}
                         for row in rows),
    "multirc": _passages, "record": _clozes, "race": _articles, "squad": _paragraphs,
    "trivia_qa": _documents,
    # CoNLL-2003.
    "words": lambda rows: ({"words": row["tokens"], "tags": row["ner_tags"]} for row in rows)}


def read_library(name: str, form: str, rows: Iterable[Row] | None = None
                 ) -> Iterator[tuple[int, Row]]:
    """Yields (number from 1, line) of a data set's split. `form`: of the official file, a format of
    `Split`, or "trivia_qa". `rows`: of a file; None: those of the data set. Raises InputError if
    there is no such split, or its rows have another form."""
    remedy = "rename its columns, or add those that it lacks"
    if rows is None:
        remedy = "name another data set, or the folder of the official files"
        known, split = split_of(name, "train")
        whole = f"{known}/all:{split}"      # RACE has a configuration for each kind of school
        rows = official_rows(name if form != "race" or has_configuration(name) else whole)
    try:
        yield from enumerate(_FORMS[form](rows), 1)
    except InputError:
        raise
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{name} does not have the usual columns of this task "
                         f"({type(error).__name__}: {error}); {remedy}.") from error
