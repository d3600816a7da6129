"""Flags of pre-training: recipe, records, network; the network and the tokenizer that they name."""

import contextlib
import dataclasses
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

from bert_tf import checkpoints, networks, recipes
from bert_tf.config import EncoderConfig, Sizes, published
from bert_tf.config.encoder import BERT_TYPES
from bert_tf.data import masking
from bert_tf.data.batches.record_files import RecordFiles
from bert_tf.data.records import manifest
from bert_tf.errors import InputError, naming
from bert_tf.files import exists, file_size, find_files, is_folder, is_packed, open_unpacked
from bert_tf.flags import REQUIRED, check, option
from bert_tf.tokenization import Tokenizer, find_vocabulary, open_tokenizer
from bert_tf.training.optimizers.table import SCHEDULES
from bert_tf.training.settings import TrainSettings

_LENGTH_BYTES = 8       # at the start of a TFRecord file
# Further pre-training: share of the predicted tokens, readings of the text, usual bytes of a token,
# and how much shorter a packed text is.
_SHARE, READINGS, _TOKEN_BYTES, _PACKED = 0.15, 3, 4, 3


@dataclasses.dataclass
class PretrainingFlags:
    """Records, model and recipe of pre-training."""

    input_file: list[str] = option(
        REQUIRED, "Records to train on: files, manifests, globs or folders. With --init_checkpoint "
        "also text, one sentence per line and a blank line between documents: the records are then "
        "made in --output_dir, with the tokenizer of that model.")
    bert_config_file: str = option(
        "", "The bert_config.json or config.json of the model. Default: the configuration of "
        "--init_checkpoint.")
    model_size: str = option(
        "", "A published size of the recipe, such as base, instead of --bert_config_file; the "
        "vocabulary size comes from the records. An unknown name gives an error that lists the "
        "sizes.")
    vocab_file: str | None = option(
        None, "The vocabulary of the records, which is saved with the model. Default: the "
        "vocabulary that bert-create-pretraining-data wrote beside the records.", rare=True)
    eval_input_file: list[str] = option([], "Records to evaluate on; default: --input_file.")
    do_train: bool = option(False, "Train.")
    do_eval: bool = option(False, "Evaluate at the end, and every --eval_steps.")
    init_checkpoint: str = option(
        "", "The initial checkpoint: a folder of Google's or Hugging Face's format, a model "
        "hf://OWNER/NAME, or a training checkpoint of another run (its file or --output_dir).")
    first_weights: str = option(
        "original", "Weights of a new run without --init_checkpoint. original: small random "
        "numbers. neighbours: heads of the two lowest layers look at neighbouring tokens, and "
        "words that stand near the same words begin alike. So a small model learns in fewer "
        "steps; its variables and its training stay the same.",
        choices=("original", "neighbours"))
    carry_optimizer: bool = option(
        False, "With a training checkpoint as --init_checkpoint: also take over the optimizer's "
        "state and the step, to continue in another --output_dir.", rare=True)
    max_seq_length: int = option(128, "Length of the records' sequences.", least=1)
    max_predictions_per_seq: int = option(20, "Maximum masked positions of a record.", least=0)
    recipe: str | None = option(
        None, "The pre-training method; see --recipe=NAME --help for its own flags. Default: the "
        "recipe in the records' manifest; bert for records without a manifest.",
        choices=recipes.RECIPES)
    terms: list[str] = option(
        [], "Terms of the loss to train. Default: all terms of the recipe. With masked_lm alone, "
        "next sentence prediction is left out.", rare=True)
    masking: str | None = option(
        None, "static: the records hold masks. dynamic: masks are drawn during training, for "
        "records made with --masking=dynamic. Default: what the records hold.",
        choices=("static", "dynamic"))
    pack: bool | None = option(
        None, "Put several records into one row, so less padding is computed; the loss of a step "
        "does not change. Default: pack if the network allows it and this saves at least 7% of the "
        "rows, but not on a TPU; a resumed run keeps its choice.")
    further: Sequence[Any] = ()     # filled dataclasses of settings that the recipe's row names

    def setting(self, name: str, default: Any = None) -> Any:
        """Returns the value of a setting that only some recipes have."""
        return next((getattr(part, name) for part in self.further if hasattr(part, name)), default)


def first_manifest(patterns: Sequence[str]) -> dict[str, Any] | None:
    """Reads the manifest of the first records of --input_file, if there is one."""
    manifests = manifest.find_manifests(manifest.record_files(patterns, "input_file"))
    return next((record for record, *_ in manifests), None)


def _first_manifest(typed):
    with contextlib.suppress(InputError):       # `main` checks the files, after the other flags
        return first_manifest(typed.get("input_file", []))
    return None


def recipe_of(typed: Mapping[str, Any]) -> recipes.Recipe:
    """Returns the recipe of --recipe, or of the records."""
    return recipes.find(typed.get("recipe") or recipes.of_manifest(_first_manifest(typed)).name)


