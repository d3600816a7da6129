"""Next-sentence pairs, drawn as google-research/bert `create_instances_from_document` draws them.

Pairs are slices of the token array, so nothing is copied until records are written.
"""

from bisect import bisect_left


def next_sentence_pairs(documents, index, stream, max_tokens, short_seq_prob):
    """Yields the pairs of one document.

    Sentences are gathered until they reach a target length: usually `max_tokens`, with probability
    `short_seq_prob` a random shorter one. They are split at random into A and B. In half of the
    cases, and where there is one sentence only, B is replaced by sentences of another document and
    the unused ones are put back.

    Args:
        documents: `Documents`; `documents.ranges` in the order in which they are visited.
        index: which document.
        stream: `PythonRandom`, shared with the masking of each pair as soon as it is yielded.
        max_tokens: upper bound of len(A) + len(B).
        short_seq_prob: probability of a shorter target.

    Yields:
        (start of A, length of A, start of B, length of B, whether B is a random next).
    """
    starts, ranges = documents.sentence_starts, documents.ranges
    first, end = ranges[index]
    target = max_tokens
    if stream.random() < short_seq_prob:
        target = 2 + stream.below(max_tokens - 1)

    while first < end:
        last = bisect_left(starts, starts[first] + target, first + 1, end)
        split = first + 1 + (stream.below(last - first - 1) if last - first >= 2 else 0)
        a_start, a_length = starts[first], starts[split] - starts[first]
        is_random_next = last - first == 1 or stream.random() < 0.5
        if is_random_next:
            for _ in range(10):
                other = stream.below(len(ranges))
                if other != index:
                    break
            other_first, other_end = ranges[other]
            b_first = other_first + stream.below(other_end - other_first)
            wanted = starts[b_first] + target - a_length
            b_last = bisect_left(starts, wanted, b_first + 1, other_end)
            first = split
        else:
            b_first, b_last = split, last
            first = last
        b_start, b_length = starts[b_first], starts[b_last] - starts[b_first]

        excess = a_length + b_length - max_tokens
        if excess > 0:
            a_start, a_length, b_start, b_length = _truncate(
                a_start, a_length, b_start, b_length, stream.heads(excess))
        yield a_start, a_length, b_start, b_length, is_random_next


def _truncate(a_start, a_length, b_start, b_length, fronts):
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
