"""Further pre-training of a model on a text: records, recipe and heads follow from its folder."""

import dataclasses
import os
from collections.abc import Sequence

from bert_tf import recipes
from bert_tf.data import masking
from bert_tf.data.segments.pairing import PAIRINGS
from bert_tf.errors import InputError
from bert_tf.files import make_folder, match_names, read_json
from bert_tf.flags import applicable
from bert_tf.heads import HEADS, OBJECTIVES
from bert_tf.opening import Model, open_model
from bert_tf.training import resume
from bert_tf.training.settings import TrainSettings
from data_prep import create_pretraining_data
from data_prep.pretraining_flags import PretrainingDataFlags
from data_prep.pretraining_flags import recipe_defaults as data_defaults
from run_scripts.pretraining.flags import (
    READINGS,
    PretrainingFlags,
    is_trained_by,
    text_flags,
)
from run_scripts.pretraining.records import name_of

_MASKED_LM = "masked_lm"
_BY_HAND = "make records with bert-create-pretraining-data, and name them with --input_file"


def complete(job: PretrainingFlags, settings: TrainSettings) -> PretrainingFlags:
    """Returns the flags of a run on records, which are made first, in the output folder. The recipe
    and the terms of the loss are those of the heads that the model has. InputError if a file is not
    there; the text has no model whose tokenizer reads it; or the model has no recipe that a text is
    enough for."""
    texts = text_flags(job)
    if not all(texts.values()):
        raise InputError("one of --input_file and --eval_input_file is text, and the other is "
                         "records; name texts or records with both flags.")
    if not job.init_checkpoint:
        raise InputError(f"--input_file: {job.input_file[0]} is text, which is read with the "
                         f"tokenizer of --init_checkpoint; give that flag, or {_BY_HAND}.")
    if settings.distribution_strategy == "multi_worker":
        raise InputError(f"--input_file: {job.input_file[0]} is text, and several machines read "
                         f"records; {_BY_HAND}.")
    model = open_model(job.init_checkpoint, job.bert_config_file, job.vocab_file)
    _check_run(settings.output_dir, model)
    recipe = _recipe(job, model)
    terms = job.terms or _terms(recipe, model)
    job = dataclasses.replace(job, recipe=recipe.name, terms=terms)
    records = _make_records(job, settings, model, recipe, [*texts])
    return dataclasses.replace(
        job, vocab_file=None, **records, max_predictions_per_seq=masking.find(
            recipe.corruption).slots(job.max_predictions_per_seq, job.max_seq_length))


def _check_run(folder: str, model: Model) -> None:
    """Raises InputError, before records are replaced, if a folder holds a run of another size; a
    model that was only scored there leaves no checkpoint."""
    stages = match_names(folder, resume.STAGE.format("*", "*"))
    if not any(map(resume.checkpoints, (folder, *stages))):
        return
    known = read_json(os.path.join(folder, "bert_config.json"), {})
    for key in ("vocab_size", "hidden_size"):
        size = getattr(model.config, key, None)
        if known.get(key, size) != size:
            raise InputError(f"{folder} holds a run whose {key} is {known[key]}, but that of "
                             f"{model.path} is {size}; name another --output_dir.")


def _recipe(job: PretrainingFlags, model: Model) -> recipes.Recipe:
    config, heads = model.config, getattr(model.weights, "heads", ())
    if job.recipe:
        recipe = recipes.find(job.recipe)
    elif getattr(config, "is_causal", False):
        recipe = recipes.find("ltr")
    else:
        recipe = recipes.RECIPES.get(config.model_type) or next(
            (row for row in reversed(recipes.RECIPES.values()) if not _needs_another(row, model)
             and row.sizes.get("model_type") == config.model_type), recipes.RECIPES["bert"])
        if _needs_another(recipe, model) and _MASKED_LM in heads:
            recipe = recipes.RECIPES["bert"]
    pairing = PAIRINGS[recipe.segments.pairing]
    if (pairing.in_rows or pairing.in_streams or recipe.denoising or recipe.tasks
            or not masking.find(recipe.corruption).hides or not is_trained_by(config, recipe)):
        raise InputError(f"--init_checkpoint: {model.path} is a {config.model_type}, which learns "
                         f"no masked words from a text; {_BY_HAND}.")
    if not job.recipe and _needs_another(recipe, model):
        what = "generator" if _has_generator(recipe) else "teacher"
        raise InputError(f"--init_checkpoint: {model.path} has neither a masked LM nor the {what} "
                         f"that recipe {recipe.name} needs; give a checkpoint of its pre-training, "
                         "or --recipe=bert to train a new masked LM on the encoder.")
    if job.max_seq_length > config.max_position_embeddings:
        raise InputError(f"--max_seq_length ({job.max_seq_length}) is more than the "
                         f"{config.max_position_embeddings} positions of {model.path}; give at "
                         "most that many.")
    return recipe


