"""Common steps of pairing segments: gathering sentences, and cutting a pair to its room
(google-research/bert, create_pretraining_data.py)."""

from bisect import bisect_left

from bert_tf.data.text.corpus import Documents
from bert_tf.data.text.python_random import PythonRandom


def random_sentence(documents: Documents, index: int, stream: PythonRandom) -> tuple[int, int]:
    """A sentence of another document than number `index`, if there is one, and where that document
    ends."""
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
