"""A corpus in pieces of whole documents, and a piece as documents of token ids. The files are read
as one text, as by the original: a document that no blank line ends continues in the next file."""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from bert_tf.data.text import places
from bert_tf.data.text.places import read_pieces as read_pieces
from bert_tf.errors import InputError
from bert_tf.files import open_unpacked

# The line that marks the end of a file: no other line holds a newline.
FILE_END = "\n"


def decode(piece: bytes, paths: Sequence[str]) -> list[str]:
    """Returns the lines of a piece; the line `FILE_END` marks the end of a file, if asked for.
    InputError names file, line and byte that are not UTF-8."""
    try:
        first, *others = (part.decode("utf-8").split("\n") for part in piece.split(places.FILE_END))
        return [*first, *(line for part in others for line in (FILE_END, *part))]
    except UnicodeDecodeError as error:
        raise InputError(_locate_bad_line(paths)) from error


def _locate_bad_line(paths):
    for path in paths:
        with open_unpacked(path) as file:
            for number, line in enumerate(file, 1):
                try:
                    line.decode("utf-8")
                except UnicodeDecodeError as error:
                    return (f"{path}, line {number}, byte {error.start + 1} is not UTF-8 "
                            f"(0x{line[error.start]:02x}): convert the file to UTF-8.")
    raise AssertionError("a piece was not UTF-8, but every line of the files is")


@dataclasses.dataclass
class Marks:
    """Marks of T tokens.

    Attributes:
        continues: bool [T], whether a token continues the word of the token before it.
        units: bool [T], whether it continues that token's unit; None where all units are words.
        entities: bool [T], whether it belongs to a tagged run or a phrase; None as above.
        labels: bool [T], labels from the text; None if there are none.
    """

    continues: np.ndarray
    units: np.ndarray | None = None
    entities: np.ndarray | None = None
    labels: np.ndarray | None = None

    def insert(self, places: np.ndarray) -> "Marks":
        """Returns marks with tokens put in at some places, which begin words and units."""
        return Marks(*(None if values is None else np.insert(values, places, False)
                       for values in vars(self).values()))

    def bytes(self) -> dict[str, np.ndarray | None]:
        """The same as uint8, by the names of the attributes."""
        return {name: None if values is None else values.view(np.uint8)
                for name, values in vars(self).items()}


# A function that returns the `Marks` of the tokens of lines. Its arguments are the lines, the ids
# and lengths from `tokenizer.encode_lines`, and the array from `tokenizer.continuations`.
Marker = Callable[[Sequence[str], np.ndarray, np.ndarray, np.ndarray], Marks]


def _words(lines, ids, lengths, continues):
    return Marks(continues)


@dataclasses.dataclass
class Documents:
    """The sentences of a piece as token ids, grouped into documents.

    Attributes:
        tokens: int32 [T], the ids of all sentences, one after the other.
        sentence_starts: list, where each sentence begins in `tokens`, and T at the end.
        ranges: list, (first sentence, last sentence + 1) of each document, which has at least one.
        continues: uint8 [T], 1 where a token continues the word before it.
        files: how many files end in the piece, where files end documents.
        is_open: whether no blank line ends the last document, where blank lines end documents.
        units: uint8 [T], 1 where a token continues the unit before it; None where all units are
            words.
        entities: uint8 [T], 1 where a token belongs to a tagged run or a phrase; None as above.
        labels: uint8 [T], labels of the tokens; None if there are none.
        pair_labels: the labels of documents of two sentences, where a file gives them.
        sep_id, unk_id: the ids of the separator and of unknown words.
        origins: int [], of the tokens after the text's T, the places in the text that they repeat;
            -1 for separators.
    """

    tokens: np.ndarray
    sentence_starts: list[int]
    ranges: list[tuple[int, int]]
    continues: np.ndarray
    files: int = 0
    is_open: bool = False
    units: np.ndarray | None = None
    entities: np.ndarray | None = None
    labels: np.ndarray | None = None
    pair_labels: Sequence[int] = ()
    sep_id: int | None = None
    unk_id: int | None = None
    origins: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0, int))
    _placed: list[tuple[int, int]] = dataclasses.field(default_factory=list)
    _end: int = 0

    def place(self, sentences: Sequence[int]) -> int:
        """Returns where the tokens of some sentences, in this order, begin in the token array;
        `add_copies` adds a copy of them at its end if they are not one run of it."""
        starts = self.sentence_starts
        if sentences[-1] - sentences[0] == len(sentences) - 1:
            return starts[sentences[0]]
        start = self._end = self._end or starts[-1]
        for sentence in sentences:
            self._placed.append((starts[sentence], starts[sentence + 1]))
            self._end += starts[sentence + 1] - starts[sentence]
        return start

    def add_copies(self) -> None:
        """Adds the copies that `place` promised to `tokens` and to the other arrays by token."""
        self._extend(lambda name, array: [array[start:end] for start, end in self._placed])
        self.origins = np.concatenate(
            [self.origins, *(np.arange(start, end) for start, end in self._placed)])
        self._placed.clear()

    def append(self, parts: Sequence[np.ndarray], origins: Sequence[np.ndarray]) -> None:
        """Adds tokens without marks, which belong to no document, at the end of the arrays; for
        `origins` see the attribute."""
        self.origins = np.concatenate([self.origins, *origins])
        added = np.concatenate([self.tokens[:0], *parts])
        self._extend(lambda name, array: [
            added if name == "tokens" else np.zeros(len(added), array.dtype)])

    def _extend(self, parts_of):
        """Adds parts at the end of each array by token: `parts_of` of its name and its values."""
        for name in ("tokens", "continues", "units", "entities", "labels"):
            array = getattr(self, name)
            if array is not None:
                setattr(self, name, np.concatenate([array, *parts_of(name, array)]))

    def joins(self, units: str) -> np.ndarray | None:
        """Returns uint8 [T], 1 where a token continues the unit before it; None if each token is a
        unit. For `units` see `MaskTokens`."""
        if units == "subwords":
            return None
        return self.continues if self.units is None or units == "words" else self.units


