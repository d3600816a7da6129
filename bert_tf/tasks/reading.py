"""Examples of a task from its files: texts as they stand, labels as ids."""

import math
import typing

from bert_tf.errors import InputError
from bert_tf.metrics import to_bio
from bert_tf.tasks.own import with_labels
from bert_tf.tasks.rows import Omissions, Table, read_sentences

LABEL_SEPARATOR = ","       # between the labels of one example, where it may have several


class Example(typing.NamedTuple):
    """One example.

    Attributes:
        texts: list of str: a text or two; the context and then the choices; the words to tag.
        label: id of the label; a number, in regression; 0 or 1 for each label, where there may be
            several; the ids of the words' tags. Where there is no label it is 0, as in the
            original.
        document: which document a sentence to tag stands in.
    """

    texts: list
    label: object
    document: int = 0


def read_examples(task, split, path, omissions=None):
    """Yields the `Example`s of a file.

    Args:
        task: `Task`, whose labels are known.
        split: name of the split.
        path: its file.
        omissions: `Omissions`, which counts the lines that gave no example.

    Raises:
        InputError: a malformed line, a missing column, a label that is not in the list, an empty
            file; names file and line.
    """
    layout, empty = task.split(split), True
    labels = {label: index for index, label in enumerate(task.labels)}
    for line, texts, raw, document in _read_raw(task, layout, path, omissions or Omissions()):
        label = _label_id(task, labels, texts, raw, f"{path}, line {line}")
        yield Example(texts, label, document)
        empty = False
    if empty:
        raise InputError(f"{path} is empty: it must hold at least one example.")


def discover_labels(task, split, path, omissions=None):
    """The task with the labels that the file of a split holds: O first, numbers by their size.

    Raises:
        InputError: there are fewer than two.
    """
    if task.labels or task.kind not in ("classification", "tagging"):
        return task
    found = set()
    for *_, raw, _ in _read_raw(task, task.split(split), path, omissions or Omissions()):
        found.update(raw if isinstance(raw, list) else [raw])
    if len(found) < 2 - task.multi_label or None in found:
        raise InputError(f"{path}: its label column holds only {len(found - {None})} label(s); "
                         "name another with --label_column, or give all labels with --labels.")
    try:
        found = sorted(found, key=int)
    except ValueError:
        found = sorted(found, key=lambda label: (label != "O", label))
    return with_labels(task, found)


def _read_raw(task, layout, path, omissions):
    """Yields (line, texts, label as it stands, document); the label is None where there is none,
    a list where there may be several.
    """
    rows = _read_tags if layout.format == "words" else _read_table
    for line, texts, raw, document in rows(task, layout, path, omissions):
        if raw is not None and raw == task.without_label:
            omissions.without_label += 1
        else:
            yield line, texts, raw, document


def _read_tags(task, layout, path, omissions):
    del task
    for line, words, tags, document in read_sentences(path, layout, omissions):
        where = f"{path}, the sentence of line {line}"
        yield line, words, None if layout.label is None else to_bio(tags, where), document


def _read_table(task, layout, path, omissions):
    table = Table(path, layout, omissions)
    text_keys = table.keys(layout.texts)
    choice_keys = table.keys(layout.choices)
    label_key = None if layout.label is None else table.keys([layout.label])[0]
    for line, row in table:
        try:
            cells = [row[key] for key in (*text_keys, *choice_keys)]
            raw = None if label_key is None else row[label_key]
        except KeyError as error:
            omissions.add_malformed(f"{path}, line {line}", f"has no {error}")
            continue
        if not all(isinstance(cell, str) for cell in cells):
            wrong = next(cell for cell in cells if not isinstance(cell, str))
            omissions.add_malformed(f"{path}, line {line}", f"has {wrong!r} where text must stand")
            continue
        if choice_keys:
            if not all(cells[len(text_keys):]) or _has_more(row, layout.choices, choice_keys):
                omissions.add_malformed(f"{path}, line {line}",
                                        f"does not have {len(choice_keys)} choices, as line 1 has")
                continue
            cells = _with_beginning(cells[:len(text_keys)], cells[len(text_keys):])
        if label_key is not None and not task.multi_label:
            if isinstance(raw, list):
                raise InputError(f"{path}, line {line}: a list stands where one label must; give "
                                 "--multi_label, or name another column with --label_column.")
            if raw is None or str(raw) == "":
                omissions.add_malformed(f"{path}, line {line}", "has no label")
                continue
            raw = str(raw)
        elif label_key is not None:
            raw = _names(raw)
        yield line, cells, raw, 0


def _has_more(row, columns, known):
    """Whether a row whose cells have names has more of "ending*" than the keys known."""
    begins = tuple(column[:-1] for column in columns if column.endswith("*"))
    return isinstance(row, dict) and any(
        name.startswith(begins) and name not in known for name in row)


def _with_beginning(texts, choices):
    """The context and the choices, each after their common beginning if there is one."""
    context, *beginning = texts
    return [context, *(" ".join([*beginning, choice]) for choice in choices)]


def _names(raw):
    """The labels in a cell, or in a list of JSON."""
    names = raw if isinstance(raw, (list, tuple)) else str(raw).split(LABEL_SEPARATOR)
    return [name for name in (str(name).strip() for name in names) if name]


def _label_id(task, labels, texts, raw, where):
    if raw is None and not task.multi_label:
        return [0] * len(texts) if task.kind == "tagging" else 0
    if task.kind == "regression":
        return _number(raw, where, task.bounds or (-math.inf, math.inf))
    if task.kind == "multiple_choice":
        labels = {str(index): index for index in range(len(texts) - 1)}
    try:
        if task.multi_label:
            mine = {labels[name] for name in raw or ()}
            return [int(index in mine) for index in range(len(labels))]
        return [labels[tag] for tag in raw] if task.kind == "tagging" else labels[raw]
    except KeyError as error:
        raise InputError(f"{where}: label {error} is none of {', '.join(labels)}; mend the line, "
                         "or name the right column or all labels.") from None


def _number(raw, where, bounds):
    try:
        value = float(raw)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and bounds[0] <= value <= bounds[1]):
        wanted = f" from {bounds[0]} to {bounds[1]}" if math.isfinite(bounds[0]) else ""
        raise InputError(f"{where}: {raw!r} is not a number{wanted}; mend the line, or name the "
                         "column of the numbers.")
    return value
