"""Texts to ids and rows: much text in blocks of bounded size, where each word's ids are computed
once; and one text or two in a row of ids, cut to fit, with special tokens, mask and segments.
Shapes: B rows, S sequence."""

import array
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from bert_tf.tokenization.vocabulary import Layout

# The parts that a model reads of a text that does not fit: its beginning; its two ends; or windows:
# "mean" takes the mean of their answers, "max" the largest.
LONG_TEXTS = TRUNCATE, HEAD_TAIL, MEAN, MAX = "truncate", "head_tail", "mean", "max"
HEAD = 4        # one of so many kept tokens belongs to the head (arXiv:1905.05583, section 5.3)
_REMEMBERED_WORDS = 1 << 18      # entries of a memory before it starts afresh
REMEMBERED_CHARS = 40           # longer "words" are unspaced scripts and seldom come again
_BLOCK_LINES = 4096
BLOCK_CHARS = 1 << 20
_SURROGATE = re.compile("[\ud800-\udfff]")


def way_of(options: dict | None) -> str:
    """One of `LONG_TEXTS`, as the options of input and head have it."""
    return (options or {}).get("long_text") or TRUNCATE


def is_cut_in_windows(options: dict | None) -> bool:
    return way_of(options) in (MEAN, MAX)


def slices(text: str, boundary: re.Pattern) -> Iterator[str]:
    """Cuts a long text into parts of about `BLOCK_CHARS` characters; `boundary` begins a part."""
    start = 0
    while len(text) - start > BLOCK_CHARS:
        cut = boundary.search(text, start + BLOCK_CHARS)
        if not cut:
            break
        yield text[start:cut.start()]
        start = cut.start()
    yield text[start:]


def encode_blocks(lines: Sequence[str], boundary: re.Pattern,
                  encode: Callable[[list[str]], tuple[np.ndarray, np.ndarray]]
                  ) -> tuple[np.ndarray, np.ndarray]:
    """Encodes lines in blocks and long lines in slices, so that memory grows with the ids only.
    `boundary`: where a line may be cut without changing its ids. Returns the ids of all lines,
    int32 [T], and their lengths, int32 [lines]."""
    ids, lengths = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)]

    def add(texts):
        block_ids, block_lengths = encode(texts)
        ids.append(block_ids)
        lengths.append(block_lengths)

    # A function that calls itself would keep the ids until Python looks for circles.
    for start in range(0, len(lines), _BLOCK_LINES):
        blocks = [lines[start:start + _BLOCK_LINES]]
        while blocks:
            block = blocks.pop()
            middle = len(block) // 2
            if sum(map(len, block)) <= BLOCK_CHARS:
                add(block)
            elif middle:
                blocks += block[middle:], block[:middle]
            else:
                first = len(lengths)
                for part in slices(block[0], boundary):
                    add([part])
                lengths[first:] = [np.sum(lengths[first:], 0, np.int32)]
    return np.concatenate(ids), np.concatenate(lengths)


