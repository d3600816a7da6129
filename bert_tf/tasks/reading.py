"""Examples of a task from its files: texts as they are, labels as ids."""

import contextlib
import dataclasses
import os
import re
import reprlib
import typing
import unicodedata

from bert_tf.errors import InputError, counted, warn
from bert_tf.files import is_library_name, match_names, read_json, shown_name
from bert_tf.tasks import annotations, conllu, forms
from bert_tf.tasks.label_cells import Flags, form_of_cells, form_of_columns
from bert_tf.tasks.libraries import read_library
from bert_tf.tasks.rows import Omissions, Table, read_lines, read_sentences
from bert_tf.tasks.super_glue import FORMATS, read_rows
from bert_tf.tasks.tag_schemes import Seen, in_bio, way_of


class Example(typing.NamedTuple):
    """One example."""

    texts: list     # a text or two; the context and then the choices; the words to tag
    # An id, a number, 0 or 1 for each label, or the ids of the words' tags, as the task's kind
    # encodes it; 0 where the file has no label, as in the original.
    label: object
    document: int = 0       # the number of a sentence's document, or of a candidate's question


# Counts of `Omissions` that reading a file's rows changes.
_COUNTS = ("malformed", "without_label", "comments")
# Labels in small letters that other programs write where there is none.
_MISSING = ("nan", "<na>", "#n/a")


class KeptRows:
    """Rows of one file, which is read once if it is not larger than memory should hold."""

    _MOST = 1 << 26     # characters of texts

    def __init__(self):
        self._rows, self._counts = None, (0, 0, 0)

    def read(self, task, layout, path: str, omissions: Omissions) -> typing.Iterator[tuple]:
        """Yields (line, texts, unread label, document); the label is None if absent, and a list or
        `Flags` where there may be several."""
        if self._rows is not None:
            for name, count in zip(_COUNTS, self._counts, strict=True):
                setattr(omissions, name, getattr(omissions, name) + count)
            for line, texts, raw, document in self._rows:
                yield line, list(texts), raw, document
            return
        rows: list | None = []
        size, before = 0, [getattr(omissions, name) for name in _COUNTS]
        read = {**dict.fromkeys(_SENTENCES, _read_tags), "race": _read_articles,
                "folders": _read_folders, **dict.fromkeys(FORMATS, read_rows)}.get(
            layout.format, _read_table)
        for row in read(task, layout, path, omissions):
            if row[2] is not None and row[2] == task.without_label:
                omissions.without_label += 1
                continue
            if rows is not None:
                rows.append((row[0], tuple(row[1]), *row[2:]))
                size += sum(map(len, row[1]))
                if size > self._MOST:
                    rows = None
            yield row
        self._rows = rows
        self._counts = tuple(getattr(omissions, name) - count
                             for name, count in zip(_COUNTS, before, strict=True))

    def forget(self) -> None:
        """Drops the rows; the next `read` reads the file again."""
        self._rows = None


def read_examples(task, split: str, path: str, omissions: Omissions | None = None,
                  rows: KeptRows | None = None) -> typing.Iterator[Example]:
    """Yields the `Example`s of a split's file, for a task with known labels. `omissions` counts the
    lines that gave no example; `rows` keeps the rows of the file. Raises InputError for a malformed
    line, a missing column, an unknown label, or an empty file; names file and line."""
    layout, empty = task.split(split), True
    ids = {label.strip(): index for index, label in enumerate(task.labels)}
    omissions = omissions or Omissions()
    raw_rows = (rows or KeptRows()).read(task, layout, path, omissions)
    for line, texts, raw, document in task.kind.gather(task, raw_rows, path, omissions):
        where = f"{path}, line {line}"
        label = task.kind.label(task, ids, texts, raw, where)
        if split == "train":
            task.kind.check_taught(label, ids, where)
        yield Example(texts, label, document)
        empty = False
    if empty:
        raise InputError(f"{path} is empty: it must hold at least one example.")


