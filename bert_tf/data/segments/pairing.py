"""The ways of cutting sequences from documents: `PAIRINGS` has a row for each.

Segments are slices of the token array, so nothing is copied until records are written.
"""

import dataclasses
from collections.abc import Callable, Iterator

from bert_tf.data.segments.pairs import Slices, segment_pairs
from bert_tf.errors import InputError
from bert_tf.models.electra.segments import electra_segments
from bert_tf.models.ernie import segments as ernie
from bert_tf.models.modernbert.segments import document_runs
from bert_tf.models.roberta import segments as blocks
from bert_tf.recipes.recipe import Segments

# The labels of pairs with negatives="three_way".
IN_ORDER, SWAPPED, RANDOM = range(3)


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
        shortens: whether some sequences get a random length below the maximum.
        draws_b: whether B may be drawn from the whole text.
        joins_lines: whether a document is one text: the tokens of its lines are those of the lines
            with a blank between them.
        help: what --segments says of it.
    """

    draw: Callable[..., Iterator[Slices]] | None
    num_labels: int
    segments: int
    in_order: bool = False
    in_rows: bool = False
    in_streams: bool = False
    instances: str = ""
    is_labelled: bool = False
    shortens: bool = False
    draws_b: bool = False
    joins_lines: bool = False
    help: str = ""


PAIRINGS = {
    "segment_pairs": Pairing(segment_pairs, num_labels=2, segments=2, shortens=True, draws_b=True,
                             help="BERT's next-sentence pairs"),
    "sentence_pairs": Pairing(blocks.sentence_pairs, num_labels=2, segments=2, draws_b=True,
                              help="pairs of one sentence each"),
    "full_sentences": Pairing(blocks.full_sentences, num_labels=0, segments=1,
                              help="RoBERTa's: whole sentences, no second segment and no label"),
    "doc_sentences": Pairing(blocks.doc_sentences, num_labels=0, segments=1,
                             help="the same within one document"),
    "doc_blocks": Pairing(blocks.doc_blocks, num_labels=0, segments=1,
                          help="SpanBERT's: as doc_sentences, without separators"),
    "document_runs": Pairing(
        document_runs, num_labels=0, segments=1, joins_lines=True,
        help="ModernBERT's: full sequences of one document"),
    "runs": Pairing(blocks.runs, num_labels=0, segments=1),
    "lines": Pairing(blocks.lines, num_labels=0, segments=1),
    "streams": Pairing(None, num_labels=2, segments=2, in_rows=True, in_streams=True,
                       instances="models.xlnet.records.StreamRecords"),
    **{name: Pairing(None, num_labels=0, segments=1, in_rows=True,
                     instances="models.recurrent.instances.RowInstances")
       for name in ("sentence_stream", "text_stream")},
    **{name: Pairing(None, num_labels=0, segments=1, in_rows=True, help=text,
                     instances="models.recurrent.instances.RowInstances")
       for name, text in (("document_texts", "for lm_lstm and sa_lstm, each document is a text"),
                          ("line_texts", "for lm_lstm and sa_lstm, each line is a text"))},
    "electra": Pairing(electra_segments, num_labels=0, segments=2, in_order=True, shortens=True,
                       help="ELECTRA's: successive sentences of one document, divided in two"),
    "sentence_reordering": Pairing(ernie.sentence_reordering, num_labels=ernie.ORDERS, segments=1,
                                   shortens=True),
    "sentence_distance": Pairing(ernie.sentence_distance, num_labels=3, segments=2, shortens=True),
    # The recipe has the number of labels.
    "labelled_pairs": Pairing(ernie.labelled_pairs, num_labels=0, segments=2, is_labelled=True),
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
    return labels + 1 if labels and segments.negatives == "three_way" else labels
