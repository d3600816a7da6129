"""Segments: which runs of text make a sequence. `PAIRINGS` holds every way of cutting them.

Segments are slices of the token array, so nothing is copied until records are written.
"""

import dataclasses
from bisect import bisect_left
from collections.abc import Callable, Iterator

from bert_tf.data.segments.pair_drawing import cut_to_room, gather, random_sentence, target_length
from bert_tf.data.text.corpus import Documents
from bert_tf.data.text.python_random import PythonRandom
from bert_tf.errors import InputError
from bert_tf.models.ernie.labelled_pairs import labelled_pairs
from bert_tf.models.ernie.paragraphs import ORDERS, sentence_distance, sentence_reordering
from bert_tf.models.roberta.blocks import doc_blocks, doc_sentences, full_sentences, lines, runs
from bert_tf.recipes.corruption import Segments

# Start of A, length of A, start of B, length of B (0: there is no B), label.
Slices = tuple[int, int, int, int, int]
# The labels of pairs with negatives="three_way".
IN_ORDER, SWAPPED, RANDOM = range(3)
# Of ELECTRA's segments: how often all text goes to the first, and the least length that is drawn.
_ONE_SEGMENT, _LEAST = 0.1, 5


@dataclasses.dataclass(frozen=True)
class Pairing:
    """A way of cutting sequences from documents.

    Attributes:
        draw: generator function of (documents, stream, room, options, segments), which yields
            `Slices`: sequences in the original's order of drawing. `documents` is a piece as
            `Documents`, whose ranges may be shuffled in place; `stream` a `PythonRandom`, which
            also draws masks as soon as a sequence is yielded; `room` the most tokens of a sequence
            without its special ones, a longer one being left out; `options` has
            `dupe_factor` and `short_seq_prob`; `segments` is the recipe's `Segments`.
        num_labels: number of classes of the label, the record feature `next_sentence_labels`;
            0 where there is no such feature.
        segments: most segments in a sequence, 1 or 2.
        in_order: whether sequences are written in the order of the text, not shuffled. The files
            are then read in a random order instead, and the end of each ends a document.
        in_rows: whether each record of a batch continues one of the batch before.
        in_streams: whether records have a part of a stream and the text after it.
        instances: the class of the instances, by its dotted name in `bert_tf`; empty: the recipe's.
        is_labelled: whether each line of the text is a pair of texts with a label.
    """

    draw: Callable[..., Iterator[Slices]] | None
    num_labels: int
    segments: int
    in_order: bool = False
    in_rows: bool = False
    in_streams: bool = False
    instances: str = ""
    is_labelled: bool = False


def segment_pairs(documents: Documents, stream: PythonRandom, room: int, options,
                  segments: Segments) -> Iterator[Slices]:
    """Pairs of sentences that follow each other or do not: `create_training_instances` of
    google-research/bert, and of google-research/albert where negatives are swapped.

    Yields `Slices`; the label is 1 where B is random, or A and B are swapped. With
    negatives="three_way" it is RANDOM where B is random; others are swapped later.
    """
    stream.shuffle(documents.ranges)
    for _ in range(options.dupe_factor):
        for index in range(len(documents.ranges)):
            yield from _document_pairs(documents, index, stream, room, options.short_seq_prob,
                                       segments)


def _document_pairs(documents, index, stream, room, short_seq_prob, segments):
    """Yields the pairs of one document, as the original's `create_instances_from_document`.

    Sentences are gathered until they reach a target length: usually `room`, with probability
    `short_seq_prob` a random shorter one. They are split at random into A and B. In half of the
    cases B is replaced by sentences of another document and the unused ones are put back, or A and
    B are swapped. A single sentence always gets a B of another document.
    """
    swaps, label = segments.negatives == "swapped", 1 + (segments.negatives == "three_way")
    starts, ranges = documents.sentence_starts, documents.ranges
    first, end = ranges[index]
    target = target_length(stream, room, short_seq_prob)
    while first < end:
        split, last = gather(starts, first, end, target, stream)
        a_start, a_length = starts[first], starts[split] - starts[first]
        is_single = last - first == 1
        is_negative = is_single or stream.random() < segments.random_share
        if is_negative and (is_single or not swaps):
            b_first, other_end = random_sentence(documents, index, stream)
            wanted = starts[b_first] + target - a_length
            b_last = bisect_left(starts, wanted, b_first + 1, other_end)
            first = split
        else:
            b_first, b_last = split, last
            first = last
        b_start, b_length = starts[b_first], starts[b_last] - starts[b_first]
        if is_negative and swaps and not is_single:
            a_start, a_length, b_start, b_length = b_start, b_length, a_start, a_length

        yield (*cut_to_room(a_start, a_length, b_start, b_length, room, stream),
               label * is_negative)


