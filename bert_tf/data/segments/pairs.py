"""BERT's pairs of segments (google-research/bert, create_pretraining_data.py), and their steps:
gathering sentences, and cutting a pair to its room."""

from bisect import bisect_left
from collections.abc import Iterator

from bert_tf.data.text.corpus import Documents
from bert_tf.data.text.python_random import PythonRandom
from bert_tf.recipes.recipe import Segments

# Start of A, length of A, start of B, length of B (0: there is no B), label.
Slices = tuple[int, int, int, int, int]


def segment_pairs(documents: Documents, stream: PythonRandom, room: int, options,
                  segments: Segments) -> Iterator[Slices]:
    """Pairs of sentences that follow each other or do not (`create_training_instances`); a negative
    pair may have its order swapped instead.

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
