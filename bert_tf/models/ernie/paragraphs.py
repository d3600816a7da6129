"""Sequences of ERNIE 2.0's tasks of sentences (arXiv:1907.12412, section 4): a paragraph in another
order, and two segments at some distance.

No code for them was published; comments mark the choices that the paper leaves open.
"""

import itertools
import math
from bisect import bisect_left
from collections.abc import Iterator

import numpy as np

from bert_tf.data.segments import pairs
from bert_tf.data.text.corpus import Documents
from bert_tf.data.text.python_random import PythonRandom
from bert_tf.recipes.recipe import Segments

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
    """Cuts paragraphs between sentences into 1 to 3 parts, and draws the order of the parts.

    Each possible number of parts is equally likely, and each order. A separator is between two
    parts, and all parts are segment A: there is no B. The paragraphs are added to `documents`. For
    the arguments see `Pairing.draw`, for the label `permutation`.
    """
    starts, tokens = documents.sentence_starts, documents.tokens
    separator = np.array([documents.sep_id], tokens.dtype)
    stream.shuffle(documents.ranges)
    slices, added, origins, end_of_all = [], [], [], len(tokens)
    for _ in range(options.dupe_factor):
        for first, end in documents.ranges:
            while first < end:
                target = pairs.target_length(stream, room - MOST_PARTS + 1, options.short_seq_prob)
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
    The label is `ADJACENT`, `SAME_DOCUMENT` or `OTHER_DOCUMENT`.

    Segments are gathered, divided and cut as BERT's pairs. The relation is drawn from the relations
    that are possible at this place, each equally likely. `documents` stays as it is.
    """
    starts, ranges = documents.sentence_starts, documents.ranges
    stream.shuffle(ranges)
    for _ in range(options.dupe_factor):
        for index, (begin, end) in enumerate(ranges):
            first, target = begin, pairs.target_length(stream, room, options.short_seq_prob)
            while first < end:
                split, last = pairs.gather(starts, first, end, target, stream)
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
                        b_first, b_end = pairs.random_sentence(documents, index, stream)
                    else:
                        b_first = apart[stream.below(len(apart))]
                        b_end = first - 1 if b_first < first else end
                    b_target = starts[b_first] + target - (starts[split] - starts[first])
                    b_last = bisect_left(starts, b_target, b_first + 1, b_end)
                a_length, b_length = starts[split] - starts[first], starts[b_last] - starts[b_first]
                yield *pairs.cut_to_room(starts[first], a_length, starts[b_first], b_length, room,
                                   stream), label
                first = following