def whole(text: str) -> str:
    """A text without halves of surrogate pairs, which UTF-8 can't hold."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def as_bytes(ids: Iterable[int]) -> bytes:
    return array.array("i", ids).tobytes()


def from_bytes(packed: bytes) -> list[int]:
    return memoryview(packed).cast("i").tolist()


class Memory(dict):
    """word -> its ids as int32 bytes, computed when first asked for; of bounded size."""

    def __init__(self, compute: Callable[[str], bytes], **fixed: bytes):
        super().__init__(fixed)
        self._compute, self._fixed = compute, fixed

    def __missing__(self, word):
        packed = self._compute(word)
        if len(word) <= REMEMBERED_CHARS:
            if len(self) >= _REMEMBERED_WORDS:
                self.clear()
                self.update(self._fixed)
            self[word] = packed
        return packed


def truncate_pairs(a_length: np.ndarray, b_length: np.ndarray, max_seq_length: int | np.ndarray,
                   layout: Layout) -> tuple[np.ndarray, np.ndarray]:
    """Truncates pairs as the original's `_truncate_seq_pair`: pops from the end of the longer text,
    of B where both are equally long (google-research/bert, run_classifier.py). Each part of a
    layout of `halves` is cut by itself. Lengths are int [B], 0 where there is no second text;
    `max_seq_length` may be, too; returns the two that fit."""
    if layout.halves:       # openai/finetune-transformer-lm, transform_roc
        most = np.where(b_length > 0, max_seq_length // 2 - 2, layout.room(max_seq_length, False))
        return np.minimum(a_length, most), np.minimum(b_length, most)
    room = layout.room(max_seq_length, b_length > 0)
    if layout.longest_first:
        half = room // 2
        most_of_both = np.where(a_length > b_length, room - half, half)
        a_most = np.where(np.minimum(a_length, b_length) > half, most_of_both,
                          np.where(a_length > half, room - b_length, a_length))
        a_kept = np.minimum(a_length, a_most)
        return a_kept, np.minimum(b_length, room - a_kept)
    excess = np.maximum(a_length + b_length - room, 0)
    a_popped = np.minimum(excess, np.maximum(a_length - b_length, 0))
    b_popped = np.minimum(excess, np.maximum(b_length - a_length, 0))
    # Both are equally long now: they are popped in turn, B first.
    rest = np.where(b_length > 0, excess - a_popped - b_popped, 0)
    return a_length - a_popped - rest // 2, b_length - b_popped - (rest + 1) // 2


def pack_pairs(tokens: np.ndarray, a_start: np.ndarray, a_length: np.ndarray, b_start: np.ndarray,
               b_length: np.ndarray, max_seq_length: int, vocabulary: Any, pads_left: bool = False,
               all_pairs: bool = False) -> dict[str, np.ndarray]:
    """Packs runs of tokens that fit into sequences of one or two texts: [CLS] A [SEP] B [SEP].

    Args:
        a_start, a_length, b_start, b_length: int [B], the runs of A and B in `tokens`; without B
            where its length is 0, unless `all_pairs`.
        vocabulary: one that spells its words has `features`, which takes the place of their ids.

    Returns:
        dict of input_ids, int32 [B, S], input_mask and segment_ids, bool [B, S]. Where the class
        token is the last, segment_ids is uint8, the class token's segment 2, and padding has the
        layout's.
    """
    a_start, a_length, b_start, b_length = (
        np.asarray(run)[:, None] for run in (a_start, a_length, b_start, b_length))
    layout = vocabulary.layout
    has_b, b_offset = (b_length > 0) | all_pairs, layout.b_offset(a_length)
    length = a_length + b_length + layout.special(has_b)
    column = np.arange(max_seq_length, dtype=np.int32)[None] - pads_left * (max_seq_length - length)
    in_a = (column >= layout.before) & (column < layout.before + a_length)
    in_b = (column >= b_offset) & (column < b_offset + b_length)
    source = np.where(in_a, a_start - layout.before, b_start - b_offset) + column
    input_mask = (column >= 0) & (column < length)
    input_ids = np.where(input_mask, np.int32(vocabulary.sep_id), np.int32(vocabulary.pad_id))
    segment_ids = (column >= b_offset - layout.of_b) & input_mask & has_b
    if layout.one_segment:
        segment_ids[:] = False
    if layout.cls_last:
        is_cls = column == length - 1
        input_ids[is_cls] = vocabulary.cls_id
        if not layout.before:
            segment_ids = np.where(is_cls, np.uint8(2), segment_ids.astype(np.uint8))
            segment_ids[~input_mask] = layout.pad_segment
    if layout.cls_between:
        input_ids[has_b & (column == b_offset - 1)] = vocabulary.cls_id
    if layout.before:
        input_ids[:, :layout.before] = vocabulary.start_id
    is_text = in_a | in_b
    input_ids[is_text] = tokens[source[is_text]]
    features = {"input_ids": input_ids, "input_mask": input_mask, "segment_ids": segment_ids}
    if getattr(vocabulary, "further_features", ()):
        features |= vocabulary.features(input_ids, input_mask)
    return features


def pack_parts(pairs: Sequence, max_seq_length: int | None, vocabulary: Any,
               pads_left: bool = False, all_pairs: bool = False) -> dict[str, np.ndarray]:
    """`pack_pairs` of B pairs of lists or arrays of ids, of which the second may be empty.
    `max_seq_length`: S; None: the length of the longest sequence."""
    lengths = np.array([[len(part) for part in pair] for pair in pairs])
    starts = (np.cumsum(lengths) - lengths.ravel()).reshape(lengths.shape)
    tokens = np.concatenate([part for pair in pairs for part in pair]).astype(np.int32)
    if max_seq_length is None:
        max_seq_length = int(vocabulary.layout.length(*lengths.T).max())
    return pack_pairs(tokens, starts[:, 0], lengths[:, 0], starts[:, 1], lengths[:, 1],
                      max_seq_length, vocabulary, pads_left, all_pairs)


def encode_pairs(texts: Sequence, tokenizer, max_seq_length: int | None,
                 hypothesis_first: bool = False) -> tuple[dict, np.ndarray]:
    """Encodes one text or two a sequence, many at once (google-research/bert run_classifier.py).
    Returns input_ids, input_mask, segment_ids [B, S], and whether each was cut, bool [B].

    Args:
        max_seq_length: S; None: the length of the longest sequence.
        hypothesis_first: whether the second text is packed before the first, with both separators
            where one is empty, and single texts are one token shorter.
    """
    tokens, lengths = tokenizer.encode_lines([text for pair in texts for text in pair])
    lengths = lengths.reshape(len(texts), -1)
    starts = np.cumsum(lengths).reshape(lengths.shape) - lengths
    if lengths.shape[1] == 1:
        starts, lengths = (np.pad(run, ((0, 0), (0, 1))) for run in (starts, lengths))
    layout = tokenizer.vocabulary.layout
    is_single = len(texts[0]) == 1
    if max_seq_length is None:
        max_seq_length, fitting = int(layout.length(*lengths.T).max()) + hypothesis_first, lengths
    else:
        fitting = np.stack(truncate_pairs(
            lengths[:, 0], lengths[:, 1], max_seq_length - hypothesis_first * (lengths[:, 1] == 0),
            layout), 1)
    runs = [(starts[:, place], fitting[:, place]) for place in (0, 1)]
    if hypothesis_first and not is_single:
        runs.reverse()
    return (pack_pairs(tokens, *runs[0], *runs[1], max_seq_length, tokenizer.vocabulary,
                       layout.pads_left, hypothesis_first and not is_single),
            (fitting < lengths).any(1))
