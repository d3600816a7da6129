"""Sequences of ERNIE 2.0's tasks of sentences (arXiv:1907.12412, section 4): pairs of texts with a
label, a paragraph in another order, and two segments at some distance.

Pairs come from a user's file: the authors' data were not published. A line is text, tab, text, tab,
label; or a JSON object with the keys of `KEYS`. No code was published; comments mark the choices
that the paper leaves open.
"""

import itertools
import json
import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from bert_tf.data.segments import pairing
from bert_tf.data.segments.pairing import cut_to_room
from bert_tf.data.text.corpus import Documents
from bert_tf.data.text.python_random import PythonRandom
from bert_tf.errors import InputError
from bert_tf.files import open_unpacked
from bert_tf.recipes.recipe import Segments

KEYS = ("text_a", "text_b", "label")
_SHOWN = 60     # characters of a line in an error


def read_pairs(lines: Iterable[str], name: str) -> Iterator[tuple[str, str, str]]:
    """Yields the texts and the label of each line that is not blank. Raises InputError if a line is
    not a pair with a label; names its number and its beginning."""
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
    """The labels of files in the order of their ids: numbers by size, else as sorted."""
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
    """The lines of a text with a document of two sentences for each pair, and the labels' ids."""
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
    """Gives documents of two sentences their labels. Raises InputError if a text has no token."""
    whole = sum(end - first == 2 for first, end in documents.ranges)
    if not len(labels) == len(documents.ranges) == whole:
        raise InputError(f"{name}: of {len(labels):,} pairs, {whole:,} have tokens in both texts; "
                         "leave out the others, whose text is control characters, for example.")
    documents.pair_labels = labels


def labelled_pairs(documents: Documents, stream: PythonRandom, room: int, options,
                   segments: Segments) -> Iterator:
    """Yields each document's two sentences, cut as BERT's pairs, once, with its label."""
    starts = documents.sentence_starts
    for (first, end), label in zip(documents.ranges, documents.pair_labels, strict=True):
        a_length, b_length = starts[first + 1] - starts[first], starts[end] - starts[first + 1]
        yield *cut_to_room(starts[first], a_length, starts[first + 1], b_length, room,
                           stream), label


MOST_PARTS = 3
ORDERS = sum(math.factorial(parts) for parts in range(1, MOST_PARTS + 1))
ADJACENT, SAME_DOCUMENT, OTHER_DOCUMENT = range(3)


def permutation(label: int) -> tuple[int, ...]:
    """Returns the order of a paragraph's parts that a label means: part `permutation(label)[j]` is
    seen as the j-th. One part is label 0, two are 1 and 2, and so on, in the order of
    `itertools.permutations`."""
    for parts in range(1, MOST_PARTS + 1):
        if label < math.factorial(parts):
            return next(itertools.islice(itertools.permutations(range(parts)), label, None))
        label -= math.factorial(parts)
    raise ValueError(f"there are {ORDERS} orders")


def sentence_reordering(documents: Documents, stream: PythonRandom, room: int, options,
                        segments: Segments) -> Iterator:
    """Cuts paragraphs between sentences into 1 to 3 parts, and draws the order of the parts. Each
    possible number of parts is equally likely, and each order. A separator is between two parts,
    and all parts are segment A: there is no B. The paragraphs are added to `documents`. For the
    arguments see `Pairing.draw`, for the label `permutation`."""
    starts, tokens = documents.sentence_starts, documents.tokens
    separator = np.array([documents.sep_id], tokens.dtype)
    stream.shuffle(documents.ranges)
    slices, added, origins, end_of_all = [], [], [], len(tokens)
    for _ in range(options.dupe_factor):
        for first, end in documents.ranges:
            while first < end:
                target = pairing.target_length(stream, room - MOST_PARTS + 1,
                                               options.short_seq_prob)
                # As many sentences as fit, one at least.
                last = bisect_left(starts, starts[first] + target + 1, first + 1, end + 1) - 1
                last = max(last, first + 1)
                parts = 1 + stream.below(min(MOST_PARTS, last - first))
                places = list(range(first + 1, last))
                stream.shuffle(places)
                cuts = [first, *sorted(places[:parts - 1]), last]
                number = stream.below(math.factorial(parts))
                label = sum(map(math.factorial, range(1, parts))) + number
                pieces, places_of = [], []
                for part in permutation(label):
                    run = np.arange(starts[cuts[part]], starts[cuts[part + 1]])
                    pieces += [separator, tokens[run]]
                    places_of += [np.array([-1]), run]
                length = sum(map(len, pieces[1:]))
                slices.append((end_of_all, length, 0, 0, label))
                added += pieces[1:]
                origins += places_of[1:]
                end_of_all += length
                first = last
    documents.append(added, origins)
    return iter(slices)


def sentence_distance(documents: Documents, stream: PythonRandom, room: int, options,
                      segments: Segments) -> Iterator:
    """Yields two segments that are adjacent, of one document but not adjacent, or of two documents.
    The label is `ADJACENT`, `SAME_DOCUMENT` or `OTHER_DOCUMENT`. Segments are gathered, divided and
    cut as BERT's pairs. The relation is drawn from those that are possible at this place, each
    equally likely."""
    starts, ranges = documents.sentence_starts, documents.ranges
    stream.shuffle(ranges)
    for _ in range(options.dupe_factor):
        for index, (begin, end) in enumerate(ranges):
            first, target = begin, pairing.target_length(stream, room, options.short_seq_prob)
            while first < end:
                split, last = pairing.gather(starts, first, end, target, stream)
                apart = [*range(begin, first - 1), *range(split + 1, end)]
                possible = [label for label, is_possible in (
                    (ADJACENT, split < last), (SAME_DOCUMENT, apart),
                    (OTHER_DOCUMENT, len(ranges) > 1)) if is_possible]
                if not possible:
                    break
                label = possible[stream.below(len(possible))]
                b_first, b_last, following = split, last, last
                if label != ADJACENT:
                    b_end, following = end, split
                    if label == OTHER_DOCUMENT:
                        b_first, b_end = pairing.random_sentence(documents, index, stream)
                    else:
                        b_first = apart[stream.below(len(apart))]
                        b_end = first - 1 if b_first < first else end
                    b_target = starts[b_first] + target - (starts[split] - starts[first])
                    b_last = bisect_left(starts, b_target, b_first + 1, b_end)
                a_length, b_length = starts[split] - starts[first], starts[b_last] - starts[b_first]
                yield *pairing.cut_to_room(starts[first], a_length, starts[b_first], b_length, room,
                                   stream), label
                first = following
