"""Pairs of texts whose labels a user's file gives.

ERNIE 2.0's tasks discourse relation and IR relevance (arXiv:1907.12412, section 4) have such pairs;
their data were not published. A line is text, tab, text, tab, label; or a JSON object with the keys
of `KEYS`.
"""

import json
from collections.abc import Iterable, Iterator, Sequence

from bert_tf.data.segments.pairs import cut_to_room
from bert_tf.data.text.corpus import Documents
from bert_tf.data.text.python_random import PythonRandom
from bert_tf.errors import InputError
from bert_tf.files import open_unpacked
from bert_tf.recipes.recipe import Segments

KEYS = ("text_a", "text_b", "label")
_SHOWN = 60     # characters of a line in an error


def read_pairs(lines: Iterable[str], name: str) -> Iterator[tuple[str, str, str]]:
    """Yields the texts and the label of each line that is not blank.

    Raises:
        InputError: a line is not a pair with a label; names its number and its beginning.
    """
    for number, line in enumerate(lines, 1):
        line = line.removeprefix("\ufeff").rstrip("\r\n")
        if not line.strip():
            continue
        try:
            if line.lstrip().startswith("{"):
                row = json.loads(line)
            else:
                row = dict(zip(KEYS, line.split("\t"), strict=True))
            text_a, text_b, label = ("" if row[key] is None else str(row[key]).strip()
                                     for key in KEYS)
        except (KeyError, ValueError):
            text_a = text_b = label = ""
        if not (text_a and text_b and label):
            raise InputError(f"{name}, line {number} ({line[:_SHOWN]!r}) is not a pair with a "
                             "label; give text, tab, text, tab, label, or a JSON object with "
                             f"{', '.join(KEYS)}.")
        yield text_a, text_b, label


def find_labels(paths: Iterable[str]) -> list[str]:
    """Returns the labels of files in the order of their ids: numbers by size, else as sorted."""
    labels: set[str] = set()
    for path in paths:
        with open_unpacked(path) as file:
            labels.update(label for *_, label in read_pairs(
                (line.decode("utf-8", "replace") for line in file), path))
    try:
        return sorted(labels, key=int)
    except ValueError:
        return sorted(labels)


def as_documents(lines: Sequence[str], labels: Sequence[str], name: str
                 ) -> tuple[list[str], list[int]]:
    """Returns the lines of a text that has a document of two sentences for each pair, and the ids
    of the pairs' labels; see `read_pairs`."""
    ids = {label: number for number, label in enumerate(labels)}
    text: list[str] = []
    label_ids = []
    for text_a, text_b, label in read_pairs(lines, name):
        if label not in ids:
            raise InputError(f"{name}: a pair has the label {label!r}, which is none of --labels="
                             f"{','.join(labels)}; add it, or correct the line.")
        text += [" ".join(text_a.splitlines()), " ".join(text_b.splitlines()), ""]
        label_ids.append(ids[label])
    return text, label_ids


def give_labels(documents: Documents, labels: list[int], name: str) -> None:
    """Gives documents of two sentences their labels.

    Raises:
        InputError: a text has no token.
    """
    whole = sum(end - first == 2 for first, end in documents.ranges)
    if not len(labels) == len(documents.ranges) == whole:
        raise InputError(f"{name}: of {len(labels):,} pairs, {whole:,} have tokens in both texts; "
                         "leave out the others, whose text is control characters, for example.")
    documents.pair_labels = labels


def labelled_pairs(documents: Documents, stream: PythonRandom, room: int, options,
                   segments: Segments) -> Iterator:
    """Yields each document's two sentences, cut as BERT's pairs, with its label: once, whatever
    `dupe_factor` says, as nothing else is drawn."""
    starts = documents.sentence_starts
    for (first, end), label in zip(documents.ranges, documents.pair_labels, strict=True):
        a_length, b_length = starts[first + 1] - starts[first], starts[end] - starts[first + 1]
        yield *cut_to_room(starts[first], a_length, starts[first + 1], b_length, room,
                           stream), label
