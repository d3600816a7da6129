"""ELECTRA's segments (google-research/electra, build_pretraining_dataset.py, ExampleBuilder)."""

from bisect import bisect_left
from collections.abc import Iterator

from bert_tf.data.segments.pairing import Slices
from bert_tf.data.text.corpus import Documents
from bert_tf.data.text.python_random import PythonRandom
from bert_tf.recipes.recipe import Segments

# How often all text goes to the first segment, and the least length that is drawn.
_ONE_SEGMENT, _LEAST = 0.1, 5


def electra_segments(documents: Documents, stream: PythonRandom, room: int, options,
                     segments: Segments) -> Iterator[Slices]:
    """Gathers sentences of one document up to a target length, and divides them in two at random; B
    is empty in sequences of one segment, and the label is 0.

    A sentence goes to the first segment while that stays below half of the target, and in half of
    the cases also the sentence that would pass it. Once a longer sentence has begun the second
    segment, a shorter one may still go to the first. Such segments are not runs of the text, so
    copies of their tokens are added to `documents`.

    The random stream and the target continue from document to document and from file to file; the
    files were shuffled before they were read. `options` also has `max_seq_length`.
    """
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
