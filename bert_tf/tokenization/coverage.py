"""What a vocabulary cannot spell of a text, and what normalisation takes from it. Counts are sums:
those of several processes add up."""

import collections
import functools
import sys
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from bert_tf.errors import counted, warn
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import MAX_WORD_CHARS

_MOST_HIDDEN = 0.03     # of the characters; above it a warning is due
_MOST_TEXTS = 0.05      # of the texts that are nothing but unknown tokens
_MOST_LOST = 0.02       # of the letters that lose their marks
# Of the characters, by their kind, that a setting may leave unknown to be a remedy.
_MOST_MISFITS = {"tried": 0.5, "lossy": 0.1}
_LOOKED_AT = 1 << 16    # characters that are all looked at; of more text a sample
_SAMPLE = 1 << 5        # one character in so many
_TRIED_WORDS = 256      # words that are read with other settings

# Other settings of a tokenizer: the flag, its value, and the setting in the tokenizer's files.
_REMEDIES = {"lower": ("do_lower_case", "True"), "cased": ("do_lower_case", "False"),
             "accents": ("strip_accents", "False"), "stripped": ("strip_accents", "True"),
             "kept": ("keep_accents", "True")}


class _Findings:
    """What counts of texts and of their tokens show; `Coverage` describes them."""

    counts: collections.Counter[str]
    _has_warned = False

    def totals(self) -> dict[str, int]:
        return dict(self.counts)

    @property
    def hidden(self) -> float:
        """The share of the characters that unknown tokens hide."""
        return self.counts["hidden_characters"] / max(self.counts["characters"], 1)

    @property
    def lost(self) -> float:
        """The share of the letters whose marks are dropped."""
        return self.counts["lost_letters"] / max(self.counts["letters"], 1)

    @property
    def loses_marks(self) -> bool:
        return self.lost > _MOST_LOST

    @property
    def lost_letters(self) -> str:
        return (f"{self.lost:.1%} of the letters lose their vowel signs, accents or other marks in "
                "normalisation")

    @property
    def is_poor(self) -> bool:
        """Whether a model cannot learn from the text, since too much of it is unknown."""
        return self.hidden > _MOST_HIDDEN or self._unknown_texts > _MOST_TEXTS

    @property
    def _unknown_texts(self):
        return self.counts["unknown_texts"] / max(self.counts["texts"], 1)

    @property
    def _nothing_else(self):
        count = self.counts["unknown_texts"]
        if not count:
            return ""
        return (f"; {count:,} of {counted(self.counts['texts'], 'text')} "
                f"{'is' if count == 1 else 'are'} nothing else")

    @property
    def shares(self) -> str:
        """The shares of unknown tokens, of characters and of texts, as a report has them."""
        share = self.counts["unknown_tokens"] / max(self.counts["tokens"], 1)
        hidden = ""
        if self.counts["hidden_characters"]:
            hidden = f" ({self.hidden:.2%} of the characters)"
        return f"{share:.2%} unknown tokens{hidden}{self._nothing_else}"

    def sentence(self) -> str:
        """Returns the line of a report: the number of tokens, and `shares`."""
        return f"{counted(self.counts['tokens'], 'token')}, {self.shares}"

    def warnings(self, flags: Collection[str] = ()) -> list[str]:
        """Returns the faults of the text for this tokenizer, each with its likely remedy. `flags`:
        which of `vocab_file`, `do_lower_case` and `strip_accents` the program has."""
        self.totals()
        faults = []
        if self.is_poor:
            faults.append(f"{self.hidden:.1%} of the characters are in words that the vocabulary "
                          f"does not know{self._nothing_else}: {self.remedy(flags)}.")
        if self.loses_marks:
            faults.append(f"{self.lost_letters}: {self._keeping_marks(flags)}.")
        return faults

    def warn_once(self, flags: Collection[str] = ()) -> None:
        """Prints `warnings` to standard error, unless it has done so."""
        if not self._has_warned:
            for text in self.warnings(flags):
                self._has_warned = True
                warn(text)

    def report(self, name: str) -> None:
        """Prints the report on the text of a fine-tuning task, of which `name` is a part."""
        self.tell(noun=f"  text of {name}: ")
        for text in self.warnings(("do_lower_case",)):
            print(f"  warning: {name}: {text}", flush=True)

    def tell(self, is_piped: bool = False, noun: str = "") -> None:
        """Prints the `sentence`; if standard output has other content, then only of text with
        unknown tokens, to standard error."""
        needed, file = ("unknown_tokens", sys.stderr) if is_piped else ("tokens", sys.stdout)
        if self.counts[needed]:
            print(f"{noun}{self.sentence()}", file=file, flush=True)

    def remedy(self, flags: Collection[str] = ()) -> str:
        """Returns what helps where words are unknown: another case, or another vocabulary."""
        fitting = [setting for setting in _REMEDIES if self._fits("tried", setting)]
        if fitting:
            setting = min(fitting, key=lambda setting: self.counts[f"tried_{setting}"])
            left = self.counts[f"tried_{setting}"] / self.counts["tried"] * self.hidden
            return f"{_given(setting, flags)}, which leaves about {left:.1%}"
        if 2 * self.counts["tried_long"] > self.counts["tried"]:
            return (f"most of them are in words of more than {MAX_WORD_CHARS} letters, each of "
                    "which is one unknown token; put blanks between the words")
        if "vocab_file" in flags:
            return "give a --vocab_file of the language of the text"
        return "use a model whose vocabulary has the language of the text"

    def _keeping_marks(self, flags):
        settings = [name for name in ("accents", "kept", "cased") if self._fits("lossy", name)]
        settings.sort(key=lambda name: _REMEDIES[name][0] not in flags)
        if settings:
            return f"{_given(settings[0], flags)}, which keeps them"
        advice = "use a model of cased text, which keeps them"
        if "vocab_file" in flags:
            advice = "make one with bert-build-vocab --tokenizer=wordpiece --strip_accents=False"
        return f"the vocabulary has no letters with marks either; {advice}"

    def _fits(self, name, setting):
        return f"{name}_{setting}" in self.counts and (
            self.counts[f"{name}_{setting}"] <= _MOST_MISFITS[name] * self.counts[name])