def sentence_pairs(documents: Documents, stream: PythonRandom, room: int, options,
                   segments: Segments) -> Iterator[Slices]:
    """Yields RoBERTa's SENTENCE-PAIR (arXiv:1907.11692): two sentences that follow each other in a
    document; in half of the cases, and at the document's end, B comes from another document. The
    label is the label of a random B in `segment_pairs`.

    The original's code is not public: the random numbers are drawn as for the shortest
    `segment_pairs`.
    """
    label = 1 + (segments.negatives == "three_way")
    starts, ranges = documents.sentence_starts, documents.ranges
    stream.shuffle(ranges)
    for _ in range(options.dupe_factor):
        for index, (first, end) in enumerate(ranges):
            while first < end:
                is_random = first + 1 == end or stream.random() < segments.random_share
                b = random_sentence(documents, index, stream)[0] if is_random else first + 1
                a_length, b_length = (starts[i + 1] - starts[i] for i in (first, b))
                yield *cut_to_room(starts[first], a_length, starts[b], b_length, room,
                                   stream), label * is_random
                first += 1 if is_random else 2


def electra_segments(documents: Documents, stream: PythonRandom, room: int, options,
                     segments: Segments) -> Iterator[Slices]:
    """Gathers sentences of one document up to a target length, and divides them in two at random
    (google-research/electra, build_pretraining_dataset.py, ExampleBuilder).

    A sentence goes to the first segment while that stays below half of the target, and in half of
    the cases also the sentence that would pass it. Once a longer sentence has begun the second
    segment, a shorter one may still go to the first. Such segments are not runs of the text, so
    copies of their tokens are added to `documents`.

    The random stream and the target continue from document to document and from file to file; the
    files were shuffled before they were read. `options` also has `max_seq_length`. B is empty in
    sequences of one segment, and the label is 0.
    """
    del segments        # there are no pairs to be positive or negative
    # The original shuffles the names of the files with this stream.
    stream.shuffle([None] * documents.files)
    starts, longest = documents.sentence_starts, options.max_seq_length
    target, slices = longest, []
    for _ in range(options.dupe_factor):
        for first, end in documents.ranges:
            while first < end:
                last = bisect_left(starts, starts[first] + target, first + 1, end)
                slices.append(_divide(documents, range(first, last), stream, room,
                                      target - (longest - room)))
                target = longest
                if stream.random() < options.short_seq_prob:
                    target = _LEAST + stream.below(longest - _LEAST + 1)
                first = last
    documents.add_copies()
    return iter(slices)


def _divide(documents, sentences, stream, room, target):
    """The `Slices` of some sentences, whose two segments are to have `target` tokens."""
    goal = 100000 if stream.random() < _ONE_SEGMENT else target // 2
    starts, length = documents.sentence_starts, 0
    parts: tuple[list, list] = [], []
    for sentence in sentences:
        more = starts[sentence + 1] - starts[sentence]
        in_first = not parts[0] or length + more < goal or (
            not parts[1] and length < goal and stream.random() < 0.5)
        parts[not in_first].append(sentence)
        length += more * in_first
    a_length = min(length, room + 1)    # one segment has one separator less
    b_length = min(starts[sentences[-1] + 1] - starts[sentences[0]] - length,
                   max(0, room - a_length))
    return (documents.place(parts[0]), a_length,
            documents.place(parts[1]) if b_length else 0, b_length, 0)


PAIRINGS = {
    "segment_pairs": Pairing(segment_pairs, num_labels=2, segments=2),
    "sentence_pairs": Pairing(sentence_pairs, num_labels=2, segments=2),
    "full_sentences": Pairing(full_sentences, num_labels=0, segments=1),
    "doc_sentences": Pairing(doc_sentences, num_labels=0, segments=1),
    "doc_blocks": Pairing(doc_blocks, num_labels=0, segments=1),
    "runs": Pairing(runs, num_labels=0, segments=1),
    "lines": Pairing(lines, num_labels=0, segments=1),
    "streams": Pairing(None, num_labels=2, segments=2, in_rows=True, in_streams=True,
                       instances="models.xlnet.records.StreamRecords"),
    **{name: Pairing(None, num_labels=0, segments=1, in_rows=True,
                     instances="models.recurrent.instances.RowInstances")
       for name in ("sentence_stream", "document_texts", "line_texts", "text_stream")},
    "electra": Pairing(electra_segments, num_labels=0, segments=2, in_order=True),
    "sentence_reordering": Pairing(sentence_reordering, num_labels=ORDERS, segments=1),
    "sentence_distance": Pairing(sentence_distance, num_labels=3, segments=2),
    # The recipe has the number of labels.
    "labelled_pairs": Pairing(labelled_pairs, num_labels=0, segments=2, is_labelled=True),
}


def find_pairing(segments: Segments) -> Pairing:
    """Returns the pairing that a manifest's segments name.

    Raises:
        InputError: this version does not know it.
    """
    if segments.pairing not in PAIRINGS:
        raise InputError("the records' manifest names a way to make segments that this version "
                         "does not know: a later version made the records. Update bert_tf.")
    return PAIRINGS[segments.pairing]


def num_labels(segments: Segments) -> int:
    """The number of classes of `next_sentence_labels`; 0 where there is no such feature."""
    labels = segments.num_labels or find_pairing(segments).num_labels
    return labels + 1 if labels and segments.negatives == "three_way" else labels
