"""Turns text into pre-training records, by BERT's recipe or another.

The input has one sentence per line and a blank line between documents. The records of --recipe=bert
equal google-research/bert create_pretraining_data.py's, value for value, for a text that fits one
piece (--piece_bytes); a larger text is cut into pieces of whole documents, each treated as the
original would treat a separate file. Run the same command again to resume.

With --masking=dynamic the records hold the text without masks, and bert-run-pretraining draws new
masks at each reading.

Other recipes have flags of their own, which --help lists after --recipe=NAME. With --train_filelist
the command reads a file of ids: bert-create-pretraining-data --train_filelist --help.

Example:
    bert-create-pretraining-data --input_file=text.txt --output_file=/tmp/text.tfrecord \\
        --vocab_file=vocab.txt --max_seq_length=128 --max_predictions_per_seq=20
"""

import dataclasses
import functools
import os
from typing import Any

from bert_tf import files, flags, recipes
from bert_tf.data import masking
from bert_tf.data.records import manifest
from bert_tf.data.records.shards import Unfinished, make_shards
from bert_tf.data.segments.pairing import PAIRINGS
from bert_tf.errors import InputError, counted
from bert_tf.tokenization import base
from bert_tf.tokenization.dual import DualTokenizer
from data_prep.pair_jobs import LabelledJob, TargetJob
from data_prep.pretraining_flags import PretrainingDataFlags, recipe_defaults
from data_prep.recipe_flags import DenoisingFlags, RowFlags, StreamFlags
from data_prep.runners import RunnerFlags
from data_prep.sentences import CLEAR_STOPS
from data_prep.stream_job import StreamJob
from data_prep.text_job import RowJob, TextJob

_STOPS = frozenset(".!?:;。！？" + CLEAR_STOPS)
_SAMPLE = 1 << 17       # bytes of text that show how its lines are


def _check_vocabulary(job, recipe, tokenizer):
    """Raises InputError for a vocabulary without the special tokens of a sequence, or whose class
    token is the last if the recipe needs it first; warns of the wrong case."""
    layout, pairing = tokenizer.vocabulary.layout, PAIRINGS[recipe.segments.pairing]
    if layout.pads_left and not (recipe.denoising or recipe.segments.bare or pairing.in_rows):
        names = [name for name, each in recipes.RECIPES.items()
                 if PAIRINGS[each.segments.pairing].in_streams]
        raise InputError(f"--vocab_file: {job.vocab_file} is a vocabulary whose class token is the "
                         f"last, and --recipe={recipe.name} needs it first; give "
                         f"--recipe={' or '.join(names)}, or another vocabulary.")
    needed = ["sep"]
    if not recipe.denoising:
        has_cls = layout.before > 0 or layout.cls_last or pairing.in_streams
        ends = ["cls"] * has_cls + ["sep"]
        needed = ends * (not recipe.segments.bare)
        needed += ["mask"] * masking.find(recipe.corruption).hides
    missing = [role for role in needed if role not in tokenizer.vocabulary.special]
    if missing:
        raise InputError(f"--vocab_file: {job.vocab_file} has no special token for "
                         f"{', '.join(missing)}; give a vocabulary of BERT or a relative.")
    _warn_of_case(job, tokenizer)
    if recipe.denoising:
        base.check_sentinels(tokenizer, f"--vocab_file={job.vocab_file}")


def _warn_of_case(job, tokenizer):
    try:
        base.check_case(tokenizer, f"--vocab_file: {job.vocab_file}")
    except InputError as error:
        print(f"warning: {error}", flush=True)


def _open_tokenizer(job, recipe):
    if not job.second_vocab_file:
        return base.open_tokenizer(job.vocab_file, job.do_lower_case, **recipe.tokenizer_settings)
    if recipe.tokenizer_settings:
        raise InputError("--second_vocab_file needs BERT's way to split words; leave out "
                         f"{', '.join(f'--{name}' for name in recipe.tokenizer_settings)}, or the "
                         "recipe.")
    return DualTokenizer.open(job.vocab_file, job.second_vocab_file, job.do_lower_case,
                              job.second_share)


def is_wrapped(lines):
    """Returns whether lines are prose with hard line breaks: of 30 lines or more, most end inside a
    sentence, and many begin inside one. Text without capital letters is not."""
    lines = [line for line in map(str.strip, lines) if line]
    lower, upper = (sum(is_case(line[0]) for line in lines) for is_case in (
        str.islower, str.isupper))
    ends = sum(line.rstrip("\"'”’)]")[-1:] in _STOPS for line in lines)
    return len(lines) >= 30 and lower > 0.35 * len(lines) and upper > 0.03 * len(lines) and (
        ends < 0.5 * len(lines))


