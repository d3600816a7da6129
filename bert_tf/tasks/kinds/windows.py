"""Texts that are longer than a sequence: the ends of a text, or windows of it, one record each. N
examples, R records, C sequences of an example, S sequence, L labels or choices."""

import numpy as np

from bert_tf.tokenization import encoding
from bert_tf.tokenization.encoding import HEAD, HEAD_TAIL, MAX


def encode_long(examples: list, tokenizer, max_seq_length: int, way: str
                ) -> tuple[dict, np.ndarray, np.ndarray]:
    """Encodes N examples whose texts may be long, lists of C sequences, each a text or a pair. A
    text that fits is encoded as by `encode_pairs`; a sequence with fewer windows than others of its
    example repeats its last one. `way`: one of `encoding.LONG_TEXTS` but "truncate".

    Returns input_ids, input_mask, segment_ids [R, C * S]; the number of records of each example,
    int [N], all 1 for "head_tail"; and whether an example lost tokens, bool [N]."""
    layout, rows, counts, is_cut = tokenizer.vocabulary.layout, [], [], []
    for parts in _encoded(examples, tokenizer):
        sequences = [_cut(a, b, layout, max_seq_length, way) for a, b in parts]
        count = max(len(windows) for windows, _ in sequences)
        rows += [windows[min(number, len(windows) - 1)]
                 for number in range(count) for windows, _ in sequences]
        counts.append(count)
        is_cut.append(any(lost for _, lost in sequences))
    features = encoding.pack_parts(rows, max_seq_length, tokenizer.vocabulary, layout.pads_left)
    features = {name: values.reshape(sum(counts), -1) for name, values in features.items()}
    return features, np.array(counts), np.array(is_cut)


def count_windows(examples: list, tokenizer, max_seq_length: int) -> np.ndarray:
    """Returns the number of windows of each example, int [N], as `encode_long` makes them."""
    layout = tokenizer.vocabulary.layout
    return np.array([max(_plan(len(a), len(b), layout, max_seq_length)[1] for a, b in parts)
                     for parts in _encoded(examples, tokenizer)], int)


def join_windows(kind, answers: dict, counts: np.ndarray, way: str) -> dict:
    """Returns answers to examples [N, ...] from answers to their windows [R, ...].

    With "mean" numbers and probabilities are averaged. With "max" the largest number is taken, or
    each label's largest probability; of labels that exclude each other, divided by their sum.
    Raises ValueError if there is not one answer for each window."""
    if any(len(values) != counts.sum() for values in answers.values()):
        raise ValueError(f"there are {len(next(iter(answers.values())))} answers to "
                         f"{counts.sum()} windows.")
    if len(counts) == counts.sum():
        return answers
    starts = np.cumsum(counts) - counts
    if "values" in answers:
        return {"values": _join(answers["values"], starts, counts, way)}
    likely = _join(answers["probabilities"], starts, counts, way)
    if way == MAX and kind.labels_exclude:
        likely = likely / likely.sum(-1, keepdims=True)
    # An example with one window keeps its bits.
    likely[counts == 1] = answers["probabilities"][starts[counts == 1]]
    logits = kind.logits(likely)
    logits[counts == 1] = answers["logits"][starts[counts == 1]]
    return {"logits": logits, "probabilities": likely}


def _join(values, starts, counts, way):
    if way == MAX:
        return np.maximum.reduceat(values, starts)
    sums = np.add.reduceat(values, starts, dtype=np.float64)
    return (sums / counts.reshape(-1, *[1] * (values.ndim - 1))).astype(values.dtype)


def _encoded(examples, tokenizer):
    ids, lengths = tokenizer.encode_lines(
        [text for parts in examples for part in parts for text in part])
    texts = iter(np.split(ids, np.cumsum(lengths)[:-1]))
    nothing = ids[:0]
    for parts in examples:
        yield [tuple([next(texts) for _ in part] + [nothing] * (2 - len(part))) for part in parts]


def _plan(a_length, b_length, layout, max_seq_length):
    """Returns the length of a window of the longer text, and how many there are."""
    room = layout.room(max_seq_length, b_length > 0)
    if a_length + b_length <= room:
        return max(a_length, b_length), 1
    shorter, longer = sorted((a_length, b_length))
    window = room - min(shorter, room // 2)
    stride = max(window * 3 // 4, 1)        # successive windows share a quarter or more
    return window, -(-max(longer - window, 0) // stride) + 1


def _cut(a, b, layout, max_seq_length, way):
    """Returns pairs of parts of two texts that are seen together, and whether tokens are lost."""
    if way == HEAD_TAIL:
        counts = encoding.truncate_pairs(*(np.array([len(text)]) for text in (a, b)),
                                         max_seq_length, layout)
        parts = []
        for text, (count,) in zip((a, b), counts):
            first = count // HEAD if count < len(text) else count
            parts.append(np.concatenate([text[:first], text[len(text) - (count - first):]]))
        return [tuple(parts)], any(len(part) < len(text) for part, text in zip(parts, (a, b)))
    window, count = _plan(len(a), len(b), layout, max_seq_length)
    order = 1 if len(a) >= len(b) else -1
    longer, shorter = (a, b)[::order]
    other = shorter[:layout.room(max_seq_length, len(b) > 0) - window]
    starts = np.linspace(0, len(longer) - window, count).round().astype(int)
    parts = [longer[start:start + window] for start in starts]
    return [(part, other)[::order] for part in parts], len(other) < len(shorter)
