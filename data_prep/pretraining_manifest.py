"""The manifest of pre-training records, and the values that they depend on."""

import dataclasses
import re
from typing import Any

from bert_tf.data import masking
from bert_tf.data.instances import statistics
from bert_tf.data.instances.pretraining import feature_names
from bert_tf.data.records import manifest
from bert_tf.errors import InputError, counted
from bert_tf.files import file_size, is_packed, open_unpacked, read_range, relative
from bert_tf.recipes import Recipe
from bert_tf.recipes.corruption import MaskTokens, Segments
from bert_tf.tokenization.vocabulary import Vocabulary
from data_prep.pretraining_flags import (
    MASKING_FLAGS,
    SHARE_FLAGS,
    PretrainingDataFlags,
)

# Flags that leave the records as they are, and flags that the recipe in the manifest describes.
_NO_OPTIONS = ("input_file", "output_file", "num_workers", "vocab_file", "second_vocab_file",
               "recipe", "segments", "masking", "mask_by", "mask_shares", "random_next_sentence",
               "shuffle_prob", "masking_units",
               "task", *SHARE_FLAGS, *MASKING_FLAGS)
# Those that earlier versions did not know: named only where they are not at their defaults.
_ADDED = {"blanks_separate_docs": True, "strip_accents": True, "input_format": "lines",
          "tag_column": -1, "phrase_file": "", "second_share": 0.5, "labels": []}


def options_of(job: PretrainingDataFlags) -> dict[str, Any]:
    """The values of the flags that decide about the records and are no part of the recipe."""
    return {name: value for name, value in dataclasses.asdict(job).items()
            if name not in _NO_OPTIONS and (name, value) not in _ADDED.items()}


def draws_of_corpus(recipe: Recipe) -> bool:
    """Returns whether training needs the number of each token in the text."""
    made = recipe.corruption
    return recipe.network == "SequenceLstm" or masking.find(made).by_rarity or (
        made.dynamic and made.replace_from == "corpus")


def describe_all(job: PretrainingDataFlags, recipe: Recipe, vocabulary: Vocabulary, options: dict
                 ) -> dict[str, Any]:
    """Returns the part that the manifests of all recipes share."""
    return {
        "format": "bert_tf pre-training records 1",
        "recipe": recipe.describe(),
        "features": feature_names(recipe),
        "options": options,
        "vocabulary": {"size": vocabulary.size, "sha256": vocabulary.hash,
                       "cls_id": vocabulary.cls_id, "sep_id": vocabulary.sep_id,
                       "mask_id": vocabulary.mask_id,
                       **({"special_ids": vocabulary.special_ids}
                          if recipe.corruption.replace_from == "words"
                          or masking.find(recipe.corruption).by_rarity else {}),
                       **({"parts": [part.describe() for part in vocabulary.parts]}
                          if vocabulary.parts else {})},
        "inputs": [{"name": name, "bytes": file_size(name)} for name in job.input_file],
    }


def describe(job: PretrainingDataFlags, recipe: Recipe, vocabulary: Vocabulary, options: dict,
             results: list[dict], joins_files: bool) -> dict[str, Any]:
    """Returns the manifest without its shards; `results` are `TextJob`'s, one for each piece.
    `joins_files` is whether a document may continue in the next file."""
    counts, rates = statistics.merge(results)
    if not counts.get("instances"):
        raise InputError(_why_no_record(job, recipe, counts))
    return {
        **describe_all(job, recipe, vocabulary, options),
        "counts": counts,
        **({"token_counts": manifest.join_counts([result["token_counts"] for result in results])}
           if draws_of_corpus(recipe) else {}),
        "rates": rates,
        "notes": _input_notes(job.input_file, joins_files)
        + ([f"{job.input_file[-1]} does not end with a blank line: its last document is left out, "
            "as in the original."] if counts.get("open_documents") else []),
    }


def _why_no_record(job, recipe, counts):
    names, sentences = ", ".join(job.input_file[:3]), counts.get("sentences", 0)
    if not sentences:
        return f"--input_file: {names} holds no text; name files with text."
    ending = ", and no blank line ends the last document" * bool(counts.get("open_documents"))
    return (f"--input_file: {names} has {counted(sentences, 'sentence')}, which make no record of "
            f"--recipe={recipe.name}: each is too short or longer than "
            f"--max_seq_length={job.max_seq_length}, or they are too few{ending}. Give other text, "
            "or change --max_seq_length.")


def fingerprint_of(job: PretrainingDataFlags, recipe: Recipe, options: dict, vocabulary: Vocabulary,
                   pieces: list, folder: str) -> dict[str, Any]:
    """Returns the values that the shards depend on, with an entry for each piece of the
    text. An earlier version's records of the same flags have an equal fingerprint."""
    found = {"options": options, "vocabulary": vocabulary.hash, "pieces": pieces,
             "output_file": [relative(name, folder) for name in job.output_file]}
    made = recipe.corruption
    if made.units == "words":
        made = dataclasses.replace(made, units="subwords")
    halves = recipe.segments, made
    # Files next to the vocabulary give the settings of the tokenizer that no flag gives.
    of_files = recipe.tokenizer_settings.keys() - options.keys() - {"second_share"}
    if recipe.denoising or of_files or halves != (Segments(), MaskTokens()):
        found["recipe"] = recipe.describe()
        del found["recipe"]["name"]
    return found


def _input_notes(paths, joins_files):
    """Notes on input files that may be a mistake, for the report."""
    notes = []
    for path in paths:
        if _is_empty(path):
            notes.append(f"{path} is empty.")
    if joins_files:
        notes += [f"{path} does not end with a blank line: its last document continues in the next "
                  "file, as in the original." for path in paths[:-1] if not _ends_document(path)]
    return notes


def _is_empty(path):
    if not is_packed(path):
        return not file_size(path)
    with open_unpacked(path) as file:
        return not file.read(1)


def _ends_document(path):
    if is_packed(path):
        return True     # not worth another pass over it
    size = file_size(path)
    end = read_range(path, max(0, size - 256), size)
    return re.search(rb"(^|\n)[ \t\r]*\n[ \t\r]*$", end) is not None
