"""The records of a text: shards for each piece of it, and their manifest."""

import contextlib
import ctypes
import dataclasses
import functools
import hashlib
import re
from typing import Any

import google_crc32c
import numpy as np

from bert_tf.data import masking
from bert_tf.data.instances import pretraining
from bert_tf.data.instances.pretraining import create_instances, describe_records
from bert_tf.data.records import manifest
from bert_tf.data.records.tfrecord import write_shard
from bert_tf.data.segments.pairing import PAIRINGS
from bert_tf.data.text import corpus
from bert_tf.data.text.python_random import PythonRandom
from bert_tf.data.text.token_labels import capitals
from bert_tf.data.text.units import BOUNDARY, PhraseList, TaggedText, make_marker
from bert_tf.errors import InputError, counted
from bert_tf.files import file_size, identity, is_packed, open_unpacked, read_range, relative
from bert_tf.recipes import Recipe
from bert_tf.tokenization.base import Tokenizer
from bert_tf.tokenization.coverage import Coverage, join
from data_prep.pretraining_flags import SHARE_FLAGS, PretrainingDataFlags, needs_tags
from data_prep.recipe_flags import RowFlags

_ROWS = 8192            # instances whose features have one order
_PART_TOKENS = 1 << 18  # made into bytes at a time, which fit the processor's caches
# Flags that leave the records as they are, and flags that the recipe in the manifest describes.
_NO_OPTIONS = ("input_file", "output_file", "num_workers", "vocab_file", "second_vocab_file",
               "recipe", "segments", "masking", "mask_by", "mask_shares", "random_next_sentence",
               "masking_units", "task", *SHARE_FLAGS)


@dataclasses.dataclass
class RecordJob:
    """Makes the shards of one piece at a call, for `make_shards` with `by_place`; every worker
    process has a copy."""

    job: PretrainingDataFlags
    recipe: Recipe
    tokenizer: Tokenizer
    folder: str     # the manifest's; shards are named relative to it
    stream: RowFlags
    target_length: int = 0
    pieces: Any = dataclasses.field(init=False)
    versions: dict[str, str] = dataclasses.field(init=False)
    # Of the manifest: the flags about records that are not the recipe's.
    options: dict[str, Any] = dataclasses.field(init=False)
    fingerprint: dict[str, Any] = dataclasses.field(init=False)
    has_sentences = True
    in_order = ""   # what the records are read from in order, such as rows; "" if shuffled

    @classmethod
    def prepare(cls, job: PretrainingDataFlags, recipe: Recipe) -> Recipe:
        """Sets what flags leave to the input files, and their order; returns the recipe."""
        return recipe

    def __post_init__(self):
        if self.in_order and len(self.job.output_file) > 1:
            raise InputError(f"--output_file: the records of {self.in_order} are in order, so "
                             "there is one file; name one.")
        self.options = {name: value for name, value in dataclasses.asdict(self.job).items()
                        if name not in _NO_OPTIONS} | self.own_options()

    def own_options(self) -> dict[str, Any]:
        return {}

    def check_unchanged(self) -> None:
        for path, version in self.versions.items():
            if identity(path) != version:
                raise InputError(f"{path} was changed while its records were made; run the same "
                                 "command again: pieces that did not change are kept.")

    def describe(self, results: list[dict]) -> dict[str, Any]:
        """Returns the manifest without its shards, given the results of the calls."""
        vocabulary, masks = self.tokenizer.vocabulary, masking.find(self.recipe.corruption)
        described = describe_records(self.recipe, self.options, vocabulary, self.job.input_file)
        if masks.replace_from == "words" or masks.by_rarity or masks.spares_special:
            described["vocabulary"]["special_ids"] = vocabulary.special_ids
        if vocabulary.parts:
            described["vocabulary"]["parts"] = [part.describe() for part in vocabulary.parts]
        return described

    def _fingerprint(self, pieces):
        return {"options": self.options, "vocabulary": self.tokenizer.vocabulary.hash,
                "pieces": pieces, "recipe": self.recipe.describe(),
                "output_file": [relative(name, self.folder) for name in self.job.output_file]}


