"""Turns text into pre-training records, for BERT as the original or by another recipe.

The input has one sentence a line and a blank line between documents. The records of --recipe=bert
are those of google-research/bert create_pretraining_data.py, value for value, for a text that fits
one piece (--piece_bytes); a larger text is cut into pieces of whole documents, each treated as the
original would treat a file of its own. The same command started again goes on where it was killed.

With --masking=dynamic the records hold the text without masks, and bert-run-pretraining draws other
masks whenever a record comes again.

Example:
    bert-create-pretraining-data --input_file=text.txt --output_file=/tmp/text.tfrecord \\
        --vocab_file=vocab.txt --max_seq_length=128 --max_predictions_per_seq=20
"""

import dataclasses
import functools
import hashlib
import os
import re
from typing import Any

import google_crc32c
import numpy as np

from bert_tf import flags, recipes
from bert_tf.data import corpus, manifest, statistics
from bert_tf.data.dynamic_masks import can_draw
from bert_tf.data.pairing import PAIRINGS
from bert_tf.data.pretraining import create_instances, feature_names
from bert_tf.data.python_random import PythonRandom
from bert_tf.data.shards import make_shards
from bert_tf.data.tfrecord import write_shard
from bert_tf.data.token_labels import capitals
from bert_tf.data.units import BOUNDARY, PhraseList, TaggedText, make_marker
from bert_tf.errors import InputError
from bert_tf.files import find_files, is_gzip, make_folder, open_unpacked
from bert_tf.flags import REQUIRED, option
from bert_tf.options import defaults_of
from bert_tf.tokenization.base import open_tokenizer

_ROWS = 8192            # instances made into bytes at a time
# Flags that are fields of `MaskTokens`, by the value of `choose` that they are for, and what that
# is called, with a recipe that has it.
_CHOICE_FLAGS = {
    "ngrams": ("n-grams, such as albert", ("ngram", "favor_shorter_ngram", "do_permutation")),
    "spans": ("spans, such as spanbert", (
        "schemes", "span_lower", "span_upper", "geometric_p", "replacement_method", "endpoints",
        "max_pair_targets", "ner_masking_prob"))}
_SHARE_FLAGS = ("random_share", "swapped_share")
SCHEMES = ("pair_span", "random", "ner_span")
UNITS = ("subwords", "words", "tags", "phrases")
TASK_PAIRINGS = ("sentence_reordering", "sentence_distance")