def discover_labels(task, split: str, path: str, omissions: Omissions | None = None,
                    rows: KeptRows | None = None,
                    others: typing.Iterable[tuple[str, str, KeptRows]] = ()):
    """The task with the labels in a split's file, at least two: O first, numbers by size, those of
    flags in their order. `others` are further splits, files and rows with labels."""
    if task.labels or not task.kind.has_labels:
        return task
    if not task.kind.labels_are_classes:
        raise InputError(f"{path}: give --labels: first the label of the right candidate, then the "
                         "other label.")
    seen: set = set()
    for name, place, file_rows in ((split, path, rows or KeptRows()), *others):
        for *_, raw, _ in file_rows.read(task, task.split(name), place, omissions or Omissions()):
            if isinstance(raw, Flags):
                return task.kind.with_labels(task, raw.names)
            seen.update(raw if isinstance(raw, list) else [raw])
    if not seen:
        raise InputError(f"{path} holds no example with a label; name another file.")
    if len(seen) < task.kind.least_labels or None in seen:
        held = counted(len(seen - {None}), "label")
        raise InputError(f"{path}: its label column holds only {held}; name another column with "
                         "--label_column, or give all labels with --labels; in TextModel.fit, "
                         "with label_names.")
    try:
        labels = sorted(seen, key=lambda label: (int(label), label))
    except ValueError:
        labels = sorted(seen, key=lambda label: (label != "O", label))
    if missing := [label for label in labels if label.lower() in _MISSING]:
        warn(f"{path}: {missing[0]!r} is learned as a label, and may stand for none, as pandas and "
             "Excel write it; correct or remove these lines.")
    alike: dict[str, str] = {}
    for label in labels:
        if (other := alike.setdefault(_look(label), label)) != label:
            warn(f"{path}: the labels {ascii(other)} and {ascii(label)} look alike, and are "
                 "learned as two; if they are one, write it in one way.")
            break
    with contextlib.suppress(ValueError):
        if task.kind.name == "classification" and sum(float(label) % 1 for label in labels) > 0:
            warn(f"{path}: the {len(labels)} labels, such as {labels[0]}, are numbers, and are "
                 "learned as names of classes: to learn numbers, give --task_kind=regression, or "
                 "kind='regression' to TextModel.from_pretrained.")
    return task.kind.with_labels(task, labels)


def _look(label):
    """A label without what a reader may not see: case, blanks, marks of format, composition."""
    folded = unicodedata.normalize("NFKC", label.lower())
    return "".join(char for char in folded if unicodedata.category(char) not in ("Cf", "Zs"))


_SENTENCES = {forms.WORDS: read_sentences, forms.CONLLU: conllu.read_sentences,
              forms.ANNOTATIONS: annotations.read_sentences}


def _read_tags(task, layout, path, omissions):
    way = layout.tags
    if way is None and layout.label is not None:
        way = way_of(_tags_in(layout, path))
    for line, words, tags, document in _sentences(layout, path, omissions):
        yield line, words, None if layout.label is None else in_bio(tags, way), document


def with_tags_judged(task, paths: dict[str, str]):
    """Returns the task, whose files of words all write tags in one way: `Split.tags`. The way is
    judged over the files together, {split: path}: a sentence alone does not show it. Raises
    InputError if some tags name entities and others do not; names the line."""
    tagged = [split for split in paths if task.split(split).format in _SENTENCES
              and task.split(split).label is not None and not is_library_name(paths[split])]
    if not tagged:
        return task
    seen: dict[str, Seen] = {}
    for split in tagged:
        seen = _tags_in(task.split(split), paths[split], seen)
    way = way_of(seen)
    return dataclasses.replace(task, splits=task.splits | {
        split: dataclasses.replace(task.splits[split], tags=way) for split in tagged})


def _tags_in(layout, path, seen=None):
    """Returns {tag: `Seen`} of a file, and of those `seen` before."""
    seen = dict(seen or {})
    for line, _, tags, _ in _sentences(layout, path, Omissions(skip_malformed=True)):
        for tag in tags:
            count, where = seen.get(tag, (0, f"{shown_name(path)}, the sentence of line {line}"))
            seen[tag] = Seen(count + 1, where)
    return seen


def _sentences(layout, path, omissions):
    if is_library_name(path):       # which knows no documents: each sentence is one
        return ((number, row["words"], row["tags"], number)
                for number, row in read_library(path, "words"))
    return _SENTENCES[layout.format](path, layout, omissions)


