"""The flags of `create_pretraining_data`, and the recipe that they vary."""

import dataclasses
from collections.abc import Iterable
from typing import Any

from bert_tf import recipes
from bert_tf.data import masking
from bert_tf.data.masking import Masking
from bert_tf.data.segments.pairing import PAIRINGS
from bert_tf.errors import InputError
from bert_tf.flags import REQUIRED, changed, check, only, option
from bert_tf.flags.options import defaults_of
from bert_tf.recipes.recipe import Segments

SHARE_FLAGS = ("random_share", "swapped_share")
UNITS = ("subwords", "words", "tags", "phrases")


def reads_lines(recipe: recipes.Recipe) -> bool:
    return not PAIRINGS[recipe.segments.pairing].in_streams


def _has_segments(recipe):
    return reads_lines(recipe) and not recipe.denoising


def _masks(recipe):
    return _has_segments(recipe) and masking.find(recipe.corruption).hides


def _for(holds):
    return only("recipe", *(name for name, row in recipes.RECIPES.items() if holds(row)))


def _with(holds):
    return only("segments", *(name for name, pairing in PAIRINGS.items() if holds(pairing)))


_of_lines, _of_masks = _for(reads_lines), _for(_masks)
_of_drawn_pairs = _with(lambda pairing: pairing.draws_b)
_CASE = ("Lower-case the text. Default: as the vocabulary's tokenizer_config.json says, else as "
         "its tokens show.")
_ACCENTS = ("Drop accents (WordPiece). Default: as the vocabulary's tokenizer_config.json says, "
            "else as its tokens show, else as --do_lower_case.")


