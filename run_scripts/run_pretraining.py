"""Pre-trains a model on records: BERT with masked LM and next sentence prediction, or a relative.

The records come from create_pretraining_data, and their manifest names the recipe that they were
made for, so that --recipe need not be given again. The same command started again goes on where it
stopped, and ends with the very weights of a run that was never stopped. To go on with longer
sequences, as the original recipe does for its last tenth, give the other records and lengths with
the same --output_dir; the optimizer is carried over:

    bert-run-pretraining --input_file='/data/s128/*.tfrecord*' --max_seq_length=128 \\
        --max_predictions_per_seq=20 --num_train_steps=1000000 --stop_at_step=900000 ...
    bert-run-pretraining --input_file='/data/s512/*.tfrecord*' --max_seq_length=512 \\
        --max_predictions_per_seq=77 --num_train_steps=1000000 ...
"""

import contextlib
import dataclasses
import functools
import os
from collections.abc import Mapping, Sequence
from typing import Any

from bert_tf import checkpoints, data, flags, networks, objectives, recipes, training
from bert_tf.config import EncoderConfig, Sizes, published, read_config
from bert_tf.data import features, manifest
from bert_tf.errors import InputError
from bert_tf.files import find_files, make_folder
from bert_tf.flags import REQUIRED, option
from bert_tf.heads import OBJECTIVES
from bert_tf.training.settings import GeneratorSettings, StackingSettings, TrainSettings

# The flags of `create_pretraining_data` that give records what only some networks read.
_MADE_WITH = {"token_boundary": "--masking=dynamic --do_whole_word_mask",
              "encoder_input_tokens": "--feature_converter=encoder_decoder",
              "decoder_causal_attention": "--feature_converter=prefix_lm"}
# The name of each objective, by its class.
_NAMES = {objective: head.name for objective, head in OBJECTIVES.items()}


@dataclasses.dataclass
class PretrainingFlags:
    """What to train, from what, on what."""

    input_file: list[str] = option(REQUIRED, "Records to train on: files, globs or folders.")
    bert_config_file: str = option("", "The bert_config.json of the model.")
    model_size: str = option(
        "", "Instead of --bert_config_file: a published size of the recipe's, such as base, with "
        "the vocabulary of the records. An unknown one is answered with the list.")
    eval_input_file: list[str] = option([], "Records to evaluate on; default: --input_file.")
    do_train: bool = option(False, "Train.")
    do_eval: bool = option(False, "Evaluate at the end, and every --eval_steps.")
    init_checkpoint: str = option(
        "", "Weights to begin with: a folder of Google's or Hugging Face's format, or a training "
        "checkpoint of another run (its file or --output_dir).")
    carry_optimizer: bool = option(
        False, "With a training checkpoint as --init_checkpoint: take over the optimizer and the "
        "step too, to go on in another --output_dir.")
    max_seq_length: int = option(128, "Length of the records' sequences.")
    max_predictions_per_seq: int = option(
        20, "Masked positions of the records; where masks are drawn while training, the most that "
        "are drawn.")
    recipe: str | None = option(
        None, "The kind of pre-training. Default: the recipe that the manifest of the records "
        "names; bert for records without a manifest.", choices=tuple(recipes.RECIPES))
    terms: list[str] = option(
        [], "The terms of the loss that are trained. Default: all of the recipe. masked_lm alone "
        "leaves out next sentence prediction.")
    masking: str | None = option(
        None, "static: the records hold masks. dynamic: masks are drawn while training, from "
        "records made with --masking=dynamic; one CPU core masks 97,000 sequences of 128 tokens a "
        "second or 26,000 of 512, and 42,000 or 10,000 where whole words are masked. Default: what "
        "the records hold.",
        choices=("static", "dynamic"))
    task_schedule: list[str] = option(
        [], "For records of several tasks, such as those of ernie2. continual (the default): a "
        "stage for each new task, which is trained with those before it. together: all at once. "
        "successive: one after the other. Or TASK=STEPS/STEPS/... for each task, its steps in each "
        "stage, with commas between.")
    perm_size: int = option(
        0, "For recipes that draw the order of prediction while they train, such as xlnet: tokens "
        "that are permuted together. 0: the --reuse_len of the records.")
    mem_len: int | None = option(
        None, "For networks with a memory, such as xlnet's: positions before a sequence that it "
        "sees; 0 for none. Default: as in the configuration.")
    n_negative_samples_batch: int | None = option(
        None, "For recurrent language models, such as elmo: tokens among which each one is told "
        "from the others in training, drawn for a batch; 0: all of the vocabulary. Default: that "
        "of the recipe.")


