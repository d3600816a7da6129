"""RoBERTa's blocks of whole sentences (arXiv:1907.11692, section 4.2), cut where fairseq's
token_block_utils_fast.pyx cuts them.

A separator follows each sentence, and a blank line is a sentence of a separator alone.
"""

from collections.abc import Iterable, Iterator

import numpy as np

from bert_tf.data.text.corpus import Documents
from bert_tf.data.text.python_random import PythonRandom
from bert_tf.recipes.corruption import Segments

_SEPARATOR_LENGTH = 1


def cut_blocks(sizes: Iterable[int], block_size: int, mode: str) -> Iterator[tuple[int, int]]:
    """Cuts a text into blocks of whole sentences.

    Args:
        sizes: the tokens of each sentence, its separator included.
        block_size: most tokens of a block; a longer sentence is a block of its own.
        mode: fairseq's name of the form. "complete": FULL-SENTENCES, as many sentences as fit.
            "complete_doc": DOC-SENTENCES, which also end with a document, at a sentence of one
            token; that sentence and blocks of one token are left out. "none": blocks of one length,
            whatever the sentences. "eos": a sentence each.

    Yields:
        (first token, last token + 1) of each block.
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


def _blocks(documents, room, options, mode):
    """Yields the `Slices` of a text with sentence ends, once for each copy; none of blank lines
    alone."""
    if not documents.ranges:
        return
    sizes = np.diff(documents.sentence_starts).tolist()
    for _ in range(options.dupe_factor):
        # The separator at the end of a block is the sequence's separator.
        for start, end in cut_blocks(sizes, room + 1, mode):
            yield start, end - start - 1, 0, 0, 0


def full_sentences(documents: Documents, stream: PythonRandom, room: int, options,
                   segments: Segments) -> Iterator:
    """RoBERTa's FULL-SENTENCES: as many sentences as fit, of one document or of several.

    There is no choice in it: `dupe_factor` repeats the same sequences for other masks. A sentence
    that is longer than `room` comes uncut, for the caller to leave out, as fairseq's trainer does.
    The sentences of `documents` have ends. See `Pairing.draw` for the arguments of this function
    and of the following ones, which yield `Slices` without B, in the order of the text.
    """
    del stream, segments
    yield from _blocks(documents, room, options, "complete")


def doc_sentences(documents: Documents, stream: PythonRandom, room: int, options,
                  segments: Segments) -> Iterator:
    """RoBERTa's DOC-SENTENCES: as FULL-SENTENCES, but of one document only.

    Without sentence ends, as earlier versions made it, no separators are between sentences.
    """
    if segments.sentence_ends:
        yield from _blocks(documents, room, options, "complete_doc")
        return
    starts = documents.sentence_starts
    for _ in range(options.dupe_factor):
        for first, end in documents.ranges:
            sizes = [starts[i + 1] - starts[i] for i in range(first, end)]
            for start, stop in cut_blocks(sizes, room, "complete"):
                if stop - start <= room:
                    yield starts[first] + start, stop - start, 0, 0, 0


def doc_blocks(documents: Documents, stream: PythonRandom, room: int, options,
               segments: Segments) -> Iterator:
    """Yields SpanBERT's blocks of one document each: as many sentences as fit, without separators
    (its fairseq/data/no_nsp_span_bert_dataset.py).

    A sentence that is longer than `room` is passed over and ends its block. Two texts are lost: the
    block before such a sentence, if the sentence is the document's last, and a document that no
    blank line ends.
    """
    del stream, segments
    starts = documents.sentence_starts
    ended = documents.ranges[:len(documents.ranges) - documents.is_open]
    for _ in range(options.dupe_factor):
        for first, end in ended:
            yield from ((start, stop - start, 0, 0, 0)
                        for start, stop in _blocks_of_document(starts[first:end + 1], room))


def _blocks_of_document(starts, room):
    """Yields the bounds of a document's blocks; `starts` are its sentences' begins, and its end."""
    block = None
    is_last_short = False
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


def runs(documents: Documents, stream: PythonRandom, room: int, options,
         segments: Segments) -> Iterator:
    """GPT's sequences: the text cut into runs of `room` tokens, wherever sentences and documents
    end; see `full_sentences`."""
    del stream, segments
    for _ in range(options.dupe_factor):
        for start, end in cut_blocks(np.diff(documents.sentence_starts).tolist(), room, "none"):
            yield start, end - start, 0, 0, 0


_LEAST_LINE = 12            # tokens of a sequence of DistilBERT, special ones counted


def lines(documents: Documents, stream: PythonRandom, room: int, options,
          segments: Segments) -> Iterator:
    """Yields DistilBERT's sequences: a line each (transformers
    examples/research_projects/distillation, lm_seqs_dataset.py).

    A line that is longer than `room` is cut into runs of as many tokens; its two special tokens
    count in the first and the last. Sequences of less than 12 tokens, and sequences with at least
    half unknown words, are left out.
    """
    del stream, segments
    starts = documents.sentence_starts
    unknown = np.concatenate([[0], np.cumsum(documents.tokens == documents.unk_id)]).tolist()
    for _ in range(options.dupe_factor):
        for first, end in zip(starts, starts[1:]):
            length = end - first + 2
            step = room if length > room + 2 else length
            for begin in range(0, length, step):
                start = max(first + begin - 1, first)
                stop = min(first + begin + step - 1, end)
                size = stop - start + 2
                if size >= _LEAST_LINE and 2 * (unknown[stop] - unknown[start]) < size:
                    yield start, stop - start, 0, 0, 0