def read_parts(task, split: str, path: str) -> list[str]:
    """The part of a split that each example is in, in their order; [] if the split has no parts.
    The parts of RACE are its folders, middle and high."""
    if task.split(split).format != "race":
        return []
    parts = [part for _, part, article in _articles(path) for _ in article["questions"]]
    return parts if len(set(parts)) > 1 else []


def _articles(path):
    """Yields (name in errors, part, content) of the files of RACE below a folder."""
    if is_library_name(path):
        for _, article in read_library(path, "race"):
            # An id begins with its folder, middle or high.
            yield f"{path}, article {article['id']}", re.split("[^a-z]", article["id"])[0], article
        return
    names = match_names(path, "**/*.txt")
    if not names:
        raise InputError(f"{path} has no files *.txt; name the folder of RACE's official files.")
    for file in names:
        yield file, os.path.basename(os.path.dirname(file)), read_json(file)


def _read_articles(task, layout, path, omissions):
    count = 0       # of the first question's options
    for file, _, article in _articles(path):
        number = 0
        try:
            if not isinstance(text := article["article"], str):
                raise TypeError(f"the article is {text!r}")
            for number, (question, options) in enumerate(zip(
                    article["questions"], article["options"], strict=True), 1):
                if "_" not in question:
                    question += " _"
                # As XLNet's code; ALBERT's first drops blanks at the ends of question and option.
                choices = [question.replace("_", option) for option in options]
                count = count or len(choices)
                if len(choices) != count:
                    raise ValueError(f"{counted(len(choices), 'option')}, but the first has "
                                     f"{count}")
                answer = article[layout.label][number - 1] if layout.label else "A"
                if (label := ord(answer) - ord("A")) not in range(count):
                    raise ValueError(f"answer {answer!r} of {counted(count, 'option')}")
                yield number, [text, *choices], layout.label and str(label), 0
        except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
            raise InputError(f"{file}, question {number} is not in RACE's format "
                             f"({type(error).__name__}: {error}); correct it.") from error


def _read_folders(task, layout, path, omissions):
    for label in task.labels:
        files = match_names(os.path.join(path, label), "*.txt")
        if not files:
            raise InputError(f"{path} has no folder {label} with files *.txt; name the folder of "
                             f"{task.name}'s official files.")
        for number, file in enumerate(files, 1):
            text = "\n".join(line for _, line in read_lines(file))
            yield number, [without_breaks(text, layout)], label, 0


def without_breaks(text: str, layout) -> str:
    """Returns the text stripped, with blanks for line breaks (zihangdai/xlnet, run_classifier.py,
    `ImdbProcessor`); the same text where the layout has no such mark."""
    return text.strip().replace(layout.line_break, " ") if layout.line_break else text


def _read_table(task, layout, path, omissions):
    table = Table(path, layout, omissions)
    text_keys = table.keys(layout.texts)
    choice_keys = table.keys(layout.choices, are_choices=True)
    label_of = _label_reader(task, layout, path, table, [*text_keys, *choice_keys])
    only_key, only = None, None
    if layout.only:
        [only_key], only = table.keys(layout.only[:1]), layout.only[1]
    for line, row in table:
        if only and row[only_key] != only:
            continue
        # Of Prodigy, whose annotator rejected the label or ignored the text.
        if layout.label is not None and isinstance(row, dict) and "_task_hash" in row and (
                row.get("answer") in ("reject", "ignore")):
            omissions.without_label += 1
            continue
        where = f"{path}, line {line}"
        try:
            cells = texts_of(row, layout, text_keys, choice_keys)
            raw = label_of and label_of(row, where)
        except Malformed as problem:
            omissions.add_malformed(where, str(problem))
            continue
        yield line, cells, raw, 0


class Malformed(Exception):
    """A row that gives no example; the message says what the row has or lacks."""


