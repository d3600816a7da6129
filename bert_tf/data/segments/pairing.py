"""The ways of cutting sequences from documents: `PAIRINGS` has a row for each. BERT's pairs are
here (google-research/bert, create_pretraining_data.py), with the steps that other ways share.

Segments are slices of the token array, so nothing is copied until records are written.
"""

import dataclasses
from bisect import bisect_left
from collections.abc import Iterator

from bert_tf.data.text.corpus import Documents
from bert_tf.data.text.python_random import PythonRandom
from bert_tf.errors import InputError
from bert_tf.recipes.recipe import Segments

# The labels of pairs with negatives="three_way".
IN_ORDER, SWAPPED, RANDOM = range(3)
# Start of A, length of A, start of B, length of B (0: there is no B), label.
Slices = tuple[int, int, int, int, int]


@dataclasses.dataclass(frozen=True)
class Pairing:
    """A way of cutting sequences from documents."""

    # The dotted name in `bert_tf` of a generator function of (documents, stream, room, options,
    # segments), or empty. It yields `Slices`: sequences in the original's order of drawing.
    # `documents` is a piece as `Documents`, whose ranges may be shuffled in place; `stream` a
    # `PythonRandom`, which also draws masks as soon as a sequence is yielded; `room` the most
    # tokens of a sequence without its special ones, a longer one being left out; `options` has
    # `dupe_factor` and `short_seq_prob`; `segments` is the recipe's `Segments`.
    draw: str
    num_labels: int     # classes of the record feature `next_sentence_labels`; 0 without it
    segments: int   # most segments in a sequence, 1 or 2
    # Sequences are written in the order of the text, not shuffled. The files are then read in a
    # random order instead, and the end of each ends a document.
    in_order: bool = False
    in_rows: bool = False   # each record of a batch continues one of the batch before
    in_streams: bool = False    # records have a part of a stream and the text after it
    instances: str = ""     # the instances' class, by its dotted name; empty: the recipe's
    is_labelled: bool = False   # each line of the text is a pair of texts with a label
    shortens: bool = False  # some sequences get a random length below the maximum
    draws_b: bool = False   # B may be drawn from the whole text
    # A document is one text: the tokens of its lines are those of the lines with a blank between.
    joins_lines: bool = False
    help: str = ""  # what --segments says of it


_ROBERTA, _ERNIE = "models.roberta.segments", "models.ernie.segments"
PAIRINGS = {
    "segment_pairs": Pairing("data.segments.pairing.segment_pairs", num_labels=2, segments=2,
                             shortens=True, draws_b=True, help="BERT's next-sentence pairs"),
    "sentence_pairs": Pairing(f"{_ROBERTA}.sentence_pairs", num_labels=2, segments=2, draws_b=True,
                              help="pairs of one sentence each"),
    "full_sentences": Pairing(f"{_ROBERTA}.full_sentences", num_labels=0, segments=1,
                              help="RoBERTa's: whole sentences, no second segment and no label"),
    "doc_sentences": Pairing(f"{_ROBERTA}.doc_sentences", num_labels=0, segments=1,
                             help="the same within one document"),
    "doc_blocks": Pairing(f"{_ROBERTA}.doc_blocks", num_labels=0, segments=1,
                          help="SpanBERT's: as doc_sentences, without separators"),
    "document_runs": Pairing(
        "models.modernbert.instances.document_runs", num_labels=0, segments=1, joins_lines=True,
        help="ModernBERT's: full sequences of one document"),
    "runs": Pairing(f"{_ROBERTA}.runs", num_labels=0, segments=1),
    "lines": Pairing(f"{_ROBERTA}.lines", num_labels=0, segments=1),
    "streams": Pairing("", num_labels=2, segments=2, in_rows=True, in_streams=True,
                       instances="models.xlnet.records.StreamRecords"),
    **{name: Pairing("", num_labels=0, segments=1, in_rows=True,
                     instances="models.recurrent.instances.RowInstances")
       for name in ("sentence_stream", "text_stream")},
    **{name: Pairing("", num_labels=0, segments=1, in_rows=True, help=text,
                     instances="models.recurrent.instances.RowInstances")
       for name, text in (("document_texts", "for lm_lstm and sa_lstm, each document is a text"),
                          ("line_texts", "for lm_lstm and sa_lstm, each line is a text"))},
    "electra": Pairing("models.electra.segments.electra_segments", num_labels=0, segments=2,
                       in_order=True, shortens=True,
                       help="ELECTRA's: successive sentences of one document, divided in two"),
    # A label for each order of one part, two and three.
    "sentence_reordering": Pairing(f"{_ERNIE}.sentence_reordering", num_labels=1 + 2 + 6,
                                   segments=1, shortens=True),
    "sentence_distance": Pairing(f"{_ERNIE}.sentence_distance", num_labels=3, segments=2,
                                 shortens=True),
    # The recipe has the number of labels.
    "labelled_pairs": Pairing(f"{_ERNIE}.labelled_pairs", num_labels=0, segments=2,
                              is_labelled=True),
}