@dataclasses.dataclass
class PretrainingDataFlags:
    """Text, records, and how sequences and masks are made of it.

    A recipe's flag that is None or empty has the recipe's value.
    """

    input_file: list[str] = option(REQUIRED, "Text: files, globs or folders, plain or compressed.")
    output_file: list[str] = option(
        REQUIRED, "One TFRecord file, or several files that share the records; .gz compresses. A "
        "corpus of several pieces gives one shard per piece: name.tfrecord-00000-of-00003.")
    vocab_file: str = option(
        REQUIRED, "The vocabulary of the tokenizer: vocab.txt, one token per line, or a folder.")
    do_lower_case: bool | None = option(None, _CASE)
    do_whole_word_mask: bool | None = _of_masks(None, "Mask all sub-words of a word, or none.")
    max_seq_length: int = option(
        128, "Maximum tokens of a sequence, [CLS] and [SEP] included.", least=5, most=1 << 14)
    max_predictions_per_seq: int = _for(lambda recipe: recipe.chooses_tokens)(
        20, "Maximum masked positions in a sequence: about max_seq_length * masked_lm_prob. In "
        "streams: number of predicted tokens; 0: as many as are drawn.", least=0, most=1 << 14)
    random_seed: int = option(12345, "Seed of every random choice.")
    dupe_factor: int = option(
        10, "Number of passes over the text, each with different pairs and masks. A text "
        "in one stream is read once.", least=1, most=1 << 20)
    masked_lm_prob: float = _of_masks(0.15, "Share of the tokens to predict.", above=0, most=1)
    short_seq_prob: float = _with(lambda pairing: pairing.shortens)(
        0.1, "Share of the sequences that get a random length below the maximum.", least=0,
        most=1)
    piece_bytes: int = _of_lines(
        1 << 24, "Size of a piece of text in bytes; a worker holds one piece in memory and treats "
        "it as one file. This number changes the records; --num_workers does not.", least=1,
        most=1 << 31)
    num_workers: int = option(0, "Number of processes; 0: one per core.", least=0, most=4096)
    recipe: str = option(
        "bert", "The pre-training method; it sets the defaults of other flags.",
        choices=recipes.RECIPES)
    random_next_sentence: bool | None = _of_drawn_pairs(
        None, "Half of the pairs get a random B (next sentence prediction). If false, A and B are "
        "swapped in half of the pairs (sentence order prediction).")
    segments: str | None = _for(_has_segments)(
        None, "How a sequence is made: " + ", ".join(
            f"{name} ({pairing.help})" for name, pairing in PAIRINGS.items() if pairing.help)
        + ".", choices=tuple(name for name, pairing in PAIRINGS.items() if not pairing.in_streams))
    random_share: float | None = _of_drawn_pairs(
        None, "Share of the pairs that get a random B, if B has a next sentence.", least=0, most=1)
    swapped_share: float | None = _for(lambda recipe: recipe.segments.negatives == "three_way")(
        None, "Share of the remaining pairs in which A and B are swapped.", least=0, most=1)
    blanks_separate_docs: bool = _of_lines(True, "A blank line ends a document.")
    strip_accents: bool | None = option(None, _ACCENTS)
    masking: str | None = _for(lambda recipe: _masks(recipe) and not recipe.tasks)(
        None, "static: the records hold masks, different in each of --dupe_factor passes. "
        "dynamic: masks are drawn during training.", choices=("static", "dynamic"))
    mask_shares: list[str] = _of_masks(
        [], "Shares of the predicted tokens that become [MASK] and that become a random token; the "
        "other predicted tokens stay.", items=float, least=0, most=1)
    mask_by: str = _for(lambda recipe: recipe.corruption.masking == "bert")(
        "quota", "How many tokens are predicted. quota: the share --masked_lm_prob of each "
        "sequence. coin: each token or unit independently, with the probability --masked_lm_prob, "
        "so the number of predictions differs between sequences (BERT's masking).",
        choices=("quota", "coin"))
    masking_units: str | None = _of_masks(
        None, "Units that are masked whole or not at all. words: all sub-words of a word. tags: "
        "words under one tag in --tag_column. phrases: phrases of --phrase_file. With tags and "
        "phrases, each of the other words is also a unit.", choices=UNITS)
    input_format: str = _of_lines(
        "lines", "lines: one sentence per line, blank lines between documents. columns: one word "
        "per line with its tags, as bert-finetune reads and writes, and a blank line after "
        "each sentence; two blank lines or a line -DOCSTART- separate documents.",
        choices=("lines", "columns"))
    tag_column: int = only("input_format", "columns")(
        -1, "Column of the tags (IOB1 or BIO) of --masking_units=tags; -1 is the last. Column 0 "
        "has the words.")
    task: str = _for(lambda recipe: recipe.tasks or not reads_lines(recipe))(
        "", "The task of these records. Of parts of a stream: see --num_task.")
    labels: list[str] = only("task", "discourse_relation", "ir_relevance")(
        [], "All labels of --input_file in the order of their numbers. Give all records of a task "
        "the same. Default: strong, weak, random for ir_relevance; the file's own labels for "
        "discourse_relation.")
    second_vocab_file: str = option(
        "", "Split some words with this vocab.txt instead of --vocab_file, for the teacher of "
        "recipe dual_training (arXiv:1909.11687).")
    second_share: float = only("second_vocab_file")(
        0.5, "Probability of splitting a word with --second_vocab_file.", least=0,
        most=1)
    phrase_file: str = _of_lines(
        "", "File with one phrase per line; where several phrases match, the longest counts.")

    def resolve(self, masks: Masking | None = None) -> recipes.Recipe:
        recipe = recipes.find(self.recipe)
        check(self)
        if not self.max_predictions_per_seq and reads_lines(recipe):
            raise InputError("--max_predictions_per_seq is 0; it must be at least 1.")
        recipe = _of_task(recipe, self)
        settings = dict(recipe.tokenizer_settings)
        if self.strip_accents is not None:
            settings["strip_accents"] = self.strip_accents
        recipe = recipe.vary(_segments(recipe, self), _corruption(recipe, self, masks),
                             tokenizer_settings=settings)
        if self.segments is None and _has_segments(recipe):
            check(dataclasses.replace(self, segments=recipe.segments.pairing))
        if not recipe.denoising:
            masking.find(recipe.corruption).check(recipe.segments)
        _check_units(recipe, self)
        return recipe

    def given(self, names: Iterable[str]) -> dict[str, Any]:
        """The values of some flags of the recipe that have any, by name."""
        values = {name: getattr(self, name) for name in names}
        return {name: tuple(value) if isinstance(value, list) else value
                for name, value in values.items() if value not in (None, [])}


def _of_task(recipe, job):
    if not recipe.tasks:
        for other in recipes.RECIPES.values():
            names = [name for name, task in other.tasks.items()
                     if task.segments.pairing == job.segments != other.segments.pairing]
            if names:
                raise InputError(
                    f"{job.segments} is a task of recipe {other.name}; give --recipe={other.name} "
                    f"--task={' or '.join(names)} in place of --segments.")
        return recipe
    if job.task not in recipe.tasks:
        raise InputError(
            f"--task={job.task}: with recipe {recipe.name}, each set of records is for one task; "
            f"give one of {', '.join(recipe.tasks)}, and run the command once per task.")
    return recipe.of_task(job.task)


