"""Samples in the format of ERNIE's own data (PaddlePaddle/ERNIE, reader/pretraining.py).

A file is gzip text with one sample per line, numbers with spaces between:
token_ids;sentence_type_ids;position_ids;seg_labels;label. A list of files
names each with the probability that units are masked in it, and not single tokens.
"""

import dataclasses
import itertools
import os
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from bert_tf.errors import InputError
from bert_tf.files import open_unpacked
from bert_tf.models.ernie.masks import GOES_ON, OUTSIDE, draw_coins

_BUFFER = 1000          # samples that are shuffled together
FOLLOWS, RANDOM = 1, 0


@dataclasses.dataclass(frozen=True)
class Sample:
    """A sequence of n tokens; for the labels see `models.ernie.masks`. `label` is `FOLLOWS` where
    the second segment follows the first, else `RANDOM`."""

    ids: list[int]
    segments: list[int]
    labels: list[int]
    label: int
    by_unit: bool = True


def parse(line: bytes) -> Sample:
    """The sample of a line. Raises ValueError if it is malformed."""
    parts = line.strip().split(b";")
    if len(parts) != 5:
        raise ValueError(f"has {len(parts)} fields, not 5")
    ids, segments, positions, labels, label = (list(map(int, part.split())) for part in parts)
    if not len(ids) == len(segments) == len(positions) == len(labels) or len(label) != 1:
        raise ValueError("has fields of different lengths")
    if not ids:
        raise ValueError("has no tokens")
    if positions != list(range(len(ids))):
        raise ValueError("has positions that do not count from 0")
    if min([*segments, *label], default=0) < 0 or max([*segments, *label], default=0) > 1:
        raise ValueError("has a segment or a label that is not 0 or 1")
    if not set(labels) <= {OUTSIDE, 0, GOES_ON}:
        raise ValueError("has seg_labels that are not -1, 0 or 1")
    return Sample(ids, segments, labels, label[0])


def read_list(path: str, folder: str = "") -> list[tuple[str, float]]:
    """The files of a list and their probabilities, `name<TAB>probability` a line. `folder` is of
    the names; the list's if empty. Raises InputError if a line is malformed; names it."""
    files = []
    with open_unpacked(path) as file:
        for number, line in enumerate(file, 1):
            try:
                name, probability = line.decode("utf-8").strip().split("\t")
                files.append((os.path.join(folder or os.path.dirname(path), name),
                              float(probability)))
            except ValueError as error:
                raise InputError(f"{path}, line {number} is not the name of a file, a tab and a "
                                 "probability; correct it.") from error
    if not files:
        raise InputError(f"{path} is empty; it must name a file on each line.")
    return files


def read_file(path: str, max_seq_length: int, count: Callable[[str], None]) -> Iterator[Sample]:
    """The samples of a file; longer ones count as "too_long". InputError names a wrong line."""
    with open_unpacked(path) as file:
        for number, line in enumerate(file, 1):
            try:
                sample = parse(line)
            except ValueError as error:
                raise InputError(f"{path}, line {number}: {error}; correct it.") from error
            if len(sample.ids) > max_seq_length:
                count("too_long")
            else:
                yield sample


def with_negatives(samples: Iterable[Sample], rng: np.random.RandomState, max_seq_length: int,
                   count: Callable[[str], None]) -> Iterator[Sample]:
    """Positive samples and as many negative ones, of a segment of one and one of the next.
    Negatives of more than S tokens are left out, and counted as "negatives_lost". Raises InputError
    if a sample has another label."""
    samples = iter(samples)
    while buffer := list(itertools.islice(samples, _BUFFER)):
        if any(sample.label != FOLLOWS for sample in buffer):
            raise InputError("--generate_neg_sample: the data already hold negative samples (label "
                             "0); leave the flag out.")
        if len(buffer) == 1:
            yield from buffer
            continue
        rng.shuffle(buffer)
        negatives = []
        for left, right in zip(buffer, buffer[1:] + buffer[:1]):
            negative = _join(left, right, max_seq_length)
            if len(negative.ids) > max_seq_length:
                count("negatives_lost")
            else:
                negatives.append(negative)
        buffer = buffer + negatives
        rng.shuffle(buffer)
        yield from buffer


def _join(left, right, max_seq_length):
    cls_id, sep_id = left.ids[0], left.ids[-1]
    a = _segment(left, (max_seq_length - 3) // 2, sep_id)
    b = _segment(right, max_seq_length - 3 - len(a[0]), sep_id)
    ids, labels = ([edge, *x, end, *y, end] for edge, x, y, end in (
        (cls_id, a[0], b[0], sep_id), (OUTSIDE, a[1], b[1], OUTSIDE)))
    return Sample(ids, [0] * (len(a[0]) + 2) + [1] * (len(b[0]) + 1), labels, RANDOM)


def _segment(sample, most, sep_id):
    """The ids and labels of the first segment, or of the second if that has more than `most`."""
    end = sample.ids.index(sep_id)
    part = slice(1, end) if end - 1 <= most else slice(end + 1, -1)
    return sample.ids[part], sample.labels[part]


def read_samples(files: Iterable[tuple[str, float]], rng: np.random.RandomState,
                 max_seq_length: int, generate_neg_sample: bool,
                 count: Callable[[str], None]) -> Iterator[Sample]:
    """Yields the samples of the first epoch of `read_list`'s files, in the original's order."""
    files = list(files)
    rng.shuffle(files)
    for path, probability in files:
        by_unit = bool(rng.random_sample() < probability)
        samples = read_file(path, max_seq_length, count)
        if generate_neg_sample:
            samples = with_negatives(samples, rng, max_seq_length, count)
        for sample in samples:
            yield dataclasses.replace(sample, by_unit=by_unit)


def batches(samples: Iterable[Sample], batch_size: int) -> Iterator[list[Sample]]:
    """Samples in batches of at most `batch_size` tokens with padding; a longer one has its own."""
    batch: list[Sample] = []
    longest = 0
    for sample in samples:
        longest = max(longest, len(sample.ids))
        if batch and (len(batch) + 1) * longest > batch_size:
            yield batch
            batch, longest = [], len(sample.ids)
        batch.append(sample)
    if batch:
        yield batch


def mask_batch(batch: list[Sample], rng: np.random.RandomState, vocab_size: int,
               **options) -> tuple[np.ndarray, np.ndarray]:
    """Throws the coins for the tokens of a batch, one sample after the other; see `throw_coins`."""
    lengths = [len(sample.ids) for sample in batch]
    labels = np.concatenate([sample.labels for sample in batch])
    first = np.zeros(len(labels), bool)
    first[np.cumsum([0, *lengths[:-1]])] = True
    by_unit = np.repeat([sample.by_unit for sample in batch], lengths)
    return draw_coins(rng, labels, first, by_unit, vocab_size, **options)