def _warn_of_other_text(paths):
    files.warn_of_tables(paths)
    path = paths[0]
    try:
        with files.open_unpacked(path) as file:
            lines = file.read(_SAMPLE).decode("utf-8", "ignore").split("\n")
    except (OSError, EOFError):     # the job names it
        return
    if is_wrapped(lines):
        print(f"warning: {path} looks like prose with hard line breaks, and each line would be a "
              "sentence: run bert-extract-text on the file first.", flush=True)


def keep_tokenizer(tokenizer: base.Tokenizer, path: str) -> None:
    """Writes the tokenizer next to the manifest at `path`, for the models trained on the records.
    Two mixed vocabularies are not written: they have no joint files."""
    folder = manifest.tokenizer_folder(path)
    if tokenizer.vocabulary.parts:
        return
    files.make_folders(folder)
    while file := base.find_vocabulary(folder):     # of earlier records
        files.remove_file(file)
    tokenizer.save(folder)


def flags_of(recipe: recipes.Recipe) -> list[type]:
    pairing, masks = PAIRINGS[recipe.segments.pairing], type(masking.find(recipe.corruption))
    kinds = {StreamFlags: pairing.in_streams, RowFlags: pairing.in_rows and not pairing.in_streams,
             DenoisingFlags: recipe.denoising, masks: masks.own_settings()}
    return [kind for kind, has_flags in kinds.items() if has_flags]


def _check_output(names):
    if len(set(map(files.real_path, names))) < len(names):
        raise InputError("--output_file names a file twice; name each file once.")
    for name in names:
        files.check_file(name, "output_file")
        files.make_folder(os.path.dirname(files.real_path(name)), "output_file")


def main(job: PretrainingDataFlags, runner: RunnerFlags | None = None, *further: Any) -> None:
    """Makes the records and reports on them. `further` are objects of the recipe's `flags_of`."""
    made_by = runner.open() if runner and flags.changed(runner) else None
    kinds = flags_of(recipes.find(job.recipe))
    for part in further:
        flags.check(part)
        if type(part) not in kinds:
            raise InputError(f"{type(part).__name__} has no flags of recipe {job.recipe}.")

    def part(kind):
        return next((each for each in (*further, *(one() for one in kinds))
                     if isinstance(each, kind)), None)

    recipe, target_length = job.resolve(part(masking.Masking)), 0
    if denoising := part(DenoisingFlags):
        recipe, target_length = denoising.resolve(recipe, job)
    pairing = PAIRINGS[recipe.segments.pairing]
    kinds_of_jobs = {StreamJob: pairing.in_streams, RowJob: pairing.in_rows,
                     LabelledJob: pairing.is_labelled, TargetJob: recipe.denoising, TextJob: True}
    record_job: type[Any] = next(kind for kind, is_right in kinds_of_jobs.items() if is_right)
    masking.find(recipe.corruption).check_slots(job.max_predictions_per_seq, job.max_seq_length,
                                                job.masked_lm_prob)
    tokenizer = _open_tokenizer(job, recipe)
    recipe = recipe.vary(tokenizer=tokenizer.name, tokenizer_settings=tokenizer.settings)
    _check_vocabulary(job, recipe, tokenizer)
    job.input_file = files.find_files(job.input_file, "input_file", job.output_file)
    recipe = record_job.prepare(job, recipe)
    _check_output(job.output_file)
    path = manifest.manifest_path(job.output_file[0])
    folder = os.path.dirname(files.absolute(path))

    print(f"reading {counted(len(job.input_file), 'input file')}", flush=True)
    if record_job.has_sentences and job.input_format != "columns":
        _warn_of_other_text(job.input_file)
    settled = dataclasses.replace(job, do_lower_case=tokenizer.do_lower_case,
                                  strip_accents=tokenizer.settings.get("strip_accents", True))
    made = record_job(settled, recipe, tokenizer, folder, part(RowFlags), target_length)
    keep = functools.partial(flags.keep, job, folder,
                             os.path.basename(path).removesuffix("manifest.json"), RunnerFlags)
    if not files.exists(path):
        keep()

    def describe(results):
        description = made.describe(results)
        keep()          # before the manifest, which says that all is there
        keep_tokenizer(tokenizer, path)
        return description

    try:
        record, was_there = make_shards(path, made.fingerprint, made.pieces, made, job.num_workers,
                                        describe, by_place=True, runner=made_by)
    except Unfinished as found:
        print(found)
        return
    if not base.find_vocabulary(manifest.tokenizer_folder(path)):       # it was removed since
        keep_tokenizer(tokenizer, path)
    print(made.report(record))
    print(f"{path} and its shards are there already, made from this text with these flags"
          if was_there else f"wrote {counted(record['counts']['instances'], 'record')} to "
          f"{counted(len(record['shards']), 'file')}, manifest {path}")


def run() -> None:
    flags.run(main, PretrainingDataFlags, RunnerFlags, defaults=recipe_defaults,
              adds=lambda given: flags_of(recipes.find(given.get("recipe") or "bert")))


if __name__ == "__main__":
    run()
