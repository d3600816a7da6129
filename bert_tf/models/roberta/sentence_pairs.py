"""RoBERTa's pairs of single sentences (arXiv:1907.11692, section 4.2)."""

from collections.abc import Iterator

from bert_tf.data.segments.pairs import Slices, cut_to_room, random_sentence
from bert_tf.data.text.corpus import Documents
from bert_tf.data.text.python_random import PythonRandom
from bert_tf.recipes.corruption import Segments


def sentence_pairs(documents: Documents, stream: PythonRandom, room: int, options,
                   segments: Segments) -> Iterator[Slices]:
    """Yields SENTENCE-PAIR: two sentences that follow each other in a document. In half of the
    cases, and at the document's end, B comes from another document. The label is the label of a
    random B in `segment_pairs`.

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