def first_manifest(patterns: Sequence[str]) -> dict[str, Any] | None:
    """The manifest of the first records of --input_file, or None.

    Raises:
        InputError: there are no files, or a manifest is damaged.
    """
    found = manifest.find_manifests(find_files(patterns, "input_file"))
    return found[0][0] if found else None


def recipe_defaults(given: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Defaults of the recipe, and of the records that it is trained on (see
    `flags.take_defaults`)."""
    record = None
    with contextlib.suppress(InputError):       # `main` checks the files, after the other flags
        record = first_manifest(given.get("input_file", []))
    made = recipes.of_manifest(record)
    recipe = recipes.find(given.get("recipe") or made.name)
    values = dict(recipe.defaults)
    if record:
        options = record["options"]
        slots = made.corruption.slots(options["max_predictions_per_seq"], options["max_seq_length"])
        # What records of --recipe=bert have is a flag of both commands, as in the original.
        derived = recipes.find(made.name).corruption.most_predictions(
            options["max_seq_length"], options["masked_lm_prob"])
        if made.corruption.dynamic or derived or slots != options["max_predictions_per_seq"]:
            values["max_predictions_per_seq"] = slots
        if "bsz_per_host" in options:
            values |= dict.fromkeys(("train_batch_size", "eval_batch_size"),
                                    options["bsz_per_host"])
            values["max_seq_length"] = options["max_seq_length"]
    return f"recipe {recipe.name}", values


def _name(term):
    """What flags and reports call a term."""
    return term.options.get("metrics_name", _NAMES[term.objective])


def choose_terms(recipe: recipes.Recipe, names: Sequence[str],
                 records: "data.RecordSet | None" = None,
                 config: Sizes | None = None, samples: int | None = None
                 ) -> tuple[recipes.Term, ...]:
    """The terms of a recipe that --terms names, or all, but for optional ones that find nothing to
    read in the records, if these are given, and those that are not for networks of `config`.

    Args:
        recipe, names, records, config: see above.
        samples: --n_negative_samples_batch.

    Raises:
        InputError: the recipe has no such term or no use for `samples`, or the network nothing to
            train it on.
    """
    terms = {_name(term): term for term in recipe.terms}
    for name in names:
        if name not in terms:
            raise InputError(f"--terms: recipe {recipe.name} has no {name}; choose from "
                             f"{', '.join(terms)}.")
        if config and not getattr(objectives, terms[name].objective).fits(config):
            raise InputError(f"--terms: {name} reads what the network of this configuration does "
                             "not return; leave it out.")
    found = tuple(
        term for name, term in terms.items() if name in names or (not names and not (
            term.by_name or (term.optional and records and _missing(term, records))))
        if config is None or getattr(objectives, term.objective).fits(config))
    if records and records.tasks:
        found = tuple(term for term in found if term.task in records.tasks)
    if samples is not None:
        if any("n_negative_samples_batch" not in term.options for term in found):
            raise InputError("--n_negative_samples_batch is for recurrent language models, such as "
                             f"elmo; leave it out with recipe {recipe.name}.")
        found = tuple(dataclasses.replace(term, options={
            **term.options, "n_negative_samples_batch": samples}) for term in found)
    if records:
        made = recipes.of_manifest(records.manifest).corruption
        found = tuple(term.settle(made) if term.of_records else term for term in found)
    return found


def _missing(term, records):
    """The features that a term reads and that are neither in the records nor drawn."""
    found = records.format.names | {feature.name for feature in features.MASKS} | set(
        getattr(records.masks, "adds", ()))
    if not records.format.is_masked and (
            recipes.of_manifest(records.manifest).corruption.choose == "spans"):
        found |= {feature.name for feature in features.SPANS}
    return set(getattr(objectives, term.objective).reads) - found


def check_recipe(job: PretrainingFlags, recipe: recipes.Recipe, records: "data.RecordSet",
                 flag: str) -> None:
    """Checks that records can be trained on with a recipe.

    Raises:
        InputError: they can't; says what to do.
    """
    path, made = records.paths[0], recipes.of_manifest(records.manifest)
    hides = recipe.corruption.hides
    again = f"make them again with --recipe={recipe.name}"
    if not hides and job.masking == "static":
        raise InputError(f"--masking=static is for recipes that hide tokens; leave it out with "
                         f"--recipe={recipe.name}.")
    if hides and records.format.is_masked and (job.masking == "dynamic" or (
            recipe.corruption.dynamic and recipe.name != made.name)):
        asker = "--masking=dynamic" if job.masking else f"--recipe={recipe.name}"
        raise InputError(
            f"{asker} draws masks while it trains, but the records of --{flag} are masked already "
            f"({path}, recipe {made.name}); {again} --masking=dynamic.")
    if job.masking == "static" and not records.format.is_masked:
        raise InputError(f"--masking=static needs masks in the records, but those of --{flag} hold "
                         f"none ({path}); leave --masking out, or {again} --masking=static.")
    if records.manifest is None or recipe.name == made.name:
        return
    fits = {part: getattr(recipe, part) == getattr(made, part)
            for part in ("tokenizer", "segments")}
    for part, does in {**fits, "corruption": recipe.corruption.takes(made.corruption)}.items():
        if not does:
            raise InputError(f"--recipe={recipe.name} has other {part} than recipe {made.name}, "
                             f"for which the records of --{flag} were made ({path}); {again}.")


def check_features(terms: Sequence[recipes.Term], records: "data.RecordSet", flag: str) -> None:
    """Checks that each term finds its features in the records, or in the masks that are drawn.

    Raises:
        InputError: some are not there.
    """
    for term in terms:
        missing = _missing(term, records)
        if missing:
            rest = ",".join(_name(t) for t in terms if t != term)
            raise InputError(
                f"the records of --{flag} hold no {', '.join(sorted(missing))}, which "
                f"{_name(term)} reads ({records.paths[0]}); "
                + (f"train without it (--terms={rest}), or " if rest else "")
                + "make them with another --recipe.")


def open_records(job: PretrainingFlags, patterns: Sequence[str], flag: str, config: Sizes,
                 recipe: recipes.Recipe | None = None) -> "tuple[data.RecordSet, recipes.Recipe]":
    """The records of a flag, found to agree with the other flags and the configuration.

    Args:
        job: the flags.
        patterns: the value of the flag.
        flag: its name.
        config: of the model.
        recipe: to train with; that of the flags or of the records if None.

    Returns:
        The records and the recipe.

    Raises:
        InputError: they disagree.
    """
    records = data.open_records(patterns, flag)
    recipe = recipe or recipes.find(job.recipe or recipes.of_manifest(records.manifest).name)
    check_recipe(job, recipe, records, flag)
    terms = choose_terms(recipe, job.terms, records)
    is_ordered = "is_masked" in records.format.names
    if job.perm_size and not is_ordered:
        raise InputError("--perm_size is for recipes that draw the order of prediction, such as "
                         f"xlnet; leave it out with recipe {recipe.name}.")
    if is_ordered:
        records = data.draw_orders(records, flag, job.perm_size, job.max_predictions_per_seq)
    elif not recipe.corruption.hides:
        records = data.show_tokens(records)
    elif not records.format.is_masked and any(term.objective == "MaskedLM" for term in terms):
        records = data.draw_masks(records, flag, job.max_predictions_per_seq)
    check_features(terms, records, flag)
    reads = {*config.further_features, *getattr(config, "record_features", ())}
    for name in reads - records.format.names:
        raise InputError(f"the records of --{flag} hold no {name}, which the network of "
                         f"--bert_config_file reads ({records.paths[0]}); make them again with "
                         f"{_MADE_WITH.get(name, 'words of as many characters')}.")
    if "encoder_input_tokens" in records.format.names and not getattr(config, "has_encoder", True):
        raise InputError(f"the records of --{flag} hold inputs for an encoder, which the network "
                         f"of --bert_config_file has not ({records.paths[0]}); make them again "
                         f"with --feature_converter=prefix_lm, or --objective=lm.")
    labels = [term.options.get("num_labels", 2) for term in terms
              if term.objective == "SentencePrediction"]
    return records.check(flag, job.max_seq_length, job.max_predictions_per_seq, config.vocab_size,
                         labels[0] if labels else 2), recipe


def describe(job: PretrainingFlags, recipe: recipes.Recipe, records: "data.RecordSet",
             terms: Sequence[recipes.Term]) -> str:
    """The line that says what is trained."""
    line = f"recipe {recipe.name} ({recipe.source})"
    if not job.recipe:
        line += (", as the manifest of the records names it" if records.manifest else
                 f"; no manifest names {records.paths[0]}")
    line += f": {', '.join(map(_name, terms))}"
    rows = getattr(records, "rows", 0)
    if rows and "next_token_ids" in records.format.names:
        line += f"; {job.max_seq_length} steps at once, in batches of {rows} rows that go on"
    elif rows:
        line += (f"; at most {job.max_predictions_per_seq} in {job.max_seq_length} tokens are "
                 f"predicted, in an order that is drawn while training; batches of {rows}")
    elif recipe.denoising:
        names = {"max_seq_length": "inputs", "max_target_length": "targets"}
        line += "; " + " and ".join(f"{names[name]} of {size} tokens"
                                    for name, size in records.format.sizes.items())
    elif not recipe.corruption.hides:
        line += f"; at most {job.max_seq_length - 1} in {job.max_seq_length} tokens are predicted"
    elif not records.format.is_masked:
        line += (f"; masks are drawn while training, at most {job.max_predictions_per_seq} in "
                 f"{job.max_seq_length} tokens")
    if getattr(records, "schedule", None):
        line += "; steps by stage: " + ", ".join(
            f"{name} {'/'.join(map(str, row))}"
            for name, row in zip(records.schedule.names, records.schedule.table))
    return line


def read_network(job: PretrainingFlags) -> Sizes:
    """The configuration that --bert_config_file or --model_size gives.

    Raises:
        InputError: it can't be had, or is of another network than the recipe's.
    """
    path = job.bert_config_file
    if bool(path) == bool(job.model_size):
        raise InputError("give either --bert_config_file, the file of a configuration, or "
                         "--model_size, a published size.")
    config = read_config(path) if path else None
    record = first_manifest(job.input_file)
    recipe = recipes.find(job.recipe or recipes.of_manifest(record).name)
    if config is None:
        if record is None:
            raise InputError("--model_size takes the size of the vocabulary from the manifest of "
                             "the records, but there is none; give --bert_config_file.")
        try:
            return with_memory(published(job.model_size, recipe.sizes, recipe.presets,
                                         vocab_size=record["vocabulary"]["size"]), job, record)
        except InputError as error:
            raise InputError(f"--model_size, recipe {recipe.name}: {error}") from None
    # A network that is made from another, such as one with fixed patterns, can take its place.
    found = [networks.NETWORKS[cls.__name__] for cls in type(config).__mro__
             if cls.__name__ in networks.NETWORKS]
    if recipe.network not in found:
        raise InputError(f"--bert_config_file: {path} describes a {found[0]}, but recipe "
                         f"{recipe.name} trains a {recipe.network}; give the configuration of one.")
    config = adapt(config, recipe, path) if isinstance(config, EncoderConfig) else config
    return with_memory(config, job, record)


def with_memory(config: Sizes, job: PretrainingFlags, record: Mapping[str, Any] | None) -> Sizes:
    """The configuration with the memory that the flags and the records give, if it has any.

    Raises:
        InputError: it has none, or another than the records are made for.
    """
    memory = {field.name for field in dataclasses.fields(config)} & {"mem_len", "reuse_len"}
    if job.mem_len is not None:
        if not memory:
            raise InputError("--mem_len is for networks with a memory, such as that of recipe "
                             "xlnet; leave it out.")
        config = dataclasses.replace(config, mem_len=job.mem_len)
    reuse = (record or {"options": {}})["options"].get("reuse_len")
    if memory and reuse and config.reuse_len != reuse:
        if config.reuse_len:
            raise InputError(f"reuse_len is {config.reuse_len} in the configuration, but the "
                             f"records of --input_file were made with {reuse}; change it there.")
        config = dataclasses.replace(config, reuse_len=reuse)
    return config


def adapt(config: EncoderConfig, recipe: recipes.Recipe, path: str) -> EncoderConfig:
    """The configuration in the file at `path`, with what the recipe decides where it says nothing.

    Raises:
        InputError: it says something else.
    """
    for key, least in (("model_type", None), ("directionality", EncoderConfig.directionality)):
        wanted, found = recipe.sizes.get(key, least), getattr(config, key)
        if wanted in (None, found):
            continue
        if found != getattr(EncoderConfig, key):
            raise InputError(f"--bert_config_file: {path} has the {key} {found}, but recipe "
                             f"{recipe.name} trains the {key} {wanted}; change it there.")
        config = dataclasses.replace(config, **{key: wanted})
    return config


def make_learner(config: Sizes, recipe: recipes.Recipe, terms: Sequence[recipes.Term],
                 dtype: str, generator: GeneratorSettings | None = None) -> "training.Learner":
    """The learner of a recipe, to compute in `dtype`, a Keras policy.

    Raises:
        InputError: flags are given for a generator, which the recipe has not.
    """
    generator = generator or GeneratorSettings()
    learner = getattr(training, recipe.learner)
    if learner.settings_class is None and generator != GeneratorSettings():
        given = next(name for name, value in dataclasses.asdict(generator).items()
                     if value != getattr(GeneratorSettings, name))
        raise InputError(f"--{given} is for recipes with a generator, such as electra; leave it "
                         f"out with recipe {recipe.name}.")
    return learner.of_terms(config, terms, dtype, generator)


def initialize(run: "training.Run", trainer: "training.Trainer", job: PretrainingFlags) -> None:
    """Gives a new run the weights of --init_checkpoint."""
    resume = training.resume
    path = job.init_checkpoint
    found = resume.checkpoints(path)[-1:] if os.path.isdir(path) else (
        [path] if resume.is_checkpoint(path) else [])
    if found and job.carry_optimizer:
        run.restore(found[0])
    elif found:
        resume.restore(found[0], trainer, weights_only=True)
    elif job.carry_optimizer:
        raise InputError("--carry_optimizer needs a training checkpoint as --init_checkpoint; "
                         f"{path or 'none'} is not one.")
    elif path:
        print(checkpoints.load(path, trainer.learner), flush=True)
    elif not job.do_train:
        raise InputError("there is nothing to evaluate: --output_dir holds no checkpoint; train "
                         "first or give --init_checkpoint.")
    if found:
        print(f"initial weights from {found[0]}, at step {run.step:,}", flush=True)


def main(job: PretrainingFlags, settings: TrainSettings,
         generator: GeneratorSettings | None = None,
         stack: StackingSettings | None = None) -> "training.Trainer | None":
    """Checks everything, then trains and evaluates; returns the trainer of the last stage that
    was reached."""
    if not (job.do_train or job.do_eval):
        raise InputError("give --do_train, --do_eval or both.")
    config = read_network(job)
    if job.max_seq_length > config.max_position_embeddings:
        raise InputError(f"--max_seq_length ({job.max_seq_length}) is more than "
                         f"max_position_embeddings ({config.max_position_embeddings}) in "
                         f"{job.bert_config_file or job.model_size}.")
    records, recipe = open_records(job, job.input_file, "input_file", config)
    eval_records = None
    if job.do_eval:
        eval_records = records if not job.eval_input_file else open_records(
            job, job.eval_input_file, "eval_input_file", config, recipe)[0]
        hashes = records.vocab_hash, eval_records.vocab_hash
        if None not in hashes and hashes[0] != hashes[1]:
            raise InputError("--input_file and --eval_input_file were made with different "
                             "vocabularies, according to their manifests; make one of them again.")
    of_eval = "eval_input_file" if job.eval_input_file else "input_file"
    for found, which, flag in ((records, "train", "input_file"), (eval_records, "eval", of_eval)):
        if getattr(found, "rows", 0) and getattr(job, f"do_{which}"):
            found.check_batch(getattr(settings, f"{which}_batch_size"), f"{which}_batch_size", flag)
    stack = stack or StackingSettings()
    records = schedule(job, settings, stack, records)
    terms = choose_terms(recipe, job.terms, records, config, job.n_negative_samples_batch)
    stages = [training.stacking.Stage(config, settings)]
    if job.do_train:
        learner = getattr(training, recipe.learner)
        stages = training.stacking.plan(settings, stack, config,
                                        lambda sizes: learner.configs(sizes, generator))
    make_folder(settings.output_dir, "output_dir")

    print(describe(job, recipe, records, terms), flush=True)
    strategy = training.open_strategy(settings, evaluates=job.do_eval)
    with training.sole_writer(settings.output_dir, strategy):
        trainer = None
        for stage in stages[training.stacking.newest(stages):]:
            if not stage.is_reached:
                print(f"--stop_at_step={settings.stop_at_step} is before {stage.name}", flush=True)
                break
            trainer = pretrain(job, stack, stage, functools.partial(
                make_learner, stage.config, recipe, terms, generator=generator),
                strategy, records, eval_records)
        return trainer


def schedule(job: PretrainingFlags, settings: TrainSettings, stack: StackingSettings,
             records: "data.RecordSet | data.TaskMixture") -> "data.RecordSet | data.TaskMixture":
    """The records; those of several tasks with their schedule.

    Raises:
        InputError: a flag does not go with them.
    """
    if records.tasks and stack.stack_layers:
        raise InputError("--stack_layers: its stages and those of --task_schedule do not go "
                         "together; leave it out, or train on records of another recipe.")
    if isinstance(records, data.TaskMixture):
        return records.scheduled(job.task_schedule or ["continual"], settings.num_train_steps)
    if job.task_schedule:
        raise InputError("--task_schedule is for records of several tasks, such as those of "
                         "ernie2; leave it out.")
    return records


def pretrain(job, stack, stage, make, strategy, records, eval_records):
    """Trains and evaluates a stage, as the flags ask; returns the trainer. Without --stack_layers
    there is one stage."""
    settings = stage.settings
    if stage.name:
        print(stage.name, flush=True)
        make_folder(settings.output_dir, "output_dir")
    trainer = training.make_trainer(strategy, settings, make)
    run = training.Run(
        trainer, settings, records,
        training.make_evaluation(trainer, settings, eval_records) if job.do_eval else None)
    if not run.resume():
        if stage.below:
            training.wait_for_workers(strategy)     # the chief may still be writing
            print(training.stacking.grow(stage.below, trainer, stack), flush=True)
            run.save()
        else:
            initialize(run, trainer, job)
    if hasattr(trainer.learner.encoder, "take_counts") and not run.step:
        trainer.learner.encoder.take_counts(data.manifest.token_counts(records.manifest))
    print(f"{trainer.learner.count_params():,} weights, {records.size:,} records, "
          f"{trainer.strategy.num_replicas_in_sync} device(s)", flush=True)
    if job.do_train:
        run.train()
        run.save_model()
    if job.do_eval:
        run.report_evaluation()
    return trainer


def run() -> None:
    """The console entry point."""
    flags.run(main, PretrainingFlags, TrainSettings, GeneratorSettings, StackingSettings,
              defaults=recipe_defaults)


if __name__ == "__main__":
    run()
