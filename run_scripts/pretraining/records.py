"""The records of pre-training, found to agree with the recipe, its terms and the network; and
whether they share rows (--pack)."""

import os
from collections.abc import Sequence

from bert_tf import data, objectives, recipes, training
from bert_tf.config import Sizes
from bert_tf.data import masking
from bert_tf.data.records import features
from bert_tf.errors import InputError, choose_from
from bert_tf.files import exists, is_folder, read_json, write_json
from bert_tf.heads import OBJECTIVES, TAUGHT
from bert_tf.training.learners.teacher_settings import TeacherSettings
from bert_tf.training.settings import TrainSettings
from run_scripts.pretraining.flags import PretrainingFlags

# Flags of `create_pretraining_data` for features that only some networks read.
_MADE_WITH = {"token_boundary": "--masking=dynamic --do_whole_word_mask",
              "encoder_input_tokens": "--feature_converter=encoder_decoder",
              "decoder_causal_attention": "--feature_converter=prefix_lm"}
_SPELT = "a vocabulary of the recipe's --tokenizer, and words of as many characters"
# Sharing rows has a price, which larger shares of the rows than this don't pay back.
_WORTHWHILE = 0.93
# In the folder of a run: the labels by task.
_LABELS = "labels.json"
# The name of each objective, by its class.
_NAMES = {**{objective: head.name for objective, head in OBJECTIVES.items()},
          **{objective: name for objective, (name, _) in TAUGHT.items()}}


def name_of(term):
    """Returns the name of a term in flags and reports."""
    return term.options.get("metrics_name", _NAMES[term.objective])


def choose_terms(recipe: recipes.Recipe, names: Sequence[str],
                 records: "data.RecordSet | None" = None,
                 config: Sizes | None = None) -> tuple[recipes.Term, ...]:
    """Returns the terms of a recipe that --terms names, or all; without terms for other networks
    than `config`'s, and without optional ones that the `records`, if given, have no features of."""
    def fits(term):
        return config is None or getattr(objectives, term.objective).fits(config)

    terms = {name_of(term): term for term in recipe.terms}
    for name in names:
        if name not in terms:
            raise InputError(f"--terms: recipe {recipe.name} has no {name}; "
                             + choose_from(name, terms))
        if not fits(terms[name]):
            raise InputError(f"--terms: {name} reads an output that the network of this "
                             f"configuration does not have; leave {name} out.")
    if not names:
        names = [name for name, term in terms.items() if not (
            term.by_name or term.optional and records and _missing(term, records))]
    chosen = tuple(term for name, term in terms.items() if name in names and fits(term))
    if records and records.tasks:
        chosen = tuple(term for term in chosen if term.task in records.tasks)
    if not records:
        return chosen
    settled = []
    for term in chosen:
        if term.of_records:
            of_task = getattr(records, "sets", {}).get(term.task, records)
            made = recipes.of_manifest(of_task.manifest)
            term = term.for_records(masking.find(made.corruption), made.segments)
        settled.append(term)
    return tuple(settled)


def _missing(term, records):
    available = records.format.names | {feature.name for feature in features.MASKS} | set(
        getattr(getattr(records, "masks", None), "adds", ()))
    if not records.format.is_masked:
        corruption = recipes.of_manifest(records.manifest).corruption
        available |= set(masking.find(corruption).extra_features)
    return set(getattr(objectives, term.objective).reads) - available


def check_recipe(job: PretrainingFlags, recipe: recipes.Recipe, records: "data.RecordSet",
                 flag: str) -> None:
    """Checks that records can be trained on with a recipe."""
    path, made = records.paths[0], recipes.of_manifest(records.manifest)
    again = f"make them again with --recipe={recipe.name}"
    if not made.chooses_tokens and (
            job.max_predictions_per_seq != PretrainingFlags.max_predictions_per_seq):
        raise InputError(f"--max_predictions_per_seq has no effect on the records of --{flag}, of "
                         f"recipe {made.name}, which predicts all tokens; leave the flag out.")
    hides = masking.find(recipe.corruption).hides
    if not hides and job.masking == "static":
        raise InputError("--masking=static is for recipes that mask tokens; leave it out with "
                         f"--recipe={recipe.name}.")
    if hides and records.format.is_masked and (job.masking == "dynamic" or (
            recipe.corruption.dynamic and recipe.name != made.name)):
        asker = "--masking=dynamic" if job.masking else f"--recipe={recipe.name}"
        raise InputError(
            f"{asker} draws masks during training, but the records of --{flag} are already masked "
            f"({path}, recipe {made.name}); {again} --masking=dynamic.")
    if job.masking == "static" and not records.format.is_masked:
        raise InputError("--masking=static needs masks in the records, but the records of "
                         f"--{flag} hold none ({path}); leave --masking out, or {again} "
                         "--masking=static.")
    if records.manifest is None or recipe.name == made.name:
        return
    fits = {part: getattr(recipe, part) == getattr(made, part)
            for part in ("tokenizer", "segments")}
    fits["corruption"] = masking.find(recipe.corruption).takes(made.corruption)
    for part, does in fits.items():
        if not does:
            raise InputError(f"--recipe={recipe.name} has different {part} from recipe "
                             f"{made.name}, which made the records of --{flag} ({path}); {again}.")


