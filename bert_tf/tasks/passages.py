"""Paragraphs as tokens, and tokens back to their text. BERT reads a passage word by word, and cuts
an answer out of its words. XLNet, ALBERT and the library transformers read it as one text, and find
the characters of its tokens. Shapes: P paragraphs, N questions, T tokens."""

import bisect
import unicodedata
from collections.abc import Callable, Sequence

import numpy as np

from bert_tf.errors import InputError
from bert_tf.tasks import squad

NONE = -1               # a character without a counterpart
_LEAST_SHARE = 0.8      # of the text that must have counterparts
_SLACK = 5
_ABSENT, _UP, _LEFT, _MATCH = range(4)


class WordPassages:
    """Passages of words between blanks (google-research/bert, run_squad.py): `ids` int32 [T], the
    tokens of all paragraphs one after another, `first_tokens` int [P + 1], each paragraph's first
    one, and T, and `token_words` int [T], each token's word within its paragraph."""

    def __init__(self, paragraphs: Sequence, tokenizer):
        """`paragraphs` are P `tasks.squad.Paragraph`."""
        self._paragraphs, self._tokenizer = paragraphs, tokenizer
        self.ids, pieces = tokenizer.encode_words([word for p in paragraphs for word in p.words])
        counts = np.array([len(p.words) for p in paragraphs], np.int64)
        self._word_tokens = np.concatenate([[0], np.cumsum(pieces)])
        self._first_words = np.concatenate([[0], np.cumsum(counts)])
        self.first_tokens = self._word_tokens[self._first_words]
        self.token_words = np.repeat(
            np.arange(len(pieces)) - np.repeat(self._first_words[:-1], counts), pieces)

    def answers(self, asked: Sequence[tuple]) -> np.ndarray:
        """Returns each answer's first and last token within its paragraph, int [N, 2], or -1.

        They are all tokens of the words that the answer touches, or the part of them that is the
        answer, if its tokens are among theirs (_improve_answer_span). `asked` are N pairs
        (paragraph's number, `Question`)."""
        answers = np.full((len(asked), 2), -1, np.int64)
        rows = [row for row, (_, question) in enumerate(asked) if question.answer]
        texts = [asked[row][1].answer for row in rows]
        # An answer may begin a word, or be a part of one.
        encoded = [self._tokenizer.encode_words(texts)]
        if self._tokenizer.word_prefix:
            encoded.append(self._tokenizer.encode_parts(texts))
        encodings = zip(*(np.split(part, np.cumsum(lengths)[:-1]) for part, lengths in encoded))
        for row, variants in zip(rows, encodings):
            number, question = asked[row]
            word = self._first_words[number]
            first = self._word_tokens[word + question.first_word]
            last = self._word_tokens[word + question.last_word + 1] - 1
            tokens = self.ids[first:last + 1].tolist()
            for part in map(np.ndarray.tolist, variants):
                place = next((start for start in range(len(tokens) - len(part) + 1)
                              if part and tokens[start:start + len(part)] == part), None)
                if place is not None:
                    first, last = first + place, first + place + len(part) - 1
                    break
            answers[row] = first, last
            answers[row] -= self.first_tokens[number]
        return answers

    def text_of(self, number: int, tokenizer) -> Callable[[int, int], str]:
        """Returns a function from a first and last token of paragraph `number` to their text."""
        words = self._paragraphs[number].words
        part = slice(*self.first_tokens[number:number + 2])
        tokens, places = self.ids[part].tolist(), self.token_words[part].tolist()

        def text(first, last):
            first_word, last_word = places[first], places[last]
            return tokenizer.excerpt(
                words[first_word:last_word + 1], tokens[first:last + 1],
                first - bisect.bisect_left(places, first_word),
                bisect.bisect_right(places, last_word) - last - 1)

        return text


class CharacterPassages(WordPassages):
    """Passages that are cut into Chinese characters and other words. An answer is an unchanged part
    of the passage, from the first character of a word to the last one of another."""

    def __init__(self, paragraphs: Sequence, tokenizer):
        if tokenizer.word_prefix:
            raise InputError("--squad_style=cmrc needs a WordPiece vocabulary, but this one is of "
                             f"{tokenizer.name}; give --squad_style=bert.")
        super().__init__(paragraphs, tokenizer)

    def text_of(self, number: int, tokenizer) -> Callable[[int, int], str]:
        context = self._paragraphs[number].context
        words = squad.word_spans(context, "cmrc")
        places = self.token_words[slice(*self.first_tokens[number:number + 2])].tolist()
        return lambda first, last: context[words[places[first]][0]:words[places[last]][1]]