def settings_of(typed: Mapping[str, Any]) -> list[type]:
    """Returns the dataclasses of settings that the recipe's row names. With the recipe None, as a
    flag of a recipe needs one, absent records are an InputError."""
    if typed.get("recipe", "") is None and typed.get("input_file"):
        find_files(typed["input_file"], "input_file")
    return [recipes.load(name) for name in recipe_of(typed).settings]


def recipe_defaults(typed: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Returns the defaults of the recipe, and of the records that it is trained on (see
    `flags.CommandLine`); for a text, those of further pre-training."""
    if typed.get("init_checkpoint") and (text := _found_text(typed)):
        values = text_defaults(typed, text)
        return "the text", values | _short_warmup(typed, values)
    record = _first_manifest(typed)
    made, recipe = recipes.of_manifest(record), recipe_of(typed)
    values = dict(recipe.defaults)
    options = (record or {}).get("options", {})
    if "max_predictions_per_seq" in options:    # else `open_records` refuses the records
        slots = masking.find(made.corruption).slots(
            options["max_predictions_per_seq"], options["max_seq_length"])
        # With --recipe=bert, the number of predictions is a flag of both commands (the original).
        derived = any(masking.find(corruption).most_predictions(
            options["max_seq_length"], options["masked_lm_prob"])
            for corruption in (recipes.find(made.name).corruption, made.corruption))
        if made.chooses_tokens and (made.corruption.dynamic or derived
                                    or slots != options["max_predictions_per_seq"]):
            values["max_predictions_per_seq"] = slots
        if "bsz_per_host" in options:
            values |= dict.fromkeys(("train_batch_size", "eval_batch_size"),
                                    options["bsz_per_host"])
        if "max_seq_length" in recipe.defaults or "bsz_per_host" in options:
            values["max_seq_length"] = options["max_seq_length"]
    return f"recipe {recipe.name}", values | _short_warmup(typed, values)


def _found_text(typed):
    with contextlib.suppress(InputError):       # `main` checks the files, after the other flags
        files = find_files(typed.get("input_file", []), "input_file")
        return files if is_text(files) else []
    return []


def text_flags(job: PretrainingFlags) -> dict[str, bool]:
    """Returns which of the flags with input files are given, and whether each names text."""
    inputs = {"input_file": job.input_file, "eval_input_file": job.eval_input_file}
    try:
        return {flag: is_text(find_files(names, flag)) for flag, names in inputs.items() if names}
    except InputError:
        if job.init_checkpoint:     # else a model that is not given is named before the files
            raise
        return {}


def is_text(files: Sequence[str]) -> bool:
    """Returns whether files are text, not records: the first bytes of a TFRecord file, the length
    of its first record, have zeros among them. The first file that is not empty decides; if all
    are empty, the extension .txt."""
    for path in files:
        if path.endswith(".json"):
            return False
        try:
            with open_unpacked(path) as file:
                head = file.read(_LENGTH_BYTES)
        except (OSError, EOFError):     # whoever reads the file names it
            return False
        if head:
            return b"\0" not in head
    return ".txt" in os.path.basename(files[0])


def text_defaults(typed: Mapping[str, Any], files: Sequence[str]) -> dict[str, Any]:
    """Returns the defaults of further pre-training on a text: predictions for 15% of the tokens,
    and the steps in which the text is read about three times."""
    length = typed.get("max_seq_length", PretrainingFlags.max_seq_length)
    batch = typed.get("train_batch_size", TrainSettings.train_batch_size)
    size = sum(file_size(path) * (_PACKED if is_packed(path) else 1) for path in files)
    return {"max_predictions_per_seq": math.ceil(_SHARE * length),
            "num_train_steps": max(math.ceil(READINGS * size / (_TOKEN_BYTES * length * batch)), 1)}


def _short_warmup(typed, values):
    """Returns a warm-up of a tenth of the steps where the usual one would outlast them."""
    settings = {name: typed.get(name, values.get(name, getattr(TrainSettings, name)))
                for name in ("num_train_steps", "num_warmup_steps", "learning_rate_schedule")}
    schedule = SCHEDULES.get(settings["learning_rate_schedule"])
    outlasts = settings["num_warmup_steps"] > settings["num_train_steps"]
    if "num_warmup_steps" in typed or not outlasts or not schedule or schedule.outlasts:
        return {}
    return {"num_warmup_steps": settings["num_train_steps"] // 10}


def read_network(job: PretrainingFlags) -> Sizes:
    """The configuration of --bert_config_file, --model_size or --init_checkpoint, as the recipe's
    settings and the records ask for it; InputError unless the flags give one network."""
    if job.bert_config_file and job.model_size or not (
            job.bert_config_file or job.model_size or job.init_checkpoint):
        raise InputError("give either --bert_config_file (a configuration) or --model_size (a "
                         "published size), or --init_checkpoint, whose configuration counts "
                         "without them.")
    config: Sizes | None = None
    if job.bert_config_file:
        config = checkpoints.read_config_file(job.bert_config_file)
    elif not job.model_size:
        config = checkpoints.read_config(job.init_checkpoint)
    record = first_manifest(job.input_file)
    recipe = recipes.find(job.recipe or recipes.of_manifest(record).name)
    check(job)
    kinds = [recipes.load(name) for name in recipe.settings]
    for part in job.further:
        if type(part) not in kinds:
            names = ", ".join(kind.__name__ for kind in kinds)
            raise InputError(f"{type(part).__name__} are no settings of recipe {recipe.name}; its "
                             f"settings are {names or 'none'}.")
    if config is not None:
        return _adapted(_fitting(job, config, recipe), job, record)
    if record is None:
        RecordFiles.open(job.input_file, "input_file")      # are they records at all?
        raise InputError("--model_size needs the size of the vocabulary from the records' "
                         "manifest, but there is no manifest; give --bert_config_file.")
    with naming(f"--model_size, recipe {recipe.name}"):
        return _adapted(published(job.model_size, recipe.sizes, recipe.presets,
                                  vocab_size=record["vocabulary"]["size"]), job, record)


def is_trained_by(config: Any, recipe: recipes.Recipe) -> bool:
    """Whether a recipe trains the network of a configuration."""
    # A network that is made from another, such as one with fixed patterns, can take its place.
    names = {networks.NETWORKS.get(cls.__name__) for cls in type(config).__mro__}
    return not names.isdisjoint((recipe.network, *recipe.also))


def _fitting(job, config, recipe):
    flag = "bert_config_file" if job.bert_config_file else "init_checkpoint"
    path = f"--{flag}: {getattr(job, flag)}"
    if not is_trained_by(config, recipe):
        raise InputError(f"{path} describes a {networks.NETWORKS[type(config).__name__]}, but "
                         f"recipe {recipe.name} trains a {recipe.network}; give a configuration of "
                         f"{recipe.network}.")
    if not isinstance(config, EncoderConfig):
        return config
    changes = {}
    for key, least in (("model_type", None), ("directionality", EncoderConfig.directionality)):
        own, value = recipe.sizes.get(key, least), getattr(config, key)
        if own in (None, value):
            continue
        if value != getattr(EncoderConfig, key):
            raise InputError(f"{path} has the {key} {value}, but recipe {recipe.name} trains the "
                             f"{key} {own}; change the configuration, or the recipe.")
        changes[key] = own
    if not BERT_TYPES[changes.get("model_type", "bert")].has_segment_table:
        changes |= {key: recipe.sizes[key] for key in ("pooler_type", "type_vocab_size")}
    return dataclasses.replace(config, **changes)


def _adapted(config, job, record):
    for part in job.further:
        if hasattr(part, "adapted"):
            config = part.adapted(config)
    if record and hasattr(config, "for_records"):
        config = config.for_records(record["options"])
    return config


def find_tokenizer(job: PretrainingFlags) -> Tokenizer | None:
    """Returns the tokenizer that made the records: --vocab_file with the case and the settings in
    their manifest, or the tokenizer kept with the records; None without both. InputError if the
    records were made with another vocabulary."""
    manifests = manifest.find_manifests(manifest.record_files(job.input_file, "input_file"))
    folders = (manifest.tokenizer_folder(path) for *_, path in manifests)
    path = job.vocab_file or next((folder for folder in folders if find_vocabulary(folder)), None)
    if not path:
        return None
    tokenizer = open_tokenizer(path)
    if manifests and manifests[0][0]["vocabulary"]["sha256"] != tokenizer.vocabulary.hash:
        raise InputError(f"{path} did not make the records of --input_file, according to their "
                         "manifest; name the vocabulary that made them with --vocab_file.")
    options = next((record["options"] for record, *_ in manifests), {})
    if job.vocab_file and "do_lower_case" in options:   # some records lack it
        made = recipes.of_manifest(manifests[0][0])
        return open_tokenizer(path, options["do_lower_case"], saved={**made.tokenizer_settings})
    return tokenizer


def compare_vocabularies(tokenizer: Tokenizer | None, models: dict[str, str]) -> None:
    """Warns of a model, {flag: its folder or a file in it}, in whose folder the vocabulary differs
    from the records', although it reads their ids. A free token may have become a word."""
    for flag, path in models.items():
        own = path and find_vocabulary(path if is_folder(path) else os.path.dirname(path))
        if not (own and tokenizer):
            continue
        with contextlib.suppress(InputError):       # of a vocabulary that can't be read here
            pairs = zip(open_tokenizer(own).vocabulary.tokens, tokenizer.vocabulary.tokens)
            for index, (other, token) in enumerate(pairs):
                if other != token and not other.startswith("[unused"):
                    print(f"warning: --{flag}={path} has {other!r} as token {index}, but the "
                          f"records have {token!r}, so the model reads other words", flush=True)
                    break


def keep_model_files(tokenizer: Tokenizer | None, config: Sizes, folder: str) -> None:
    """Writes the configuration and the tokenizer, which every command needs with the weights, into
    the folder of a run; the tokenizer also into the folder of a generator."""
    path, generator = (os.path.join(folder, name) for name in ("bert_config.json", "generator"))
    if not exists(path):
        config.to_json_file(path)
    for each in filter(is_folder, (folder, generator)):
        if tokenizer:
            tokenizer.save(each)