def check_features(terms: Sequence[recipes.Term], records: "data.RecordSet", flag: str) -> None:
    """Checks that each term finds its features in the records, or in the masks that are drawn."""
    for term in terms:
        missing = _missing(term, records)
        if missing:
            rest = ",".join(name_of(t) for t in terms if t != term)
            raise InputError(
                f"the records of --{flag} hold no {', '.join(sorted(missing))}, which "
                f"{name_of(term)} reads ({records.paths[0]}); "
                + (rest and f"train without it (--terms={rest}), or ")
                + "make them with another --recipe.")


def open_records(job: PretrainingFlags, patterns: Sequence[str], flag: str, config: Sizes,
                 recipe: recipes.Recipe | None = None) -> "tuple[data.RecordSet, recipes.Recipe]":
    """Opens the records of a flag, and checks that they agree with the other flags and the
    configuration. Returns them and the recipe: `recipe`, else the flags' or the records'."""
    records = data.open_records(patterns, flag)
    path = records.paths[0]
    if records.manifest and "max_predictions_per_seq" not in records.manifest["options"]:
        raise InputError(f"--{flag}: {path} holds examples of a task, not pre-training records; "
                         "name records of bert-create-pretraining-data.")
    if not records.manifest and "next_token_ids" in records.format.names:
        raise InputError(f"the records of --{flag} are in order, but no manifest beside {path} "
                         "states their batches; put the manifest there, or make the records "
                         "again.")
    recipe = recipe or recipes.find(job.recipe or recipes.of_manifest(records.manifest).name)
    check_recipe(job, recipe, records, flag)
    terms = choose_terms(recipe, job.terms, records)
    learned = {term.objective for term in terms}
    if {"MaskedLM", "PermutationLM"} <= learned:
        raise InputError("--terms: masked_lm hides tokens that permutation_lm shows; name one of "
                         "them.")
    if "MaskedLM" in learned and job.setting("perm_size"):
        raise InputError("--perm_size is for permutation_lm; leave it out with --terms=masked_lm.")
    # What is drawn while training, as the objectives to be learned need it.
    if {"MaskedLM", "WordOrderLM"} & learned and not records.format.is_masked:
        records = data.draw_masks(records, flag, job.max_predictions_per_seq)
    elif "is_masked" in records.format.names:
        records = data.draw_orders(records, flag, job.setting("perm_size", 0),
                                   job.max_predictions_per_seq)
    elif not masking.find(recipe.corruption).hides:
        records = data.show_tokens(records)
    check_features(terms, records, flag)
    reads = {*config.further_features, *getattr(config, "record_features", ())}
    for name in sorted(reads - records.format.names):
        raise InputError(f"the records of --{flag} hold no {name}, which the network of "
                         f"--bert_config_file reads ({path}); make them again with "
                         f"{_MADE_WITH.get(name, _SPELT)}.")
    if "encoder_input_tokens" in records.format.names and not getattr(config, "has_encoder", True):
        raise InputError(f"the records of --{flag} hold inputs for an encoder, but the network of "
                         f"--bert_config_file has no encoder ({path}); make them again with "
                         "--feature_converter=prefix_lm, or --objective=lm.")
    num_labels = next((term.options.get("num_labels", 2) for term in terms
                       if term.objective == "SentencePrediction"), 2)
    return records.check(flag, job.max_seq_length, job.max_predictions_per_seq, config.vocab_size,
                         num_labels), recipe


def open_eval_records(job: PretrainingFlags, records: "data.RecordSet", config: Sizes,
                      recipe: recipes.Recipe) -> "data.RecordSet":
    """Opens --eval_input_file, of the same vocabulary; without it, returns the training records."""
    if not job.eval_input_file:
        return records
    held_out, _ = open_records(job, job.eval_input_file, "eval_input_file", config, recipe)
    hashes = records.vocab_hash, held_out.vocab_hash
    if None not in hashes and hashes[0] != hashes[1]:
        raise InputError("--input_file and --eval_input_file were made with different "
                         "vocabularies, according to their manifests; make one of them again.")
    _compare_labels(_labels(held_out), "eval_input_file", _labels(records), "--input_file")
    return held_out


def _compare_labels(labels, flag, others, whose):
    for task in labels.keys() & others.keys():
        if labels[task] != others[task]:
            raise InputError(f"--{flag}: the labels of {task} are {','.join(labels[task])}, but "
                             f"those of {whose} are {','.join(others[task])}; make the records "
                             "with the same --labels.")