class Coverage(_Findings):
    """Counts texts and their tokens, all of one tokenizer at a time.

    The `counts` are of `tokens`; `unknown_tokens`; `characters` without blanks;
    `hidden_characters`, those of the words that became unknown tokens, estimated from a sample
    where there are many; `texts` that have tokens; `unknown_texts`, which have no other tokens than
    unknown ones; of a sample, `letters`, and `lost_letters`, whose marks normalisation drops; and,
    of words with unknown tokens and of words with such letters, `tried` and `lossy` characters,
    with those that other settings leave unknown, such as `tried_cased`, and those of words over
    WordPiece's limit, `tried_long`."""

    def __init__(self, counts: Mapping[str, int] | None = None):
        self.counts = collections.Counter(counts or {})
        self._left = {"hidden": _LOOKED_AT, "lost": _LOOKED_AT}
        self._words: dict[str, set[str]] = {"tried": set(), "lossy": set()}
        # Of the tokenizer: the characters of each token, int [V], and whether each character loses
        # marks; None if none does.
        self._tokenizer: Any = None
        self._sizes = np.zeros(0, np.int64)
        self._loses: dict[str, bool] | None = None

    def watch(self, tokenizer: Any) -> Any:
        """Returns the tokenizer, such that all texts that it encodes are counted."""
        return _Watched(tokenizer, self)

    def add(self, tokenizer: Any, texts: Sequence[str], ids: Any, lengths: Any,
            are_whole: bool = True) -> None:
        """Counts texts, or parts of texts unless they `are_whole`; `ids` and `lengths` as from
        `Tokenizer.encode_lines`."""
        ids, lengths = np.asarray(ids, np.int32), np.asarray(lengths, np.int64)
        vocabulary = tokenizer.vocabulary
        if tokenizer is not self._tokenizer:
            self._tokenizer = tokenizer
            self._loses = {} if _drops_marks(tokenizer.plain) else None
            self._sizes = np.array([
                len(token.removeprefix("##").removesuffix("</w>").replace("\u2581", ""))
                for part in vocabulary.parts or (vocabulary,) for token in part.tokens], np.int64)
            self._sizes[vocabulary.is_unknown(np.arange(len(self._sizes)))] = 0
        unknown = vocabulary.is_unknown(ids)
        self.counts["tokens"] += len(ids)
        self.counts["unknown_tokens"] += int(unknown.sum())
        if vocabulary.is_open:      # the network reads their characters
            return
        sizes = self._sizes[ids]
        self.counts["characters"] += int(sizes.sum())
        if are_whole:
            self.counts["texts"] += int((lengths > 0).sum())
        if unknown.any():
            unknown_of, known_of = (_sums(marks, lengths) for marks in (unknown, sizes > 0))
            if are_whole:
                self.counts["unknown_texts"] += int(((unknown_of > 0) & (known_of == 0)).sum())
            owning = np.flatnonzero(unknown_of).tolist()
            self._add_hidden(tokenizer, [texts[index] for index in owning], int(unknown.sum()))
        if self._loses is not None:
            self._add_letters(tokenizer.plain, texts)

    def add_rows(self, input_ids: np.ndarray, vocabulary: Vocabulary) -> None:
        """Counts rows, int [N, S], as texts: where only parts of texts were given to `add`."""
        if vocabulary.is_open or vocabulary.unk_id is None:
            return
        unknown = vocabulary.is_unknown(input_ids)
        known = ~np.isin(input_ids, vocabulary.special_ids)
        self.counts["texts"] += len(input_ids)
        self.counts["unknown_texts"] += int((unknown.any(1) & ~known.any(1)).sum())

    def totals(self) -> dict[str, int]:
        """Returns the counts, with those of trials with other settings where these are due."""
        for name, is_due in (("tried", self.hidden > _MOST_HIDDEN / 2 or self._unknown_texts > 0),
                             ("lossy", self.lost > _MOST_LOST / 2)):
            if is_due and (words := sorted(self._words.pop(name, ()))):
                self._try(name, words)
        return dict(self.counts)

    def _add_hidden(self, tokenizer, texts, count):
        """Counts the characters of `count` unknown tokens, all of which are in `texts`."""
        seen = hidden = 0
        for text in self._sample("hidden", texts):
            ids, offsets = tokenizer.plain.encode_with_offsets(text)
            unknown = tokenizer.plain.vocabulary.is_unknown(np.asarray(ids))
            for place in np.flatnonzero(unknown).tolist():
                word = text[slice(*offsets[place])]
                seen += 1
                hidden += len(word)
                self._keep("tried", [word])
        hidden = round(hidden / seen * count) if seen else count
        self.counts["hidden_characters"] += hidden
        self.counts["characters"] += hidden

    def _add_letters(self, tokenizer, texts):
        texts = self._sample("lost", texts)
        chars = collections.Counter(unicodedata.normalize("NFC", "".join(texts)))
        for char in chars.keys() - self._loses.keys():      # a mark, or of a letter with marks
            self._loses[char] = not char.isascii() and _is_letter(char) and (
                _marks(tokenizer.fold(char)) < _marks(char.lower()))
        lost = set(filter(self._loses.__getitem__, chars))
        self.counts["letters"] += sum(count for char, count in chars.items() if _is_letter(char))
        self.counts["lost_letters"] += sum(chars[char] for char in lost)
        if lost:
            self._keep("lossy", (word for text in texts
                                 for word in unicodedata.normalize("NFC", text).split()
                                 if not lost.isdisjoint(word)))

    def _sample(self, name, texts):
        """Returns all texts while few characters were looked at; of more text a part of them."""
        sizes = sum(map(len, texts))
        most = max(self._left[name], sizes // _SAMPLE)
        self._left[name] = max(0, self._left[name] - sizes)
        step = max(-(-sizes // max(most, 1)), 1)
        return [text[:_LOOKED_AT] for text in texts[::step]]

    def _keep(self, name, words):
        known = self._words.get(name)
        for word in words:
            if known is None or len(known) >= _TRIED_WORDS:
                return
            known.add(word)

    def _try(self, name, words):
        """Counts the characters of the words that have unknown tokens with other settings too."""
        self.counts[name] += sum(map(len, words))
        for setting, tokenizer in _others(self._tokenizer.plain):
            if name == "tried" or not _drops_marks(tokenizer):
                ids, lengths = tokenizer.encode_lines(words)
                unknown = _sums(tokenizer.vocabulary.is_unknown(np.asarray(ids)), lengths)
                self.counts[f"{name}_{setting}"] += sum(
                    len(word) for word, count in zip(words, unknown) if count)
        if name == "tried" and self._tokenizer.name == "wordpiece":
            self.counts["tried_long"] += sum(
                len(word) for word in words if len(word) > MAX_WORD_CHARS)


def join(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The sums of the counts of several processes, also 0: such a setting is the best remedy."""
    sums: collections.Counter[str] = collections.Counter()
    for each in counts:
        sums.update(each)
    return dict(sums)


class _Watched:
    """A tokenizer whose texts a `Coverage` counts."""

    def __init__(self, tokenizer, coverage):
        self._watched, self._coverage = tokenizer, coverage

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._watched, name)

    def _lines(self, name, lines):
        encoded = getattr(self._watched, name)(lines)
        self._coverage.add(self._watched, lines, *encoded, are_whole=name == "encode_lines")
        return encoded

    def _text(self, name, text):
        encoded = getattr(self._watched, name)(text)
        ids = encoded if name == "encode" else encoded[0]
        self._coverage.add(self._watched, [text], ids, [len(ids)])
        return encoded

    encode_lines = functools.partialmethod(_lines, "encode_lines")
    encode_words = functools.partialmethod(_lines, "encode_words")
    encode_parts = functools.partialmethod(_lines, "encode_parts")
    encode = functools.partialmethod(_text, "encode")
    encode_with_offsets = functools.partialmethod(_text, "encode_with_offsets")
    encode_with_surfaces = functools.partialmethod(_text, "encode_with_surfaces")


def _sums(marks, lengths):
    ends = np.cumsum(lengths)
    before = np.concatenate([[0], np.cumsum(marks)])
    return before[ends] - before[ends - lengths]


def _given(setting, flags):
    name, value = _REMEDIES[setting]
    if name in flags:
        return f"give --{name}={value}"
    return f"the vocabulary fits with {name}={value.lower()} in its tokenizer's settings"


def _others(tokenizer) -> Iterator[tuple[str, Any]]:
    """Yields (name, tokenizer) of the same vocabulary read with other settings, see `_REMEDIES`."""
    if not tokenizer.has_choice_of_case:
        return
    kind, vocabulary, lower = type(tokenizer), tokenizer.vocabulary, tokenizer.do_lower_case
    settings = {name: value for name, value in tokenizer.settings.items()
                if name not in ("strip_accents", "keep_accents")}
    yield "cased" if lower else "lower", kind(vocabulary, not lower, **settings)
    if "strip_accents" in kind.setting_names:
        drops = _drops_marks(tokenizer)
        yield ("accents" if drops else "stripped",
               kind(vocabulary, lower, **settings, strip_accents=not drops))
    if _drops_marks(tokenizer) and "keep_accents" in kind.setting_names:
        yield "kept", kind(vocabulary, lower, **settings, keep_accents=True)


def _drops_marks(tokenizer):
    return not _marks(tokenizer.fold("\u00e9"))


def _is_letter(char):
    return unicodedata.category(char)[0] in "LM"


def _marks(text):
    return sum(unicodedata.category(char) == "Mn" for char in unicodedata.normalize("NFD", text))