def tokenize_sentences(lines: Sequence[str], tokenizer, blanks_separate_docs: bool = True,
                       marker: Marker | None = None) -> Documents:
    """Tokenizes documents whose sentences each end with a separator, as fairseq prepares a text.

    A blank line is a sentence of one separator, which belongs to no document; without
    `blanks_separate_docs` all is one document, and blank lines are left out, as in fairseq. The
    last of `lines` is the text after the last newline. Lines are stripped of white space.
    """
    if lines and not lines[-1]:
        lines = lines[:-1]
    if any("\r" in line for line in lines):     # which Python's reader of text takes for line ends
        lines = [part for line in lines for part in line.removesuffix("\r").split("\r")]
    lines = [line.strip() for line in lines]
    if not blanks_separate_docs:
        lines = list(filter(None, lines))
    tokens, lengths = tokenizer.encode_lines(lines)
    ends = np.cumsum(lengths)
    marks = (marker or _words)(lines, tokens, lengths, tokenizer.continues[tokens]).insert(ends)
    tokens = np.insert(tokens, ends, tokenizer.vocabulary.sep_id).astype(np.int32)
    starts = np.concatenate([[0], ends + np.arange(1, len(ends) + 1)])
    # Runs of sentences that are not blank.
    edges = np.flatnonzero(np.diff(np.concatenate([[0], lengths > 0, [0]])))
    ranges = list(zip(edges[::2].tolist(), edges[1::2].tolist()))
    return Documents(tokens, starts.tolist(), ranges, sep_id=tokenizer.vocabulary.sep_id,
                     **marks.bytes())


def with_blanks(lines: Sequence[str], blank: str) -> list[str]:
    """Returns the lines with `blank` before each that follows a line of the same document."""
    return [blank + line if line.strip() and before.strip() else line
            for before, line in zip(["", *lines], lines)]


def tokenize_documents(lines: Sequence[str], tokenizer, blanks_separate_docs: bool = True,
                       marker: Marker | None = None) -> Documents:
    """Tokenizes lines to documents, as the original reads a file: a document ends at `FILE_END`, at
    a blank line, and at a line that is empty after the tokenizer's preparation.

    Lines that hold no token (control characters only, for example) are left out and end nothing.
    Carriage returns are dropped wherever they are, as TensorFlow's reader of lines drops them.
    """
    file_ends = np.array([line == FILE_END for line in lines], bool)
    lines = [line.replace("\r", "") for line in lines]
    tokens, lengths = tokenizer.encode_lines(lines)
    tokens, lengths = np.asarray(tokens, np.int32), np.asarray(lengths)
    ends = file_ends
    if blanks_separate_docs:
        ends = lengths == 0
        for number in np.flatnonzero(ends):
            ends[number] = tokenizer.is_blank(lines[number])
    has_tokens = lengths > 0
    # An empty text after the last newline is not a line.
    after = ends
    if has_tokens.any():
        after = ends[has_tokens.nonzero()[0][-1]:len(lines) - (not lines[-1])]
    document = np.cumsum(ends)[has_tokens]      # equal for the sentences of one document
    starts = np.concatenate([[0], np.cumsum(lengths[has_tokens])])
    edges = np.concatenate([[0], np.flatnonzero(np.diff(document)) + 1, [len(document)]])
    ranges = [(int(a), int(b)) for a, b in zip(edges, edges[1:]) if a < b]
    marks = (marker or _words)(lines, tokens, lengths,
                               tokenizer.continuations(lines, tokens, lengths))
    return Documents(tokens, starts.tolist(), ranges, files=int(file_ends.sum()),
                     is_open=blanks_separate_docs and not after.any(),
                     sep_id=tokenizer.vocabulary.sep_id, unk_id=tokenizer.vocabulary.unk_id,
                     **marks.bytes())
