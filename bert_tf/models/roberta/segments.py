"""RoBERTa's pairs of single sentences, and blocks of whole sentences (arXiv:1907.11692, section
4.2), cut where fairseq's token_block_utils_fast.pyx cuts them.

A separator follows each sentence, and a blank line is a sentence of a separator alone.
"""

import functools
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from bert_tf.data.segments.pairing import Slices, cut_to_room, random_sentence
from bert_tf.data.text.corpus import Documents
from bert_tf.data.text.python_random import PythonRandom
from bert_tf.recipes.recipe import Segments

_SEPARATOR_LENGTH = 1


def cut_blocks(sizes: Iterable[int], block_size: int, mode: str) -> Iterator[tuple[int, int]]:
    """Cuts a text into blocks of whole sentences, from the tokens of each, its separator included;
    yields the first token, and the last + 1, of each block.

    Args:
        block_size: most tokens of a block; a longer sentence is a block of its own.
        mode: fairseq's name of the form. "complete": FULL-SENTENCES, as many sentences as fit.
            "complete_doc": DOC-SENTENCES, which also end with a document, at a sentence of one
            token; that sentence and blocks of one token are left out. "none": blocks of one length,
            whatever the sentences. "eos": a sentence each.
    """
    start = size = 0
    if mode == "none":
        total = sum(sizes)
        yield from ((first, min(first + block_size, total))
                    for first in range(0, total, block_size))
        return
    by_document, most = mode == "complete_doc", block_size if mode != "eos" else 0
    for length in sizes:
        ends_document = by_document and length == _SEPARATOR_LENGTH
        if size and (ends_document or size + length > most):
            if size > by_document:
                yield start, start + size
            start, size = start + size, 0
        if ends_document:
            start += length
        else:
            size += length
    if size > by_document:
        yield start, start + size


def _one_segment(cut: Callable[[Documents, int, Segments], Iterable[tuple[int, int]]]
                 ) -> Callable[..., Iterator]:
    """Makes a `Pairing.draw` of a function of the documents, the room and the `Segments`, which
    gives the begin and the end of each sequence. There is no choice in it: `dupe_factor` repeats
    the same sequences, without B, for other masks."""
    @functools.wraps(cut)
    def draw(documents, stream, room, options, segments):
        for _ in range(options.dupe_factor):
            for start, end in cut(documents, room, segments):
                yield start, end - start, 0, 0, 0

    return draw


def _blocks(documents, room, mode):
    """Yields the blocks of a text with sentence ends; none of blank lines alone."""
    if documents.ranges:
        # The separator at the end of a block is the sequence's separator.
        for start, end in cut_blocks(np.diff(documents.sentence_starts).tolist(), room + 1, mode):
            yield start, end - 1


@_one_segment
def full_sentences(documents, room, segments):
    """RoBERTa's FULL-SENTENCES: as many sentences as fit, of one document or of several. A sentence
    that is longer than `room` comes uncut, for the caller to leave out, as fairseq's trainer does.
    The sentences of `documents` have ends."""
    return _blocks(documents, room, "complete")


@_one_segment
def doc_sentences(documents, room, segments):
    """RoBERTa's DOC-SENTENCES: as FULL-SENTENCES, but of one document only. Without sentence ends,
    no separators are between sentences."""
    if segments.sentence_ends:
        yield from _blocks(documents, room, "complete_doc")
        return
    starts = documents.sentence_starts
    for first, end in documents.ranges:
        sizes = [starts[i + 1] - starts[i] for i in range(first, end)]
        for start, stop in cut_blocks(sizes, room, "complete"):
            if stop - start <= room:
                yield starts[first] + start, starts[first] + stop


@_one_segment
def doc_blocks(documents, room, segments):
    """SpanBERT's blocks of one document each: as many sentences as fit, without separators (its
    fairseq/data/no_nsp_span_bert_dataset.py).

    A sentence that is longer than `room` is passed over and ends its block. Two texts are lost: the
    block before such a sentence, if the sentence is the document's last, and a document that no
    blank line ends.
    """
    for first, end in documents.ranges[:len(documents.ranges) - documents.is_open]:
        block, is_last_short = None, False
        starts = documents.sentence_starts[first:end + 1]
        for start, stop in zip(starts, starts[1:]):
            is_last_short = stop - start <= room
            if not is_last_short:
                continue
            if block and stop - block[0] > room:
                yield block
                block = None
            block = block[0] if block else start, stop
        if is_last_short:
            yield block


@_one_segment
def runs(documents, room, segments):
    """GPT's sequences: the text in runs of `room` tokens, wherever sentences and documents end."""
    return cut_blocks(np.diff(documents.sentence_starts).tolist(), room, "none")


def sentence_pairs(documents: Documents, stream: PythonRandom, room: int, options,
                   segments: Segments) -> Iterator[Slices]:
    """Yields SENTENCE-PAIR: two sentences that follow each other in a document. In half of the
    cases, and at the document's end, B comes from another document. The label is that of a random B
    in `segment_pairs`. The original's code is not public: the random numbers are drawn as for the
    shortest `segment_pairs`."""
    label = 1 + (segments.negatives == "three_way")
    starts, ranges = documents.sentence_starts, documents.ranges
    stream.shuffle(ranges)
    for _ in range(options.dupe_factor):
        for index, (first, end) in enumerate(ranges):
            while first < end:
                is_random = first + 1 == end or stream.random() < segments.random_share
                b, step = first + 1, 2
                if is_random:
                    b, step = random_sentence(documents, index, stream)[0], 1
                a_length, b_length = (starts[i + 1] - starts[i] for i in (first, b))
                yield *cut_to_room(starts[first], a_length, starts[b], b_length, room,
                                   stream), label * is_random
                first += step


_LEAST_LINE = 12            # tokens of a sequence of DistilBERT, special ones counted


@_one_segment
def lines(documents, room, segments):
    """DistilBERT's sequences: a line each (transformers examples/research_projects/distillation,
    lm_seqs_dataset.py).

    A line that is longer than `room` is cut into runs of as many tokens; its two special tokens
    count in the first and the last. Sequences of less than 12 tokens, and sequences with at least
    half unknown words, are left out.
    """
    starts = documents.sentence_starts
    unknown = np.concatenate([[0], np.cumsum(documents.tokens == documents.unk_id)]).tolist()
    for first, end in zip(starts, starts[1:]):
        length = end - first + 2
        step = room if length > room + 2 else length
        for begin in range(0, length, step):
            start = max(first + begin - 1, first)
            stop = min(first + begin + step - 1, end)
            size = stop - start + 2
            if size >= _LEAST_LINE and 2 * (unknown[stop] - unknown[start]) < size:
                yield start, stop
