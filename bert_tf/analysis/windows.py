"""Texts cut to measure: sequences of a given length, and the segments of Clark et al. (2019)."""

import itertools
import random
from collections.abc import Sequence

import numpy as np

from bert_tf.data.text.corpus import decode
from bert_tf.errors import InputError
from bert_tf.files import open_unpacked
from bert_tf.tokenization.base import Tokenizer
from bert_tf.tokenization.encoding import pack_parts


def encode_documents(path: str, tokenizer: Tokenizer, most: int | None = None
                     ) -> list[list[list[int]]]:
    """Returns the ids of each document's lines. In the file, plain or gzip, a line is a sentence or
    paragraph, and a blank line ends a document. `most` limits the lines read."""
    with open_unpacked(path) as file:
        content = b"".join(itertools.islice(file, most))
    lines = [line.strip() for line in decode(content, [path])]
    tokens, lengths = tokenizer.encode_lines(lines)
    documents: list[list[list[int]]] = [[]]
    for line, ids in zip(lines, np.split(tokens, np.cumsum(lengths)[:-1])):
        if len(ids):
            documents[-1].append(ids.tolist())
        elif not line and documents[-1]:
            documents.append([])
    documents = [document for document in documents if document]
    if not documents:
        raise InputError(f"{path} holds no text; name a file with text.")
    return documents


def windows(documents: Sequence, length: int, count: int, tokenizer: Tokenizer
            ) -> dict[str, np.ndarray]:
    """Cuts documents into sequences of exactly `length` tokens, [CLS] and [SEP] included. Returns
    input_ids, input_mask and segment_ids, int32 [up to count, length]."""
    room = tokenizer.vocabulary.layout.room(length, False)
    runs = []
    for document in documents:
        ids = [token for line in document for token in line]
        runs += [ids[start:start + room] for start in range(0, len(ids) - room + 1, room)]
        if len(runs) >= count:
            break
    if not runs:
        raise InputError(f"no document has the {room} tokens that fill a window of {length}; give "
                         "longer documents, or smaller lengths.")
    return pack([(run, []) for run in runs[:count]], tokenizer)


def pack(pairs: Sequence[tuple[list, list]], tokenizer: Tokenizer) -> dict[str, np.ndarray]:
    """Returns the features of pairs of token lists, int32 [B, S], padded to the longest. A single
    text has an empty second list."""
    packed = pack_parts(pairs, None, tokenizer.vocabulary)
    return {name: rows.astype(np.int32) for name, rows in packed.items()}


def clark_segments(documents: Sequence[Sequence[list]], max_length: int, count: int,
                   rng: random.Random, special: int = 3) -> list[tuple[list, list]]:
    """Returns the first `count` pairs (A, B) of token lists, shuffled, made as in
    clarkkev/attention-analysis (preprocess_unlabeled.py): lines are gathered until they hold
    `max_length` tokens without the `special` ones of a pair; A is a random number of them, B the
    others. If one is empty, the rest of the document is dropped. That code also drops a last
    document that no blank line ends."""
    pairs: list[tuple[list, list]] = []
    for document in documents:
        pairs += _pairs_of(document, max_length - special, rng)
        if len(pairs) >= count:
            break
    del pairs[count:]
    rng.shuffle(pairs)
    return pairs


def _pairs_of(document, target, rng):
    pairs, gathered = [], []
    for number, line in enumerate(document, 1):
        gathered.append(line)
        if sum(map(len, gathered)) < target and number < len(document):
            continue
        split = rng.randint(1, len(gathered) - 1) if len(gathered) > 1 else 1
        a, b = (sum(part, []) for part in (gathered[:split], gathered[split:]))
        gathered = []
        while len(a) + len(b) > target:     # tokens go from the front or the end of the longer
            longer = max(b, a, key=len)
            longer.pop(0 if rng.random() < 0.5 else -1)
        if not a or not b:
            break
        pairs.append((a, b))
    return pairs