def texts_of(row, layout, text_keys: list, choice_keys: list) -> list[str]:
    """The texts of an example in a row of a table: the cells of the columns, or the context and the
    choices, each after their common beginning if there is one. `layout` has the fields of a `Split`
    that say how cells are read. Raises Malformed if a cell has no text, or choices are missing."""
    keys = *text_keys, *choice_keys
    cells = [_cell(row, key) for key in keys]
    for cell in cells:
        if not isinstance(cell, str):
            advice = ""
            if isinstance(cell, dict) and "0" in cell:
                advice = (", as a file of columns has; pandas writes rows with "
                          "to_json(orient=\"records\")")
            elif isinstance(cell, list) and choice_keys:
                advice = "; give each choice a key of its own, such as choice0"
            raise Malformed(f"has {reprlib.repr(cell)} where text must be{advice}")
    cells = [without_breaks(cell, layout) for cell in cells]
    if layout.words:
        words = {(column, cell): text for column, cell, text in layout.words}
        cells = [words.get(place, place[1]) for place in zip(keys, cells)]
    if not choice_keys:
        return cells
    (context, *beginning), choices = cells[:len(text_keys)], cells[len(text_keys):]
    begins = tuple(column[:-1] for column in layout.choices if column.endswith("*"))
    has_more = isinstance(row, dict) and any(
        name.startswith(begins) and name not in choice_keys for name in row)
    if has_more or not all(choices):
        raise Malformed(f"does not have {len(choice_keys)} choices, as line 1 has")
    return [context, *(" ".join([*beginning, choice]) for choice in choices)]


def _label_reader(task, layout, path, table, text_keys):
    """Returns the function (row, name of the line) that reads the label of a row of a table; None
    where rows have none."""
    if layout.label is None:
        return None
    if task.kind.has_several_labels:
        return _labels_reader(task, layout, path, table, text_keys)
    several = ""
    if "," in str(layout.label):
        several = ", and --multi_label reads several columns"
    key, = table.keys([layout.label], several)[:1]
    _check_apart([key], text_keys, layout, path)
    name = table.names[key] if table.names and isinstance(key, int) else layout.label
    is_number = False
    if not task.kind.has_labels:
        with contextlib.suppress(ValueError):
            float(name)
            is_number = True

    def read(row, where):
        raw = _cell(row, key)
        if isinstance(raw, dict):
            raise InputError(f"{where}: the label is {reprlib.repr(raw)}, which is no name or "
                             "number; name another column with --label_column.")
        for column, cell, text in layout.words:
            if column == layout.label and raw == cell:
                raw = text
        try:
            raw = task.kind.read_cell(raw)
        except ValueError:
            raise InputError(f"{where}: the label is a list; give --multi_label, or name another "
                             "column with --label_column.") from None
        if raw is None:
            raise Malformed("has no label")
        if name != layout.label and (raw == name or is_number):     # it was given by its number
            warn(f"{path}: line 1 is read as the names of columns, but has the label {name!r}; if "
                 "it is an example, give --header=False.")
        return raw

    return read


def _check_apart(keys, text_keys, layout, path):
    """Raises InputError if a label's column is also a text's."""
    if not set(keys).isdisjoint(text_keys):
        raise InputError(f"{path}: column {layout.label!r} is the text and also the label; name "
                         "the right column with --label_column.")


def _labels_reader(task, layout, path, table, text_keys):
    """Returns the `_label_reader` of a task with several labels an example, in a column or in one
    column each. All cells decide about their form, so that the file is read twice."""
    columns = [layout.label]
    if isinstance(layout.label, str) and layout.label not in (table.names or ()):
        columns = [name.strip() for name in layout.label.split(",")]
    keys = table.keys(columns)
    _check_apart(keys, text_keys, layout, path)
    rows = Table(path, layout, Omissions(skip_malformed=True))
    if len(keys) == 1:
        key, = keys
        form = form_of_cells(((line, _cell_or_none(row, key)) for line, row in rows), task.labels,
                             path)
    else:
        names = table.names and [name if isinstance(name, str) else table.names[name]
                                 for name in keys]
        form = form_of_columns(([_cell_or_none(row, key) for key in keys] for _, row in rows),
                               names, len(keys), task.labels, path)

    def read(row, where):
        cells = [_cell(row, key) for key in keys]
        try:
            return form.read(cells[0] if len(keys) == 1 else cells)
        except ValueError as problem:
            raise Malformed(str(problem)) from None

    return read


def _cell(row, key):
    try:
        return row[key]
    except KeyError as error:
        raise Malformed(f"has no {error}") from None


def _cell_or_none(row, key):
    return row.get(key) if isinstance(row, dict) else row[key]
