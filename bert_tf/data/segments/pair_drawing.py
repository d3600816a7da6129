"""Common steps of pairing segments: a sentence of another document, and cutting a pair to its room
(google-research/bert, create_pretraining_data.py)."""

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


def truncate(a_start: int, a_length: int, b_start: int, b_length: int,
             fronts: bytes) -> tuple[int, int, int, int]:
    """Takes len(fronts) tokens away, each from the longer of the two (from B where they are equal).

    Args:
        fronts: bytes; 1 takes the token from the front, 0 from the back.
    """
    lead = min(len(fronts), abs(a_length - b_length))   # until the two are equally long
    from_a, from_b = fronts[lead + 1::2], fronts[lead::2]
    if a_length > b_length:
        from_a = fronts[:lead] + from_a
    else:
        from_b = fronts[:lead] + from_b
    return (a_start + from_a.count(1), a_length - len(from_a),
            b_start + from_b.count(1), b_length - len(from_b))
