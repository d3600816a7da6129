"""Sentences of a corpus in any container: made piece by piece in several processes, and the same
however many there are and however often the job was killed."""

import dataclasses
import itertools
import os
import re
from collections.abc import Iterator
from typing import Any

from bert_tf import files
from bert_tf.data.records.jobs import FinishedPieces, run_pieces
from bert_tf.tokenization.encoding import slices
from data_prep import sentences
from data_prep.containers import Piece, checksum, container_of, is_plain, version_of

_WHITE_SPACE = re.compile(r"\s")
AUTO = "auto"
PART = 50          # sentences of each document that a text of one document is cut into


@dataclasses.dataclass(frozen=True)
class Maker:
    """Makes the sentences of one piece at a call, a file in `folder` of a sentence per line and a
    blank line after documents; every worker process has a copy. `language` is whose rules end
    sentences, or `AUTO`: the piece's own, else English."""

    folder: str
    column: str
    lines_are_paragraphs: bool
    language: str

    def path(self, index: int) -> str:
        return os.path.join(self.folder, f"{index:05d}.txt")

    def __call__(self, index: int, piece: Piece) -> dict[str, Any]:
        texts = container_of(piece.source).documents(piece, self.column)
        documents = (self._sentences(text, piece.language) for text in texts)
        documents = ["".join(f"{line}\n" for line in lines) + "\n" for lines in documents if lines]
        content = "".join(documents).encode("utf-8", "replace")
        with files.write_aside(self.path(index), "wb") as file:
            file.write(content)
        return {"source": piece.source, "index": index, "bytes": len(content),
                "crc32c": checksum(content)}

    def _sentences(self, text, own_language):
        lines = [line.strip() for line in text.split("\n")]
        paragraphs = lines if self.lines_are_paragraphs else re.split(r"\n\n+", "\n".join(lines))
        language = self.language
        if language == AUTO:
            language = own_language or sentences.ENGLISH
        # One blank for each run of white space; long texts in parts.
        blanks_joined = (" ".join(filter(None, (
            " ".join(part.split()) for part in slices(paragraph, _WHITE_SPACE))))
            for paragraph in paragraphs)
        return [sentence for paragraph in blanks_joined
                for sentence in sentences.sentences(paragraph, language)]

    def is_intact(self, result: dict[str, Any]) -> bool:
        try:
            path = self.path(result["index"])
            if not files.is_file(path):
                return False
            with files.open_file(path, "rb") as file:
                return checksum(file.read()) == result["crc32c"]
        except (KeyError, TypeError):
            return False


class Corpus:
    """The documents of files or data sets, as lists of sentences; finished parts are kept next to
    `output`, the file that they are for, until `close`."""

    def __init__(self, sources: list[str], output: str, column: str, lines_are_paragraphs: bool,
                 language: str, num_workers: int) -> None:
        self._sources, self._workers = sources, num_workers
        self._maker = Maker(f"{output}.progress", column, lines_are_paragraphs, language)
        self.is_plain = all(map(is_plain, sources))
        self._results: list[dict[str, Any]] = []
        self._progress = FinishedPieces(self._maker.folder, {
            "column": column, "lines_are_paragraphs": lines_are_paragraphs,
            "language": language, "sources": list(map(version_of, sources))}, None)

    def make(self) -> None:
        """Makes the sentences of all pieces that are not made yet; an error before the first piece
        is finished leaves nothing next to the output."""
        pieces = (piece for source in self._sources
                  for piece in container_of(source).pieces(source, self._maker.column))
        try:
            self._results = run_pieces(pieces, None, self._maker, self._progress, self._workers,
                                       self._maker.is_intact)
        except BaseException:
            if not self._progress.noted():
                self.close()
            raise

    def close(self) -> None:
        self._progress.close()

    def documents(self) -> Iterator[tuple[str, list[str]]]:
        """Returns (name, sentences) of each document; parts of it where there is one alone.
        Documents are named by their file and number where all files are plain text, else by their
        sentences, so that one in another container has the same name."""
        if not self.is_one_document:
            return self._whole()
        (name, lines), = self._whole()
        return ((f"{name} {start}", lines[start:start + PART])
                for start in range(0, len(lines), PART))

    @property
    def is_one_document(self) -> bool:
        return len(list(itertools.islice(self._whole(), 2))) == 1

    def _whole(self):
        numbers: dict[str, int] = {}
        for result in self._results:
            source = result["source"]
            with files.open_file(self._maker.path(result["index"]), newline="\n") as file:
                lines = []
                for line in file:
                    if line != "\n":
                        lines.append(line[:-1])
                        continue
                    number = numbers[source] = numbers.get(source, -1) + 1
                    yield (f"{source} {number}" if self.is_plain else "\n".join(lines)), lines
                    lines = []
