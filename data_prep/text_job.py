"""The records of recipes that read a text as documents: shards for each piece of the text."""

import dataclasses
import functools
import hashlib
from typing import Any

import google_crc32c
import numpy as np

from bert_tf.data import masking
from bert_tf.data.denoising.text_pairs import create_pairs
from bert_tf.data.instances import statistics
from bert_tf.data.instances.pretraining import create_instances
from bert_tf.data.records import manifest
from bert_tf.data.records.tfrecord import write_shard
from bert_tf.data.segments import labelled_pairs
from bert_tf.data.segments.pairing import PAIRINGS
from bert_tf.data.text import corpus, places
from bert_tf.data.text.token_labels import capitals
from bert_tf.data.text.units import BOUNDARY, PhraseList, TaggedText, make_marker
from bert_tf.errors import InputError
from bert_tf.options import defaults_of
from bert_tf.recipes import Recipe
from bert_tf.tokenization.base import Tokenizer
from data_prep.pretraining_flags import PretrainingDataFlags, needs_tags
from data_prep.pretraining_manifest import describe, draws_of_corpus, fingerprint_of, options_of

_ROWS = 8192            # instances made into bytes at a time
_SEEDS = 1 << 62        # seeds of data sets are below this number


@dataclasses.dataclass
class TextJob:
    """Makes the shards of one piece at a call, for `make_shards`; every worker process has a copy.

    Attributes:
        folder: the manifest's; shards are named relative to it.
        target_length: T, length of targets, in records of inputs and targets.
        rows: rows of a batch, for recipes whose sequences continue from batch to batch.
        fingerprint: values that the shards depend on.
        defaults: defaults of the fingerprint's options.
    """

    job: PretrainingDataFlags
    recipe: Recipe
    tokenizer: Tokenizer
    folder: str
    target_length: int = 0
    rows: int = 0
    report = staticmethod(statistics.report)

    def __post_init__(self):
        job, self.phrases = self.job, None
        if self.rows and len(job.output_file) > 1:
            raise InputError("--output_file: the records of rows are in order, so there is one "
                             "file; name one.")
        self.options, self._pieces = options_of(job), self._find_pieces()
        if self.target_length:
            self.options["max_target_length"] = self.target_length
        if self.rows:
            self.options["bsz_per_host"] = self.rows
        self.options["do_whole_word_mask"] = self.recipe.corruption.units == "words"
        if job.phrase_file:
            self.phrases = PhraseList.read(job.phrase_file, self.tokenizer)
            self.options["phrase_file"] = self.phrases.hash
        self.fingerprint = fingerprint_of(
            job, self.recipe, self.options, self.tokenizer.vocabulary,
            list(map(places.size, self._pieces)), self.folder)
        self.defaults = defaults_of(PretrainingDataFlags)

    def _find_pieces(self):
        by_column = self.job.input_format == "columns"
        boundary = places.LINE_END if self._pairing.is_labelled else places.BLANK_LINE
        return places.find_pieces(
            self.job.input_file, self.job.piece_bytes,
            by_column or self._pairing.in_order,
            BOUNDARY if by_column else boundary)

    @property
    def _pairing(self):
        return PAIRINGS[self.recipe.segments.pairing]

    def pieces(self) -> places.Pieces:
        """Returns the pieces of the text by place."""
        return self._pieces

    def checksum(self, piece: places.Piece) -> int:
        """Returns the checksum that the manifest has of a piece, which is read for it."""
        return google_crc32c.value(places.read_piece(piece))

    def version(self, piece: places.Piece) -> list[list]:
        """Returns a value that changes with the files of a piece, and with its place in them."""
        return [[place.version, place.start, place.end, place.added.hex()] for place in piece]

    def check_text(self) -> None:
        """Raises InputError if a piece can't be read or is not UTF-8."""
        for piece in self._pieces:
            corpus.decode(places.read_piece(piece), _paths(piece))

    def check_unchanged(self) -> None:
        """Raises InputError if a file has changed since the pieces were found."""
        places.check_versions(self._pieces.versions)

    def describe(self, results: list[dict]) -> dict[str, Any]:
        """Returns the manifest but for its shards, given the results of the calls."""
        return describe(self.job, self.recipe, self.tokenizer.vocabulary, self.options, results)

    def __call__(self, index: int, piece: places.Piece) -> dict[str, Any]:
        """Writes the shards of a piece; returns their entries and counts for the manifest."""
        paths = _paths(piece)
        read = places.read_piece(piece)
        checksum = google_crc32c.value(read)
        lines = corpus.decode(places.without_marks(piece, read), paths)
        del read
        tokenize = (corpus.tokenize_sentences if self.recipe.segments.sentence_ends
                    else corpus.tokenize_documents)
        text = None
        if self.job.input_format == "columns":
            tags = needs_tags(self.recipe)
            text = TaggedText(lines, self.tokenizer, self.job.tag_column if tags else None,
                              paths)
            lines = text.lines
        labels: list[int] = []
        if self._pairing.is_labelled:
            lines, labels = labelled_pairs.as_documents(lines, self.job.labels, ", ".join(paths))
        documents = tokenize(lines, self.tokenizer,
                             self.job.blanks_separate_docs or self._pairing.is_labelled,
                             make_marker(text, self.phrases, self._label))
        if self._pairing.is_labelled:
            labelled_pairs.give_labels(documents, labels, ", ".join(paths))
        vocabulary = self.tokenizer.vocabulary
        counts, sample = statistics.count_text(
            lines, documents, vocabulary.unk_id,
            self.recipe.segments.pairing == "doc_blocks")
        del lines
        instances, more = self._make(documents, piece_seed(self.job.random_seed, index))
        counts.update(more)
        try:
            shards = self._write(index, instances)
        except OSError as error:
            raise InputError(
                f"--output_file: piece {index + 1} can't be written ({error}); make room and run "
                "the command again: finished pieces are kept.") from error
        result = {"shards": shards, "counts": counts, "line_sample": sample,
                  "checksum": checksum, "version": self.version(piece)}
        if draws_of_corpus(self.recipe):
            # DistilBERT's code counts lines that it leaves out, too.
            is_whole = masking.find(self.recipe.corruption).by_rarity
            result["token_counts"] = np.bincount(
                documents.tokens if is_whole else instances.counted_tokens,
                minlength=vocabulary.size).tolist()
        return result

    def _make(self, documents, seed):
        """Makes the instances of a piece, and counts them."""
        vocabulary, size = self.tokenizer.vocabulary, self.job.max_seq_length
        if self.recipe.denoising:
            pairs = create_pairs(documents, vocabulary, seed % _SEEDS, self.recipe.denoising, size,
                                 self.target_length, self.job.dupe_factor)
            return pairs, pairs.counts()
        instances = create_instances(documents, vocabulary, seed, self.recipe, self.job,
                                     self.rows)
        return instances, statistics.count_instances(instances, size, instances.layout)

    @property
    def _label(self):
        """Function that labels the tokens of a text, if the task has labels of tokens."""
        task = self.recipe.tasks[self.recipe.task] if self.recipe.task else None
        if task and task.token_labels == "capitalization":
            return functools.partial(capitals, tokenizer=self.tokenizer)
        return None

    def _write(self, index, instances):
        """Spreads the instances over the output files in turn, as the original does."""
        count = len(self.fingerprint["pieces"])
        names = [manifest.shard_name(name, index, count) for name in self.job.output_file]
        shards = []
        # One file at a time: each takes every len(names)-th instance.
        for turn, name in enumerate(names):
            order = instances.order[turn::len(names)]
            blocks = (instances.features(order[start:start + _ROWS], self.job.max_seq_length,
                                         self.tokenizer.vocabulary)
                      for start in range(0, len(order), _ROWS))
            shards.append(write_shard(name, self.folder, blocks))
        return shards


def _paths(piece):
    return list(dict.fromkeys(place.path for place in piece))


def piece_seed(seed: int, index: int) -> int:
    """Returns the seed of a piece. The first has the seed itself, so that the records of a text of
    one piece equal the original's."""
    if index == 0:
        return seed
    return int.from_bytes(hashlib.sha256(f"{seed}/{index}".encode()).digest()[:8], "big")