class TextPassages(WordPassages):
    """Passages as whole texts, and answers as their characters (transformers, run_qa.py). With
    byte-level BPE the first word follows no blank. `ids` and `first_tokens` are as in
    `WordPassages`."""

    def __init__(self, paragraphs: Sequence, tokenizer):
        self._paragraphs = paragraphs
        encoded = [tokenizer.encode_with_offsets(paragraph.context) for paragraph in paragraphs]
        self._places = [places for _, places in encoded]
        self.ids = np.array([index for ids, _ in encoded for index in ids], np.int32)
        self.first_tokens = np.cumsum([0, *(len(ids) for ids, _ in encoded)])

    def answers(self, asked: Sequence[tuple]) -> np.ndarray:
        answers = np.full((len(asked), 2), -1, np.int64)
        for row, (number, question) in enumerate(asked):
            start, end = question.start, question.start + len(question.answer)
            inside = [token for token, (first, last) in enumerate(self._places[number])
                      if question.answer and first < end and last > start]
            if inside:
                answers[row] = inside[0], inside[-1]
        return answers

    def text_of(self, number: int, tokenizer) -> Callable[[int, int], str]:
        context, places = self._paragraphs[number].context, self._places[number]
        return lambda first, last: context[places[first][0]:places[last][1]]


class PiecePassages:
    """Passages as whole texts, for SentencePiece (zihangdai/xlnet, run_squad.py;
    google-research/albert, squad_utils.py). `ids` and `first_tokens` are as in `WordPassages`.

    If too few characters of a passage are found in its tokens, it has no tokens and its questions
    are left out, as in the original. The tokenizer must cut texts as ALBERT does."""

    def __init__(self, paragraphs: Sequence, tokenizer):
        if not getattr(tokenizer, "prepares", False):
            raise InputError("--squad_style=albert and xlnet need a SentencePiece tokenizer, but "
                             f"this one is {tokenizer.name}; give --squad_style=bert.")
        self._paragraphs = paragraphs
        self._aligned, tokens = [], []
        for paragraph in paragraphs:
            ids, pieces = tokenizer.encode_with_surfaces(paragraph.context)
            pair = align(paragraph.context, "".join(pieces), tokenizer.do_lower_case)
            tokens.append(ids if pair else [])
            self._aligned.append(pair and (*pair, np.cumsum([0, *map(len, pieces)])))
        self.ids = np.array([index for ids in tokens for index in ids], np.int32)
        self.first_tokens = np.cumsum([0, *map(len, tokens)])

    def answers(self, asked: Sequence[tuple]) -> np.ndarray:
        answers = np.full((len(asked), 2), -1, np.int64)
        for row, (number, question) in enumerate(asked):
            if question.answer and self._aligned[number]:
                forth, _, begins = self._aligned[number]
                last = question.start + len(question.answer) - 1
                chars = [counterpart(forth, place, is_start) for place, is_start in
                         ((question.start, True), (last, False))]
                answers[row] = np.searchsorted(begins, chars, side="right") - 1
        return answers

    def text_of(self, number: int, tokenizer) -> Callable[[int, int], str]:
        context = self._paragraphs[number].context

        def text(first, last):
            _, back, begins = self._aligned[number]
            start = counterpart(back, begins[first], True, len(context))
            end = counterpart(back, begins[last + 1] - 1, False, len(context))
            return context[start:end + 1].strip()

        return text


# The class that reads passages, by --squad_style; "transformers" is of models that it wrote.
PASSAGES: dict[str, type[WordPassages] | type[PiecePassages]] = {
    "bert": WordPassages, "albert": PiecePassages, "electra": WordPassages,
    "xlnet": PiecePassages, "cmrc": CharacterPassages, "transformers": TextPassages}


def passages_of(style: str, tokenizer) -> type[WordPassages] | type[PiecePassages]:
    """The class in `PASSAGES`; a tokenizer.json knows the characters of its tokens itself."""
    reads = PASSAGES[style]
    return TextPassages if (reads, tokenizer.name) == (PiecePassages, "tokenizer_json") else reads


