"""Augmentation: further texts made from a training file's, for a teacher to label."""

import dataclasses
import random
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from bert_tf.tokenization.vocabulary import MASK


class MarkingTokenizer:
    """A tokenizer that reads "[MASK]" in a text as the mask token, or as the unknown token if there
    is no mask token. It wraps a tokenizer that reads "[MASK]" as plain text."""

    def __init__(self, tokenizer):
        self._tokenizer = tokenizer
        vocabulary = tokenizer.vocabulary
        self._mark = vocabulary.unk_id if vocabulary.mask_id is None else vocabulary.mask_id

    def __getattr__(self, name):
        if name.startswith("__"):       # a copy that is not filled yet
            raise AttributeError(name)
        return getattr(self._tokenizer, name)

    def encode_lines(self, lines: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Returns the ids of all lines, int32 [T], and their lengths, int [lines]."""
        split = (line.split(MASK) for line in lines)
        parts = [[self._tokenizer.at_start(first), *rest] for first, *rest in split]
        ids, sizes = self._tokenizer.encode_parts([part for line in parts for part in line])
        counts = np.array([len(line) for line in parts])
        if len(sizes) == len(lines):
            return ids, sizes
        # A mark follows each part but the last of its line.
        follows = np.ones(len(sizes), bool)
        follows[np.cumsum(counts) - 1] = False
        ids = np.insert(ids, np.cumsum(sizes)[follows], self._mark)
        firsts = np.cumsum(counts) - counts
        return ids, np.add.reduceat(sizes, firsts) + counts - 1


@dataclasses.dataclass(frozen=True)
class RandomWords:
    """Copies of texts with words masked, or replaced by other words of their part of speech
    (arXiv:1903.12136, section 3.2; castorini/d-bert, run/augment_data.py).

    In a copy every word draws once: below 0.1 it becomes [MASK], and from there to 0.2 a random
    word with the same tag, by frequency. Then, with `ngram_prob` (0 by default in the original's
    code), only a window of 1 to 5 words is kept. Of a pair's copies, two thirds change one text, a
    third both. Copies that equal another of their text are dropped. `words` are those of each tag,
    as often as in the training file; `seed` determines, with an example's number alone, the
    example's draws."""

    words: Mapping[str, Sequence[str]]
    tags: Mapping[str, str]
    copies: int = 20
    ngram_prob: float = 0.25
    seed: int = 0

    def __call__(self, texts: list, number: int) -> list[list[str]]:
        """Returns the texts of further examples, for example `number` of the file."""
        draws = random.Random(f"{self.seed} {number}")
        different = {tuple(texts): None}
        for copy in range(self.copies):
            changed = list(texts)
            for place, text in enumerate(texts):
                if len(texts) == 1 or copy % 3 in (place, 2):
                    changed[place] = self._copy(text, draws)
            different[tuple(changed)] = None
        return [list(copy) for copy in list(different)[1:]]

    def _copy(self, text, draws):
        words = [self._word(word, draws) for word in text.split()]
        if words and draws.random() < self.ngram_prob:
            length = draws.randint(1, 5)
            start = draws.randint(0, max(len(words) - length, 0))
            words = words[start:start + length]
        return " ".join(words)

    def _word(self, word, draws):
        roll = draws.random()
        if roll < 0.1:
            return MASK
        others = self.words.get(self.tags.get(word, ""))
        if roll < 0.2 and others:
            return draws.choice(others)
        return word


def random_words(texts: Iterator[str], tagger: Callable[[list[str]], list[list[str]]] | None = None,
                 **options) -> RandomWords:
    """Makes the `RandomWords` of a training file. `tagger` maps texts to the part of speech of each
    word; None: one tag for all words. `options` are further attributes."""
    lines = list(texts)
    tagged = [[""] * len(text.split()) for text in lines]
    if tagger:
        tagged = tagger(lines)
    words: dict[str, list[str]] = {}
    tags: dict[str, str] = {}
    for text, its in zip(lines, tagged, strict=True):
        for word, tag in zip(text.split(), its, strict=True):
            tags.setdefault(word, tag)
            words.setdefault(tag, []).append(word)
    return RandomWords(words, tags, **options)