@dataclasses.dataclass
class PretrainingDataFlags:
    """The original's flags, --piece_bytes, --num_workers, and those of the recipe at the end.

    A flag of the recipe that is None or empty has the recipe's value.
    """

    input_file: list[str] = option(REQUIRED, "Text: files, globs or folders, plain or .gz.")
    output_file: list[str] = option(
        REQUIRED, "TFRecord file, or several to spread the records over; .gz compresses. A corpus "
        "of several pieces gives one shard a piece: name.tfrecord-00000-of-00003.")
    vocab_file: str = option(
        REQUIRED, "The vocabulary of the tokenizer: vocab.txt, one token a line, or a folder.",
        alias="tokenizer_file")
    do_lower_case: bool = option(True, "Lower-case the text: True for uncased vocabularies.")
    do_whole_word_mask: bool | None = option(
        None, "Mask all sub-words of a word or none.")
    max_seq_length: int = option(128, "Length S of a sequence, [CLS] and [SEP]s included.")
    max_predictions_per_seq: int = option(
        20, "Most masked positions in a sequence: about max_seq_length * masked_lm_prob.")
    random_seed: int = option(12345, "Seed of every random choice.")
    dupe_factor: int = option(10, "Times that the text is used, each time with other pairs and "
                                  "masks.")
    masked_lm_prob: float = option(0.15, "Share of the tokens to predict.")
    short_seq_prob: float = option(0.1, "Share of the sequences that are to be shorter than the "
                                        "maximum.")
    piece_bytes: int = option(
        1 << 24, "Bytes of text that are treated as one file, and held in memory by one worker. It "
        "changes the records; the number of workers does not.")
    num_workers: int = option(0, "Processes; 0 for one a core.")
    recipe: str = option("bert", "Kind of pre-training, which gives defaults to the other flags.",
                         choices=recipes.RECIPES)
    random_next_sentence: bool | None = option(
        None, "A random B in half of the pairs (BERT's next sentence prediction). Without it, A "
              "and B change places in half of them (ALBERT's sentence order).")
    ngram: int | None = option(
        None, "Most words or tokens in a row that are masked together (ALBERT).")
    favor_shorter_ngram: bool | None = option(
        None, "Mask n in a row with a probability in proportion to 1/n. Otherwise the longest are "
              "the most frequent.")
    do_permutation: bool | None = option(
        None, "Let as many other tokens change places, and predict them too. Records then have "
              "room for twice --max_predictions_per_seq.")
    segments: str | None = option(
        None, "What makes a sequence: segment_pairs (BERT's next-sentence pairs), sentence_pairs "
        "(the same with a sentence each), full_sentences (RoBERTa's: whole sentences, no second "
        "segment and no label), doc_sentences (the same of one document), doc_blocks (SpanBERT's: "
        "the same without separators) or electra (ELECTRA's: sentences of one document, divided in "
        "two, in the order of the text).",
        choices=PAIRINGS)
    schemes: list[str] = option(
        [], "How the tokens of a sequence are chosen, one of these for each sequence (SpanBERT): "
        "pair_span, spans of words; random, single tokens; ner_span, entities and spans.")
    span_lower: int | None = option(None, "Fewest words of a span.")
    span_upper: int | None = option(None, "Most words of a span; 1 masks single words.")
    geometric_p: float | None = option(
        None, "p of the geometric distribution of a span's length; near 0 for a uniform one.")
    replacement_method: str | None = option(
        None, "Hide a whole span in one way (span), or each of its tokens in its own (word_piece).",
        choices=("span", "word_piece"))
    endpoints: str | None = option(
        None, "What a span is predicted from: the tokens around it (external), or its own first "
        "and last (internal).", choices=("external", "internal"))
    max_pair_targets: int | None = option(
        None, "How many tokens of a span are predicted from these.")
    ner_masking_prob: float | None = option(
        None, "With --schemes=ner_span: the probability of an entity, not a span.")
    shuffle_prob: float | None = option(
        None, "Share of the visible tokens that are shuffled, three neighbours at a time, and "
        "predicted too (StructBERT).")
    random_share: float | None = option(
        None, "Share of the pairs that get a random B, if B has a next sentence.")
    swapped_share: float | None = option(
        None, "Share of the other pairs in which A and B change places (StructBERT).")
    blanks_separate_docs: bool = option(True, "A blank line ends a document.")
    strip_accents: bool = option(True, "Lower-casing drops accents too (WordPiece).")
    masking: str | None = option(
        None, "static: the records hold masks; each of --dupe_factor copies has its own. dynamic: "
        "masks are drawn while training.", choices=("static", "dynamic"))
    mask_shares: list[str] = option(
        [], "Share of the predicted tokens that become [MASK] and share that become a random "
        "token; the others stay.")
    masking_units: str | None = option(
        None, "What is masked together or not at all. words: all sub-words of a word. tags: words "
        "under one tag in --tag_column. phrases: those of --phrase_file. Other words are units of "
        "their own.", choices=UNITS)
    input_format: str = option(
        "lines", "lines: a sentence a line, blank lines between documents. columns: a word a line "
        "with its tags, as bert-run-tagger reads and writes, a blank line after each sentence; two "
        "or a line -DOCSTART- between documents.", choices=("lines", "columns"))
    tag_column: int = option(-1, "The column of the tags, IOB1 or BIO, of --masking_units=tags; "
                                 "words are in column 0, -1 is the last.")
    task: str = option("", "For recipes that are trained on records of several tasks, such as "
                           "ernie2: the task of these records.")
    phrase_file: str = option("", "A phrase a line, of which the longest that is found counts.")

    def resolve(self) -> recipes.Recipe:
        """The recipe as the flags vary it.

        Raises:
            InputError: there is no such recipe, or it has no use for a flag.
        """
        recipe = self._find_recipe()
        segments: dict[str, Any] = {}
        if self.segments:
            ends = self.segments == "full_sentences" or (
                self.segments == "doc_sentences" and recipe.segments.sentence_ends)
            segments = {"pairing": self.segments, "sentence_ends": ends}
        if self.random_next_sentence is not None:
            segments["negatives"] = "random" if self.random_next_sentence else "swapped"
            segments["random_share"] = recipes.Segments.random_share
        segments |= self._given(_SHARE_FLAGS)
        corruption = self._given(("shuffle_prob",))
        for choose, (called, names) in _CHOICE_FLAGS.items():
            found = self._given(names)
            if found and recipe.corruption.choose != choose:
                raise InputError(f"--{next(iter(found))} is for recipes that mask {called}; leave "
                                 f"it out with --recipe={recipe.name}.")
            corruption |= found
        if self.do_whole_word_mask is not None:
            corruption["units"] = "words" if self.do_whole_word_mask else "subwords"
        if self.masking_units:
            corruption["units"] = self.masking_units
        if self.masking:
            corruption["dynamic"] = self.masking == "dynamic"
            if not corruption["dynamic"] and recipe.corruption.quota == "with_repeats":
                corruption["quota"] = "rounded"     # there, no position comes twice
        if self.mask_shares:
            corruption["shares"] = _shares(self.mask_shares)
        if not recipe.corruption.hides:
            self._check_hides_nothing()
        settings = {} if self.strip_accents else {"strip_accents": False}
        recipe = recipe.vary(segments, corruption,
                             tokenizer_settings={**recipe.tokenizer_settings, **settings})
        if recipe.corruption.dynamic and not can_draw(recipe.corruption):
            what = "shuffles trigrams" if recipe.corruption.shuffle_prob else "masks n-grams"
            raise InputError(f"--masking=dynamic: recipe {recipe.name} {what}, which are drawn "
                             "while records are made; leave it out.")
        if recipe.corruption.choose == "spans" and (recipe.segments.sentence_ends or PAIRINGS[
                recipe.segments.pairing].segments > 1):
            raise InputError(f"--segments={recipe.segments.pairing}: spans are masked in sequences "
                             "of one text without separators; give doc_blocks or doc_sentences.")
        if recipe.segments.sentence_ends and recipe.corruption.quota != "drawn" and (
                not recipe.corruption.dynamic):
            raise InputError(f"--segments={recipe.segments.pairing} puts separators between "
                             "sentences, which static masks would hide; give --masking=dynamic or "
                             "--recipe=roberta.")
        if recipe.corruption.quota == "with_repeats":
            if recipe.corruption.shares[1]:
                raise InputError(f"--mask_shares: recipe {recipe.name} puts no random tokens in; "
                                 "let the second share be 0.")
            if recipe.corruption.units != "subwords":
                flag = "masking_units" if self.masking_units else "do_whole_word_mask"
                raise InputError(f"--{flag}: recipe {recipe.name} draws sub-words "
                                 "while it trains; leave it out, or give --masking=static.")
        self._check_units(recipe.corruption.units, "ner_span" in recipe.corruption.schemes)
        return recipe

    def _given(self, names):
        """The values of some flags that have any, by name."""
        found = {name: getattr(self, name) for name in names}
        return {name: tuple(value) if isinstance(value, list) else value
                for name, value in found.items() if value not in (None, [])}

    def _find_recipe(self):
        """The recipe of the flags, for their task.

        Raises:
            InputError: there is none, or it has other tasks.
        """
        recipe = recipes.find(self.recipe)
        if bool(recipe.tasks) != bool(self.task) or self.task and self.task not in recipe.tasks:
            raise InputError(
                f"--task={self.task}: records of recipe {recipe.name} are of one task each; give "
                f"one of {', '.join(recipe.tasks)}, and the same command for the others."
                if recipe.tasks else
                f"--task is for recipes with several tasks, such as ernie2; leave it out with "
                f"--recipe={recipe.name}.")
        if not recipe.tasks and self.segments in TASK_PAIRINGS:
            raise InputError(f"--segments={self.segments} is a task of recipe ernie2; give "
                             "--recipe=ernie2 and that as --task.")
        if recipe.tasks and self.masking == "dynamic":
            raise InputError(f"--masking=dynamic: the records of recipe {recipe.name} hold masks; "
                             "leave it out.")
        return recipe.of_task(self.task) if self.task else recipe

    def _check_units(self, units, needs_entities):
        """Raises InputError if there is nothing to find units or entities in."""
        if needs_entities and not self.phrase_file and self.input_format != "columns":
            raise InputError("--schemes=ner_span needs entities: give --input_format=columns and a "
                             "file of words with tags, or --phrase_file.")
        if units == "tags" and self.input_format != "columns":
            raise InputError("--masking_units=tags needs words with tags: give "
                             "--input_format=columns and such a file, or --masking_units=phrases.")
        if (units == "phrases" and not self.phrase_file) or (
                self.phrase_file and units != "phrases" and not needs_entities):
            raise InputError("--masking_units=phrases and --phrase_file belong together: give "
                             "both, or neither.")

    def _check_hides_nothing(self):
        for name, harmless in (("masking", "dynamic"), ("do_whole_word_mask", False),
                               ("mask_shares", [])):
            if getattr(self, name) not in (None, [], harmless):
                raise InputError(f"--{name} is for recipes that hide tokens; leave it out with "
                                 f"--recipe={self.recipe}.")

    def check(self) -> None:
        """Raises InputError for values that can't work."""
        for name, least, most in (
                ("max_seq_length", 5, 1 << 14), ("max_predictions_per_seq", 1, 1 << 14),
                ("dupe_factor", 1, 1 << 20), ("masked_lm_prob", 1e-9, 1.0),
                ("short_seq_prob", 0.0, 1.0), ("piece_bytes", 1, 1 << 31),
                ("num_workers", 0, 4096), ("ngram", 1, 1 << 10),
                ("span_lower", 1, 1 << 10), ("span_upper", self.span_lower or 1, 1 << 10),
                ("geometric_p", 1e-12, 1 - 1e-12), ("max_pair_targets", 1, 1 << 10),
                ("ner_masking_prob", 0.0, 0.99), ("shuffle_prob", 0.0, 1.0),
                ("random_share", 0.0, 1.0), ("swapped_share", 0.0, 1.0)):
            value = getattr(self, name)
            if value is not None and not least <= value <= most:
                raise InputError(f"--{name} is {value}, which is not between "
                                 f"{least} and {most}.")
        if unknown := [name for name in self.schemes if name not in SCHEMES]:
            raise InputError(f"--schemes: there is no {unknown[0]!r}; choose from "
                             f"{', '.join(SCHEMES)}.")