def _codes(text, lower):
    """Returns each character's code once prepared, int [N]; -1 if it is no longer one character."""
    def prepared(char):
        parts = "".join(part for part in unicodedata.normalize("NFKD", char)
                        if not unicodedata.combining(part))
        if lower:
            parts = parts.lower()
        return ord(parts) if len(parts) == 1 else -1

    known = {char: prepared(char) for char in set(text)}
    return np.array([known[char] for char in text], np.int64)


def align(text: str, tokens: str, lower: bool) -> tuple[np.ndarray, np.ndarray] | None:
    """The counterparts of a text's N and its tokens' M characters: int [N] and int [M], or `NONE`;
    None if too few have one. `tokens` are joined, with blanks where words begin; `lower`: whether
    preparing lower-cases.

    SentencePiece tokenises a prepared text: blanks joined, accents dropped, letters lower-cased.
    The longest common subsequence of both leads back to the characters as written
    (google-research/albert, squad_utils.py)."""
    size, goal = len(text), len(tokens)
    if not (size and goal):
        return None
    written, pieces = _codes(text, lower), np.array([ord(char) for char in tokens], np.int64)
    if goal == size + 1 and tokens[0] == " " != text[0] and (written == pieces[1:]).all():
        return np.arange(1, goal), np.arange(-1, size)      # then no other alignment is as long
    reach = abs(size - goal) + _SLACK
    for width in (reach, 2 * reach):
        length, steps = _longest(written, pieces, width)
        if length > _LEAST_SHARE * size:
            break
    if length < _LEAST_SHARE * size:
        return None
    pairs = np.array(list(_trace(steps, size, goal, width)), np.int64)
    forth, back = np.full(size, NONE), np.full(goal, NONE)
    forth[pairs[:, 0]], back[pairs[:, 1]] = pairs[:, 1], pairs[:, 0]
    return forth, back


def _longest(written, pieces, reach):
    """Finds the longest common subsequence in the band -reach <= j - i < reach. Returns its length,
    and the steps to it, int8 [N, 2 * reach]: column k of row i is j = i - reach + k."""
    size, goal = len(written), len(pieces)
    steps = np.zeros((size, 2 * reach), np.int8)
    padded = np.full(size + goal + 4 * reach, -2, np.int64)     # a code that matches nothing
    padded[reach:reach + goal] = pieces                         # j is at reach + j
    last = np.zeros(2 * reach + 1, np.int64)                    # row i - 1, and a 0 behind it
    valid = padded >= 0
    for i, code in enumerate(written.tolist()):
        window = slice(i, i + 2 * reach)
        is_valid = valid[window]
        up, longer = last[1:], last[:-1] + 1
        matches = padded[window] == code
        row = np.maximum.accumulate(np.where(is_valid, np.maximum(
            up, np.where(matches, longer, 0)), 0))
        left = np.concatenate([[0], row[:-1]])
        step = np.where(left > up, _LEFT, _UP if i else _ABSENT)
        step[matches & (longer > np.maximum(up, left))] = _MATCH
        steps[i] = np.where(is_valid, step, _ABSENT)
        last[:-1] = np.where(is_valid, row, 0)
    return int(last[goal - 1 - (size - 1) + reach]), steps


def _trace(steps, size, goal, reach):
    """Yields the matching pairs (i, j) from the end on, as far as the band reaches."""
    i, j = size - 1, goal - 1
    while i >= 0 and j >= 0 and 0 <= j - i + reach < 2 * reach:
        step = steps[i, j - i + reach]
        if step == _ABSENT:
            return
        if step == _MATCH:
            yield i, j
        i, j = i - (step != _LEFT), j - (step != _UP)


def counterpart(others: np.ndarray, place: int, is_start: bool, end: int | None = None) -> int:
    """A character's counterpart among `others`, int [N] of `align`, or if it is missing a place
    between its neighbours' counterparts: at the left end of the gap if the character begins an
    answer. `end`: number of the other side's characters; None: not beyond the last counterpart."""
    if others[place] != NONE:
        return int(others[place])
    known = np.flatnonzero(others != NONE)
    after, before = known[known > place], known[known < place]
    low, high = -1, end or 0        # the counterparts beside the gap
    if len(before):
        low = int(others[before[-1]])
    if len(after):
        high = int(others[after[0]])
    if high > low + 1:
        return low + 1 if is_start else high - 1
    if not len(after) or len(before) and not is_start:
        return low
    return high