def _segments(recipe, job):
    segments: dict[str, Any] = {}
    if job.segments:
        ends = job.segments == "full_sentences" or (
            job.segments == "doc_sentences" and recipe.segments.sentence_ends)
        segments = {"pairing": job.segments, "sentence_ends": ends}
    if job.random_next_sentence is not None:
        segments["negatives"] = "random" if job.random_next_sentence else "swapped"
        segments["random_share"] = Segments.random_share
    return segments | job.given(SHARE_FLAGS)


def _corruption(recipe, job, masks):
    corruption = dict(changed(masks)) if masks else {}
    masking_of_recipe = masking.find(recipe.corruption)
    if job.do_whole_word_mask is not None:
        corruption["units"] = "words" if job.do_whole_word_mask else "subwords"
    if job.masking_units:
        corruption["units"] = job.masking_units
    if job.masking:
        corruption["dynamic"] = job.masking == "dynamic"
        if job.masking == "static" and masking_of_recipe.when_static:
            corruption["masking"] = masking_of_recipe.when_static
    if job.mask_by == "coin":
        corruption["masking"] = "coin"
    if job.mask_shares:
        corruption["shares"] = tuple(map(float, job.mask_shares))
        if len(job.mask_shares) != 2 or sum(corruption["shares"]) > 1:
            raise InputError(f"--mask_shares is {','.join(map(str, job.mask_shares))}; it must be "
                             "two numbers from 0 to 1 with a sum of at most 1, such as 0.8,0.1.")
    return corruption


def needs_entities(recipe: recipes.Recipe) -> bool:
    return "ner_span" in recipe.corruption.settings.get("schemes", ())


def needs_tags(recipe: recipes.Recipe) -> bool:
    return recipe.corruption.units == "tags" or needs_entities(recipe)


def _check_units(recipe, job):
    units, of_entities = recipe.corruption.units, needs_entities(recipe)
    if of_entities and not job.phrase_file and job.input_format != "columns":
        raise InputError("--schemes=ner_span needs entities: give --input_format=columns and a "
                         "file of words with tags, or --phrase_file.")
    if units == "tags" and job.input_format != "columns":
        raise InputError("--masking_units=tags needs words with tags: give "
                         "--input_format=columns and such a file, or --masking_units=phrases.")
    if job.tag_column != defaults_of(type(job))["tag_column"] and not needs_tags(recipe):
        raise InputError("--tag_column is for --masking_units=tags, and for entities of "
                         "--schemes=ner_span; leave it out, or give --masking_units=tags.")
    if (units == "phrases" and not job.phrase_file) or (
            job.phrase_file and units != "phrases" and not of_entities):
        raise InputError("--masking_units=phrases and --phrase_file belong together: give "
                         "both, or neither.")


def recipe_defaults(given: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The defaults of flags, of the recipe's and of some others, see `flags.CommandLine`."""
    recipe = recipes.find(given.get("recipe", "bert"))
    known = {**defaults_of(PretrainingDataFlags), **recipe.defaults, **given}
    if known["mask_by"] == "coin" and recipe.corruption.masking == "bert":
        recipe = recipe.vary(corruption={"masking": "coin"})
    most = masking.find(recipe.corruption).most_predictions(known["max_seq_length"],
                                                            known["masked_lm_prob"])
    if given.get("task") in recipe.tasks:
        recipe = recipe.of_task(given["task"])
    defaults = {
        "segments": recipe.segments.pairing,
        "masking": "dynamic" if recipe.corruption.dynamic else "static",
        "mask_shares": list(map(str, recipe.corruption.shares)),
        "do_whole_word_mask": recipe.corruption.units == "words"}
    if recipe.segments.negatives == "three_way":
        defaults |= {name: getattr(recipe.segments, name) for name in SHARE_FLAGS}
    elif PAIRINGS[recipe.segments.pairing].num_labels:
        defaults["random_next_sentence"] = recipe.segments.negatives == "random"
    if most:
        defaults["max_predictions_per_seq"] = most
    if recipe.token_labels:     # sequences are not drawn, nor masked: copies would be equal
        defaults["dupe_factor"] = 1
    defaults |= recipe.defaults
    length, predictions = known["max_seq_length"], recipe.defaults.get("max_predictions_per_seq", 0)
    if predictions > length:        # of short sequences the same share is predicted
        defaults["max_predictions_per_seq"] = max(
            1, predictions * length // recipe.defaults["max_seq_length"])
    return f"--recipe={recipe.name} ({recipe.source})", defaults