def find_pairing(segments: Segments) -> Pairing:
    """Returns the pairing that a manifest's segments name; InputError if this version does not know
    it."""
    if segments.pairing not in PAIRINGS:
        raise InputError("the records' manifest names a way to make segments that this version "
                         "does not know: a later version made the records. Update bert_tf.")
    return PAIRINGS[segments.pairing]


def num_labels(segments: Segments) -> int:
    """The number of classes of `next_sentence_labels`; 0 where there is no such feature."""
    labels = segments.num_labels or find_pairing(segments).num_labels
    return labels + bool(labels and segments.negatives == "three_way")


def segment_pairs(documents: Documents, stream: PythonRandom, room: int, options,
                  segments: Segments) -> Iterator[Slices]:
    """Pairs of sentences that follow each other or do not (`create_training_instances`); a negative
    pair may have its order swapped instead. Yields `Slices`; the label is 1 where B is random, or A
    and B are swapped. With negatives="three_way" it is RANDOM where B is random; others are swapped
    later."""
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
    B are swapped. A single sentence always gets a B of another document."""
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
            b_target = starts[b_first] + target - a_length
            b_last = bisect_left(starts, b_target, b_first + 1, other_end)
            first = split
        else:
            b_first, b_last = split, last
            first = last
        b_start, b_length = starts[b_first], starts[b_last] - starts[b_first]
        if is_negative and swaps and not is_single:
            a_start, a_length, b_start, b_length = b_start, b_length, a_start, a_length

        yield (*cut_to_room(a_start, a_length, b_start, b_length, room, stream),
               label * is_negative)


def random_sentence(documents: Documents, index: int, stream: PythonRandom) -> tuple[int, int]:
    """A sentence of another document than number `index`, if any, and where that one ends."""
    ranges = documents.ranges
    for _ in range(10):
        other = stream.below(len(ranges))
        if other != index:
            break
    first, end = ranges[other]
    return first + stream.below(end - first), end


def target_length(stream: PythonRandom, room: int, short_seq_prob: float) -> int:
    """Draws the length of a sequence: `room`, or with this probability a shorter one."""
    return 2 + stream.below(max(room - 1, 1)) if stream.random() < short_seq_prob else room


def gather(starts: list[int], first: int, end: int, target: int, stream: PythonRandom
           ) -> tuple[int, int]:
    """Gathers sentences from `first` on, before `end`, until they have `target` tokens. Returns the
    drawn first sentence of the second part, and the last sentence + 1: equal for one sentence."""
    last = bisect_left(starts, starts[first] + target, first + 1, end)
    return first + 1 + (stream.below(last - first - 1) if last - first >= 2 else 0), last


def cut_to_room(a_start: int, a_length: int, b_start: int, b_length: int, room: int,
                stream: PythonRandom) -> tuple[int, int, int, int]:
    """Takes away the tokens that have no room, each from the longer of the two (from B where they
    are equal) and from a random end."""
    excess = a_length + b_length - room
    if excess <= 0:
        return a_start, a_length, b_start, b_length
    fronts = stream.heads(excess)       # 1 takes a token from the front
    lead = min(excess, abs(a_length - b_length))   # until the two are equally long
    from_a, from_b = fronts[lead + 1::2], fronts[lead::2]
    if a_length > b_length:
        from_a = fronts[:lead] + from_a
    else:
        from_b = fronts[:lead] + from_b
    return (a_start + from_a.count(1), a_length - len(from_a),
            b_start + from_b.count(1), b_length - len(from_b))
