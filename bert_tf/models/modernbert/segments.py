"""ModernBERT's sequences: documents, cut where a sequence is full."""

from collections.abc import Iterator

from bert_tf.data.segments.pairing import Slices
from bert_tf.data.text.corpus import Documents
from bert_tf.data.text.python_random import PythonRandom
from bert_tf.recipes.recipe import Segments


def document_runs(documents: Documents, stream: PythonRandom, room: int, options,
                  segments: Segments) -> Iterator[Slices]:
    """Runs of `room` tokens of one document, wherever its sentences end. The original leaves out
    what is behind the first run."""
    starts = documents.sentence_starts
    for _ in range(options.dupe_factor):
        for first, end in documents.ranges:
            for begin in range(starts[first], starts[end], room):
                yield begin, min(room, starts[end] - begin), 0, 0, 0