def keep_labels(records: "data.RecordSet", folder: str) -> None:
    """Writes the labels of users' files, in their order, into a run's folder."""
    if labels := _labels(records):
        path = os.path.join(folder, _LABELS)
        write_json(path, {**read_json(path, {}), **labels})


def check_labels(model: str, job: PretrainingFlags, records: "data.RecordSet") -> None:
    """Checks that records to evaluate on have the labels that a model has learned, where its folder
    keeps them; `model` is that folder or a file in it."""
    path = os.path.join(model if is_folder(model) else os.path.dirname(model), _LABELS)
    if (labels := _labels(records)) and exists(path):
        flag = "eval_input_file" if job.eval_input_file else "input_file"
        _compare_labels(labels, flag, read_json(path), path)


def _labels(records):
    return {task: labels for task, each in getattr(records, "sets", {}).items()
            if each.manifest and (labels := each.manifest["options"].get("labels"))}


def beside_teacher(job: PretrainingFlags, recipe: recipes.Recipe, config: Sizes,
                   settings: TeacherSettings | None, records: "data.RecordSet"
                   ) -> "data.RecordSet":
    """Returns the records, joined with the teacher's if the teacher learns, too."""
    if not any(term.network == "teacher" for term in recipe.terms):
        return records
    flag, patterns = "teacher_input_file", job.setting("teacher_input_file")
    if not patterns:
        raise InputError(f"--teacher_input_file must be given: recipe {recipe.name} also trains "
                         "the teacher.")
    sizes = training.teacher_config(settings, config)
    data.check_mixes(records, data.open_records(patterns, flag),
                     sizes.vocab_size - config.vocab_size, flag)
    return data.TwoTexts.of(records, open_records(job, patterns, flag, sizes, recipe)[0])


def describe(job: PretrainingFlags, recipe: recipes.Recipe, records: "data.RecordSet",
             terms: Sequence[recipes.Term]) -> str:
    """Returns the line that names the recipe and its terms."""
    line = f"recipe {recipe.name} ({recipe.source})"
    if not job.recipe and records.manifest:
        line += ", as the manifest of the records names it"
    elif not job.recipe:
        line += f"; no manifest names {records.paths[0]}"
    line += f": {', '.join(map(name_of, terms))}"
    rows = getattr(records, "rows", 0)
    if rows and "next_token_ids" in records.format.names:
        line += (f"; {job.max_seq_length} steps at once, in batches of {rows} rows that continue "
                 "the batch before")
    elif rows:
        if any(term.objective == "PermutationLM" for term in terms):
            drawn = "in an order that is"
        else:
            drawn = "with masks that are"
        line += (f"; at most {job.max_predictions_per_seq} in {job.max_seq_length} tokens are "
                 f"predicted, {drawn} drawn while training; batches of {rows}")
    elif recipe.denoising:
        names = {"max_seq_length": "inputs", "max_target_length": "targets"}
        line += "; " + " and ".join(f"{names[name]} of {size} tokens"
                                    for name, size in records.format.sizes.items())
    elif not masking.find(recipe.corruption).hides:
        line += f"; at most {job.max_seq_length - 1} in {job.max_seq_length} tokens are predicted"
    elif not records.format.is_masked:
        line += (f"; masks are drawn while training, at most {job.max_predictions_per_seq} in "
                 f"{job.max_seq_length} tokens")
    if getattr(records, "schedule", None):
        line += "; steps by stage: " + ", ".join(
            f"{name} {'/'.join(map(str, row))}"
            for name, row in zip(records.schedule.names, records.schedule.table))
    return line


def pack(job: PretrainingFlags, settings: TrainSettings, trainer: "training.Trainer", records):
    """Returns the records, packed where --pack asks for it, or where it is not given and pays;
    InputError if --pack is given, and these records or this network don't allow it."""
    obstacle = _obstacle(trainer.learner, records)
    if obstacle and job.pack:
        raise InputError(f"--pack: {obstacle}; leave it out.")
    packs = job.pack
    if packs is None:
        packs = training.resume.newest(settings.output_dir).get("run", {}).get("pack")
        # A TPU would compile the step for several numbers of rows; whether that pays is not known.
        if packs is None and training.needs_static_shapes(trainer.strategy):
            packs = False
    if obstacle or packs is False or not job.do_train:
        return records
    parts = trainer.strategy.num_replicas_in_sync * settings.gradient_accumulation_steps
    packed = data.PackedRecords.of(records, parts)
    with training.named_errors(records):
        share = packed.share(settings.train_batch_size)
    if packs is None and share > _WORTHWHILE:
        return records
    print(f"records share rows, so only {share:.0%} of the rows are computed (--pack=false gives "
          "each record its own row)", flush=True)
    return packed


def _obstacle(learner, records):
    if not learner.packs:
        return "this network or its objectives read each record in a row of its own"
    if type(records) is not data.RecordSet or records.rows:
        return "these records are read in an order of their own"
    if "sequence_ids" in records.format.names:
        return "these records are rows of several sequences already"
    return ""
