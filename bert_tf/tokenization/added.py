"""Added tokens, found in a text before it is cut (`AddedVocabulary` of the library tokenizers)."""

import copy
import itertools
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from bert_tf.tokenization.base import ADDED, Tokenizer

# A part of a text: its start, its end, and the id of an added token; None for other text.
_Part = tuple[int, int, int | None]
# Blanks and characters of words, as the library's regular expressions have them (\s and \w).
_BLANKS = "".join(char for char in map(chr, range(0x3001))
                  if char.isspace() and not "\x1c" <= char <= "\x1f")
_IN_WORDS = ("Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "Pc")
_JOINERS = "\u200c\u200d"


class _Finder:
    """Finds tokens in a text as it is, and between these, tokens in what `fold` makes of it."""

    def __init__(self, added: Mapping[str, dict], fold: Callable[[str], str]):
        self._passes = []
        for normal, change in ((False, str), (True, fold)):
            entries = {content: (int(key), entry) for key, entry in added.items()
                       if normal == entry.get("normalized", not entry.get("special"))
                       and (content := "".join(map(change, entry["content"])))}
            if entries:
                longest = sorted(entries, key=len, reverse=True)
                self._passes.append((re.compile("|".join(map(re.escape, longest))), entries,
                                     change))

    def __call__(self, text: str) -> list[_Part]:
        parts: list[_Part] = [(0, len(text), None)] if text else []
        for regex, entries, change in self._passes:
            parts = [new for part in parts for new in _cut(text, part, regex, entries, change)]
        return parts


def _cut(text, part, regex, entries, change) -> Iterator[_Part]:
    """Yields the parts of a part of a text. Tokens are found first, and then take the blanks beside
    them, also those that `change` puts around an ideograph: the ideograph stays in the text."""
    start, end, index = part
    if index is not None:
        yield part
        return
    pairs = [(new, place) for place in range(start, end) for new in change(text[place])]
    pairs.append(("", end))
    changed, taken = "".join(char for char, _ in pairs), 0
    for match in regex.finditer(changed):
        index, entry = entries[match.group()]
        first, last = match.span()
        beside = changed[max(first - 1, 0):first] + changed[last:last + 1]
        if entry.get("single_word") and any(
                unicodedata.category(char) in _IN_WORDS or char in _JOINERS for char in beside):
            continue
        before, after = first, last
        if entry.get("lstrip") and taken < first:
            before = taken + len(changed[taken:first].rstrip(_BLANKS))
        if entry.get("rstrip"):
            after = len(changed) - len(changed[last:].lstrip(_BLANKS))
        if taken < before and start <= (until := pairs[before - 1][1]):
            yield start, until + 1, None
        yield pairs[first][1], pairs[last - 1][1] + 1, index
        start, taken = pairs[last - 1][1] + 1, after
        if after > last:
            start = max(start, pairs[after][1])
    if start < end:
        yield start, end, None


class AddingTokenizer(Tokenizer):
    """A tokenizer that finds added tokens in a text. Another one splits the text between them."""

    def __init__(self, tokenizer: Tokenizer, added: Mapping[str, dict]):
        """`added`: as transformers' `added_tokens_decoder`; new ids follow the vocabulary's."""
        super().__init__(copy.copy(tokenizer.vocabulary), tokenizer.do_lower_case,
                         **{**tokenizer.settings, ADDED: dict(added)})
        self._plain, self._find = tokenizer, _Finder(added, tokenizer.fold)
        self._added = {int(key): entry["content"] for key, entry in added.items()}
        self.vocabulary.append(self._added[index] for index in sorted(self._added)
                               if index >= tokenizer.vocabulary.size)
        self.name, self.blank, self.word_prefix, self.has_choice_of_case = (
            tokenizer.name, tokenizer.blank, tokenizer.word_prefix, tokenizer.has_choice_of_case)
        self.library_class = tokenizer.library_class

    def library_settings(self):
        return {**self._plain.library_settings(), ADDED: self.settings[ADDED]}

    def __reduce__(self):
        return type(self), (self._plain, self.settings[ADDED])

    def __getattr__(self, name):
        if name.startswith("_"):        # a copy that is not filled yet
            raise AttributeError(name)
        return getattr(self._plain, name)

    @property
    def plain(self):
        return self._plain

    def encode_lines(self, lines):
        return self._encode(lines, self._plain.encode_lines)

    def encode_parts(self, parts):
        return self._encode(parts, self._plain.encode_parts)

    def at_start(self, text):
        if any(index is not None for *_, index in self._find(text)[:1]):
            return text
        return self._plain.at_start(text)

    def _encode(self, lines, encode):
        parts = list(map(self._find, lines))
        # The text after an added token is read as the start of a text.
        ids, sizes = encode([
            self._plain.at_start(line[start:end]) if start else line[start:end]
            for line, parts_of_line in zip(lines, parts)
            for start, end, index in parts_of_line if index is None])
        plain = iter(np.split(ids, np.cumsum(sizes)))
        rows = [[next(plain) if index is None else np.array([index]) for *_, index in parts_of_line]
                for parts_of_line in parts]
        return (np.concatenate([*itertools.chain(*rows), ids[:0]]).astype(np.int32),
                np.array([sum(map(len, row)) for row in rows], np.int32))

    def encode_with_offsets(self, text):
        ids, offsets = [], []
        for start, end, index in self._find(text):
            part_ids, places = [index], [(0, end - start)]
            if index is None:
                part_ids, places = self._plain.encode_with_offsets(text[start:end])
            ids += part_ids
            offsets += [(start + first, start + last) for first, last in places]
        return ids, offsets

    def encode_with_surfaces(self, text):
        encoded = [self._plain.encode_with_surfaces(text[start:end]) if index is None
                   else ([index], [text[start:end]]) for start, end, index in self._find(text)]
        return [sum(parts, []) for parts in zip(*encoded)] or ([], [])

    def excerpt(self, words, ids, before, after):
        if self._added.keys().isdisjoint(ids):
            return self._plain.excerpt(words, ids, before, after)
        return super().excerpt(words, ids, before, after)

    def readable(self, index):
        return self._added.get(index) or self._plain.readable(index)

    def is_blank(self, line):
        return self._plain.is_blank(line)

    def _continues(self, token):
        return token not in self._added.values() and self._plain._continues(token)

    def _join(self, ids):
        texts: list[str] = []
        for is_added, run in itertools.groupby(ids, self._added.__contains__):
            if is_added:
                texts += map(self._added.__getitem__, run)
            else:
                texts.append(self._plain._join(list(run)))
        return " ".join(texts)