def _needs_another(recipe: recipes.Recipe, model: Model) -> bool:
    """Whether a recipe trains with a network that the model's folder does not hold."""
    if any(term.objective not in OBJECTIVES for term in recipe.terms):      # learned from a teacher
        return True
    origin = model.weights and model.weights.origin
    return _has_generator(recipe) and not (origin and origin.generator)


def _has_generator(recipe):
    return any(term.network == "generator" for term in recipe.terms)


def _terms(recipe: recipes.Recipe, model: Model) -> list[str]:
    """The names of the terms whose head the model has, and the first; prints which are new."""
    heads = set(getattr(model.weights, "heads", ()))
    if model.weights and model.weights.origin and model.weights.origin.generator:
        heads.add(_MASKED_LM)       # of the generator
    names = {name_of(term): OBJECTIVES[term.objective].name for term in recipe.terms
             if not (term.by_name or term.optional)}
    held = [name for name, head in names.items() if head in heads or not HEADS[head].shapes]
    first = next(iter(names))
    if first not in held:
        print(f"{model.path} has no head for {first}: a new one is trained, from random weights",
              flush=True)
    chosen = [name for name in names if name in held or name == first]
    if left := [name for name in names if name not in chosen]:
        print(f"{', '.join(left)} is left out, since {model.path} has no such head "
              f"(--terms={','.join(names)} trains a new one)", flush=True)
    return chosen


def _make_records(job: PretrainingFlags, settings: TrainSettings, model: Model,
                  recipe: recipes.Recipe, names: Sequence[str]) -> dict[str, list[str]]:
    folder = os.path.join(settings.output_dir, "records")
    tokenizer_folder = os.path.join(folder, "tokenizer")
    options = {**data_defaults({"recipe": recipe.name})[1], "recipe": recipe.name}
    can_be_dynamic = masking.find(recipe.corruption).can_be_dynamic
    options["masking"] = job.masking or ("dynamic" if can_be_dynamic else "static")
    if options["masking"] == "dynamic":     # one copy for each reading, with pairs of its own
        options["dupe_factor"] = min(
            options.get("dupe_factor", PretrainingDataFlags.dupe_factor), READINGS)
    labelled = [name_of(term) for term in recipe.terms if term.objective == "SentencePrediction"]
    if PAIRINGS[recipe.segments.pairing].num_labels and not set(labelled) & set(job.terms):
        # Whole sentences of one document: nothing learns from a second segment.
        options |= {"segments": "doc_sentences", "random_next_sentence": None}
        if options["masking"] == "dynamic":
            options["dupe_factor"] = 1      # copies would be equal
    applied = applicable([PretrainingDataFlags], options)
    options = {name: value for name, value in options.items() if name in applied}
    make_folder(settings.output_dir, "output_dir")
    make_folder(tokenizer_folder, "output_dir")
    model.tokenizer.save(tokenizer_folder)
    made = {}
    for name in names:
        path = os.path.join(folder, f"{name.removesuffix('_input_file').removesuffix('_file')}"
                            ".tfrecord")
        create_pretraining_data.main(PretrainingDataFlags(**{
            **options, "input_file": list(getattr(job, name)), "output_file": [path],
            "vocab_file": tokenizer_folder, "do_lower_case": model.tokenizer.do_lower_case,
            "max_seq_length": job.max_seq_length,
            "max_predictions_per_seq": job.max_predictions_per_seq}))
        made[name] = [create_pretraining_data.manifest.manifest_path(path)]
    return made