def piece_seed(seed: int, index: int) -> int:
    """Returns the seed of a piece. The first has the seed itself, so that the records of a text of
    one piece equal the original's."""
    if index == 0:
        return seed
    return int.from_bytes(hashlib.sha256(f"{seed}/{index}".encode()).digest()[:8], "big")


class TextJob(RecordJob):
    """Sequences of segments; a piece has whole documents."""

    boundary = corpus.BLANK_LINE
    report = staticmethod(pretraining.report)

    @classmethod
    def prepare(cls, job: PretrainingDataFlags, recipe: Recipe) -> Recipe:
        if PAIRINGS[recipe.segments.pairing].in_order:
            PythonRandom(job.random_seed).shuffle(job.input_file)
        return recipe

    def __post_init__(self):
        super().__post_init__()
        job, self.phrases = self.job, None
        by_column = job.input_format == "columns"
        self._by_file = by_column or PAIRINGS[self.recipe.segments.pairing].in_order
        self.pieces = corpus.find_pieces(job.input_file, job.piece_bytes, self._by_file,
                                         BOUNDARY if by_column else self.boundary)
        self.versions = self.pieces.versions
        self.options["do_whole_word_mask"] = self.recipe.corruption.units == "words"
        if job.phrase_file:
            self.phrases = PhraseList.read(job.phrase_file, self.tokenizer)
            self.options["phrase_file"] = self.phrases.hash
        self.fingerprint = self._fingerprint(list(map(corpus.size, self.pieces)))

    def checksum(self, piece: corpus.Piece) -> int:
        return google_crc32c.value(corpus.read_piece(piece))

    def version(self, piece: corpus.Piece) -> list[list]:
        return [[place.version, place.start, place.end, place.added.hex()] for place in piece]

    def check_text(self) -> None:
        for piece in self.pieces:
            corpus.decode(corpus.read_piece(piece), _paths(piece))

    def describe(self, results: list[dict]) -> dict[str, Any]:
        counts, rates = pretraining.merge(results)
        paths = self.job.input_file
        if not counts.get("instances"):
            raise InputError(_why_no_record(self.job, self.recipe, counts))
        notes = []
        if empty := [path for path in paths if _is_empty(path)]:
            notes.append(f"there is no text in {_names(empty)}.")
        if self.has_sentences and not self._by_file:
            if unended := [path for path in paths[:-1] if not _ends_document(path)]:
                notes.append(f"no blank line ends {_names(unended)}: the last document continues "
                             "in the next file, as in the original.")
        if counts.get("open_documents"):
            notes.append(f"{paths[-1]} does not end with a blank line: its last document is left "
                         "out, as in the original.")
        made = super().describe(results) | {
            "counts": counts, "coverage": join(result["coverage"] for result in results)}
        if draws_of_corpus(self.recipe):
            made["token_counts"] = manifest.join_counts(
                [result["token_counts"] for result in results])
        return {**made, "rates": rates, "notes": notes}

    def __call__(self, index: int, piece: corpus.Piece) -> dict[str, Any]:
        documents, result = self._read(piece)
        _return_memory()
        instances, more = self._make(documents, piece_seed(self.job.random_seed, index))
        result["counts"].update(more)
        result["shards"] = self._write(index, instances)
        if draws_of_corpus(self.recipe):
            # Lines that are left out count too, as in the original.
            is_whole = masking.find(self.recipe.corruption).by_rarity
            result["token_counts"] = np.bincount(
                documents.tokens if is_whole else instances.counted_tokens,
                minlength=self.tokenizer.vocabulary.size).tolist()
        return result

    def _read(self, piece):
        """The `Documents` of a piece, and what the result has of its text, which is let go."""
        paths = _paths(piece)
        read = corpus.read_piece(piece)
        checksum = google_crc32c.value(read)
        lines = corpus.decode(corpus.without_marks(piece, read), paths)
        del read
        text = None
        if self.job.input_format == "columns":
            tags = needs_tags(self.recipe)
            text = TaggedText(lines, self.tokenizer, self.job.tag_column if tags else None, paths)
            lines = text.lines
        coverage = Coverage()
        label = marker = None
        if self.recipe.token_labels == "capitalization":
            label = functools.partial(capitals, tokenizer=self.tokenizer)
        if text or self.phrases or label:
            marker = make_marker(text, self.phrases, label)
        lines, documents = self._documents(lines, coverage.watch(self.tokenizer), marker,
                                           ", ".join(paths))
        counts, sample = pretraining.count_text(
            lines, documents, self.tokenizer.vocabulary,
            self.recipe.segments.pairing == "doc_blocks", self.recipe.corruption.units)
        return documents, {"counts": counts, "coverage": coverage.totals(), "line_sample": sample,
                           "checksum": checksum, "version": self.version(piece)}

    def _documents(self, lines, tokenizer, marker, names):
        tokenize, texts = corpus.tokenize_documents, lines
        if self.recipe.segments.sentence_ends:
            tokenize = corpus.tokenize_sentences
        elif PAIRINGS[self.recipe.segments.pairing].joins_lines:
            texts = corpus.with_blanks(lines, self.tokenizer.word_prefix)
        return lines, tokenize(texts, tokenizer, self.job.blanks_separate_docs, marker)

    def _make(self, documents, seed):
        instances = create_instances(documents, self.tokenizer.vocabulary, seed, self.recipe,
                                     self.job, self.options.get("bsz_per_host", 0))
        _return_memory()
        pairing, cut = PAIRINGS[self.recipe.segments.pairing], {}
        if not pairing.in_rows:     # first, since it takes the most memory
            cut = pretraining.count_cut(
                instances, instances.layout.room(self.job.max_seq_length, pairing.segments == 2),
                self.recipe.segments.sentence_ends)
        return instances, pretraining.count_instances(
            instances, self.job.max_seq_length, instances.layout) | cut

    def _write(self, index, instances):
        """Spreads the instances over the output files in turn, as the original does."""
        _return_memory()
        names, shards = self.job.output_file, []
        parts = 1       # of so many instances; a power of two
        while parts < _ROWS and _ROWS * self.job.max_seq_length > parts * _PART_TOKENS:
            parts *= 2
        rows = _ROWS // parts
        # One file at a time: each takes every len(names)-th instance.
        for turn, name in enumerate(names):
            order = instances.order[turn::len(names)]
            blocks = (instances.features(order[start:start + rows], self.job.max_seq_length,
                                         self.tokenizer.vocabulary)
                      for start in range(0, len(order), rows))
            shards.append(write_shard(manifest.shard_name(name, index, len(self.pieces)),
                                      self.folder, blocks, parts))
        return shards