def _shares(values):
    """The two floats of --mask_shares."""
    try:
        masked, random = map(float, values)
        if masked >= 0 and random >= 0 and masked + random <= 1:
            return masked, random
    except ValueError:
        pass
    raise InputError(f"--mask_shares is {','.join(map(str, values))}; it must be two numbers from "
                     "0 to 1 with a sum of 1 at most, such as 0.8,0.1.")


def recipe_defaults(given: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The defaults of a recipe's flags, see `flags.take_defaults`."""
    recipe = recipes.find(given.get("recipe", "bert"))
    known = {**defaults_of(PretrainingDataFlags), **recipe.defaults, **given}
    most = recipe.corruption.most_predictions(known["max_seq_length"], known["masked_lm_prob"])
    if given.get("task") in recipe.tasks:
        recipe = recipe.of_task(given["task"])
    return f"--recipe={recipe.name} (arXiv:{recipe.paper})", {
        **({"max_predictions_per_seq": most} if most else {}),
        "segments": recipe.segments.pairing,
        "masking": "dynamic" if recipe.corruption.dynamic else "static",
        **({"mask_shares": list(map(str, recipe.corruption.shares)),
            "do_whole_word_mask": recipe.corruption.units == "words"}
           if recipe.corruption.hides else {}),
        **({name: getattr(recipe.segments, name) for name in _SHARE_FLAGS}
           if recipe.segments.negatives == "three_way" else
           {"random_next_sentence": recipe.segments.negatives == "random"}),
        **({"shuffle_prob": recipe.corruption.shuffle_prob} if recipe.corruption.shuffle_prob
           else {}),
        **{name: list(value) if isinstance(value, tuple) else value
           for name in _CHOICE_FLAGS.get(recipe.corruption.choose, ("", ()))[1]
           for value in [getattr(recipe.corruption, name)]},
        **recipe.defaults}


class PieceWriter:
    """Makes the shards of one piece; every worker process has one.

    Args:
        job: `PretrainingDataFlags`.
        recipe: `Recipe`.
        tokenizer: `WordpieceTokenizer`.
        count: number of pieces.
        folder: of the manifest; shards are named from there.
        phrases: units of the text, or None.
    """

    def __init__(self, job: PretrainingDataFlags, recipe: recipes.Recipe, tokenizer, count: int,
                 folder: str, phrases: PhraseList | None = None) -> None:
        self._job, self._recipe, self._tokenizer = job, recipe, tokenizer
        self._count, self._folder, self._phrases = count, folder, phrases

    def __call__(self, index: int, piece: bytes) -> dict[str, Any]:
        """Writes the shards of piece `index`; returns their entries and counts for the manifest."""
        lines = corpus.decode(piece, self._job.input_file)
        tokenize = (corpus.tokenize_sentences if self._recipe.segments.sentence_ends
                    else corpus.tokenize_documents)
        text = None
        if self._job.input_format == "columns":
            masking = self._recipe.corruption
            tags = masking.units == "tags" or "ner_span" in masking.schemes
            text = TaggedText(lines, self._tokenizer, self._job.tag_column if tags else None,
                              self._job.input_file)
            lines = text.lines
        documents = tokenize(lines, self._tokenizer, self._job.blanks_separate_docs,
                             make_marker(text, self._phrases, self._label))
        vocabulary = self._tokenizer.vocabulary
        counts, sample = statistics.count_text(
            lines, documents, vocabulary.unk_id,
            self._recipe.segments.pairing == "doc_blocks")
        del lines
        instances = create_instances(
            documents, vocabulary, _piece_seed(self._job.random_seed, index), self._recipe,
            self._job)
        counts.update(statistics.count_instances(instances, self._job.max_seq_length,
                                                 vocabulary.layout))
        try:
            shards = self._write(index, instances)
        except OSError as error:
            raise InputError(
                f"--output_file: piece {index + 1} can't be written ({error}); make room and start "
                "the command again, finished pieces are kept.") from error
        result = {"shards": shards, "counts": counts, "line_sample": sample}
        if _draws_of_corpus(self._recipe):
            result["token_counts"] = np.bincount(documents.tokens,
                                                 minlength=vocabulary.size).tolist()
        return result

    @property
    def _label(self):
        """What gives labels to the tokens of a text, if the task has such."""
        task = self._recipe.tasks[self._recipe.task] if self._recipe.task else None
        if task and task.token_labels == "capitalization":
            return functools.partial(capitals, tokenizer=self._tokenizer)
        return None

    def _write(self, index, instances):
        """Spreads the instances over the output files in turn, as the original does."""
        names = [manifest.shard_name(name, index, self._count) for name in self._job.output_file]
        shards = []
        # One file at a time: each takes every len(names)-th instance.
        for turn, name in enumerate(names):
            order = instances.order[turn::len(names)]
            blocks = (instances.features(order[start:start + _ROWS], self._job.max_seq_length,
                                         self._tokenizer.vocabulary)
                      for start in range(0, len(order), _ROWS))
            shards.append(write_shard(name, self._folder, blocks))
        return shards


def _draws_of_corpus(recipe):
    """Whether tokens are drawn while training, as often as the text has them."""
    return recipe.corruption.dynamic and recipe.corruption.replace_from == "corpus"


def _piece_seed(seed, index):
    """The first piece has the seed itself, so that a text of one piece equals the original's."""
    if index == 0:
        return seed
    return int.from_bytes(hashlib.sha256(f"{seed}/{index}".encode()).digest()[:8], "big")


def _input_notes(paths, by_file):
    """Notes on input files that may be a mistake, for the report."""
    notes = []
    for path in paths:
        with open_unpacked(path) as file:
            if not file.read(1):
                notes.append(f"{path} is empty.")
    if len(paths) > 1 and not by_file:
        notes += [f"{path} does not end with a blank line: its last document goes on in the next "
                  "file, as in the original." for path in paths[:-1] if not _ends_document(path)]
    return notes


def _ends_document(path):
    if is_gzip(path):
        return True     # not worth another pass over it
    with open(path, "rb") as file:
        file.seek(max(0, os.path.getsize(path) - 256))
        return re.search(rb"(^|\n)[ \t\r]*\n[ \t\r]*$", file.read()) is not None


def _scan(job, recipe):
    """Reads the text once: its pieces' checksums.

    Raises:
        InputError: it is not UTF-8.
    """
    checksums = []
    for piece in _read_pieces(job, recipe):
        corpus.decode(piece, job.input_file)
        checksums.append(google_crc32c.value(piece))
    return checksums


def _check_vocabulary(job, vocabulary):
    """Raises InputError for a vocabulary without the special tokens of a sequence."""
    missing = [role for role in ("cls", "sep", "mask") if role not in vocabulary.special]
    if missing:
        raise InputError(f"--vocab_file: {job.vocab_file} has no special token for the role "
                         f"{', '.join(missing)}; give the vocabulary of BERT or of a relative.")


def _check_output(job):
    """Raises InputError for output files that can't be written."""
    outputs = list(map(os.path.realpath, job.output_file))
    if len(set(outputs)) < len(outputs):
        raise InputError("--output_file names a file twice.")
    for name, path in zip(job.output_file, outputs):
        if os.path.isdir(name) or name.endswith(os.sep):
            raise InputError(f"--output_file: {name!r} is a folder; name a file in it.")
        if path in map(os.path.realpath, job.input_file):
            raise InputError(f"--output_file: {name!r} is also an input file.")
        make_folder(os.path.dirname(path), "output_file")


def _describe(job, recipe, vocabulary, options, results):
    """The manifest but for its shards.

    Raises:
        InputError: there was no text.
    """
    counts, rates = statistics.merge(results)
    if not counts.get("instances"):
        raise InputError(f"--input_file: there is no text in {', '.join(job.input_file[:3])}.")
    return {
        "format": "bert_tf pre-training records 1",
        "recipe": recipe.describe(),
        "features": feature_names(recipe),
        "options": options,
        "vocabulary": {"size": vocabulary.size, "sha256": vocabulary.hash,
                       "cls_id": vocabulary.cls_id, "sep_id": vocabulary.sep_id,
                       "mask_id": vocabulary.mask_id,
                       **({"special_ids": vocabulary.special_ids}
                          if recipe.corruption.replace_from == "words" else {})},
        "inputs": [{"name": name, "bytes": os.path.getsize(name)} for name in job.input_file],
        "counts": counts,
        **({"token_counts": manifest.join_counts([result["token_counts"] for result in results])}
           if _draws_of_corpus(recipe) else {}),
        "rates": rates,
        "notes": _input_notes(job.input_file, job.input_format == "columns"
                              or PAIRINGS[recipe.segments.pairing].in_order)
        + ([f"{job.input_file[-1]} does not end with a blank line: its last document is left out, "
            "as in the original."] if counts.get("open_documents") else []),
    }


# Flags that leave the records as they are, and those that the recipe in the manifest describes.
_NO_OPTIONS = ("input_file", "output_file", "num_workers", "vocab_file", "recipe", "segments",
               "masking", "mask_shares", "random_next_sentence", "shuffle_prob", "masking_units",
               "task",
               *_SHARE_FLAGS,
               *(name for _, names in _CHOICE_FLAGS.values() for name in names))
# Those that earlier versions did not know: named only where they are not at their defaults.
_ADDED = {"blanks_separate_docs": True, "strip_accents": True, "input_format": "lines",
          "tag_column": -1, "phrase_file": ""}


def _read_pieces(job, recipe):
    """The text in pieces."""
    by_column = job.input_format == "columns"
    return corpus.read_pieces(job.input_file, job.piece_bytes, by_file=by_column or (
        PAIRINGS[recipe.segments.pairing].in_order),
        boundary=BOUNDARY if by_column else corpus.BLANK_LINE)


def _fingerprint(job, recipe, options, vocabulary, folder):
    """What the shards depend on. An earlier version's records of the same flags have an equal one.
    """
    found = {"options": options, "vocabulary": vocabulary.hash, "pieces": _scan(job, recipe),
             "output_file": [os.path.relpath(name, folder) for name in job.output_file]}
    masking = recipe.corruption
    if masking.units == "words":
        masking = dataclasses.replace(masking, units="subwords")
    halves = recipe.segments, masking
    if halves != (recipes.Segments(), recipes.MaskTokens()):    # no earlier version made these
        found["recipe"] = recipe.describe()
        del found["recipe"]["name"]
    return found


def main(job: PretrainingDataFlags) -> None:
    """Makes the records and prints a report on them."""
    job.check()
    recipe = job.resolve()
    recipe.corruption.check_slots(job.max_predictions_per_seq, job.max_seq_length,
                                  job.masked_lm_prob)
    tokenizer = open_tokenizer(job.vocab_file, job.do_lower_case, **recipe.tokenizer_settings)
    recipe = recipe.vary(tokenizer=tokenizer.name, tokenizer_settings=tokenizer.settings)
    vocabulary = tokenizer.vocabulary
    _check_vocabulary(job, vocabulary)
    job.input_file = find_files(job.input_file, "input_file")
    if PAIRINGS[recipe.segments.pairing].in_order:
        PythonRandom(job.random_seed).shuffle(job.input_file)
    _check_output(job)
    path = manifest.manifest_path(job.output_file[0])
    folder = os.path.dirname(os.path.abspath(path))

    print(f"reading {len(job.input_file)} input file{'s' * (len(job.input_file) > 1)}", flush=True)
    options = {name: value for name, value in dataclasses.asdict(job).items()
               if name not in _NO_OPTIONS and (name, value) not in _ADDED.items()}
    options["do_whole_word_mask"] = recipe.corruption.units == "words"
    phrases = None
    if job.phrase_file:
        phrases = PhraseList.read(job.phrase_file, tokenizer)
        options["phrase_file"] = phrases.hash
    fingerprint = _fingerprint(job, recipe, options, vocabulary, folder)
    writer = PieceWriter(job, recipe, tokenizer, len(fingerprint["pieces"]), folder, phrases)
    record, was_there = make_shards(
        path, fingerprint, _read_pieces(job, recipe), writer,
        job.num_workers, functools.partial(_describe, job, recipe, vocabulary, options),
        defaults=defaults_of(PretrainingDataFlags))
    print(statistics.report(record))
    if was_there:
        print(f"{path} and its shards are there already, made from this text with these flags")
        return
    count = len(record["shards"])
    print(f"wrote {record['counts']['instances']:,} records to {count} file{'s' * (count > 1)}, "
          f"manifest {path}")


def run() -> None:
    """The console entry point."""
    flags.run(main, PretrainingDataFlags, defaults=recipe_defaults)


if __name__ == "__main__":
    run()