class RowJob(TextJob):
    """Sequences that continue from batch to batch in rows."""

    in_order = "rows"

    def own_options(self) -> dict[str, Any]:
        return {"bsz_per_host": self.stream.bsz_per_host}


def _return_memory():
    """Gives the memory of what is let go back to the system; glibc alone would keep the holes."""
    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def draws_of_corpus(recipe: Recipe) -> bool:
    """Returns whether training needs the number of each token in the text."""
    made = recipe.corruption
    return recipe.counts_tokens or masking.find(made).by_rarity or (
        made.dynamic and made.replace_from == "corpus")


def _why_no_record(job, recipe, counts):
    names, sentences = ", ".join(job.input_file[:3]), counts.get("sentences", 0)
    if not sentences:
        return f"--input_file: {names} holds no text; name files with text."
    ending = ", and no blank line ends the last document" if counts.get("open_documents") else ""
    return (f"--input_file: {names} has {counted(sentences, 'sentence')}, which make no record of "
            f"--recipe={recipe.name}: each is too short or longer than "
            f"--max_seq_length={job.max_seq_length}, or they are too few{ending}. Give other text, "
            "one sentence per line (bert-extract-text writes it), or change --max_seq_length.")


def _names(paths):
    if len(paths) == 1:
        return paths[0]
    return f"{paths[0]} and {counted(len(paths) - 1, 'more file')}"     # there may be thousands


def _is_empty(path):
    with open_unpacked(path) as file:
        return not file.read(1)


def _ends_document(path):
    if is_packed(path):
        return True     # not worth another pass over it
    size = file_size(path)
    end = read_range(path, max(0, size - 256), size)
    return re.search(rb"(^|\n)[ \t\r]*\n[ \t\r]*$", end) is not None


def _paths(piece):
    return list(dict.fromkeys(place.path for place in piece))
