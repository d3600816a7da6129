"""The network of pre-training, from its file or a published size, the recipe and the records."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from bert_tf import checkpoints, networks, recipes, training
from bert_tf.config import EncoderConfig, Sizes, published
from bert_tf.data.batches.record_files import RecordFiles
from bert_tf.errors import InputError, naming
from bert_tf.flags import check
from run_scripts.pretraining.flags import PretrainingFlags, first_manifest


def check_named(job: PretrainingFlags) -> None:
    """Raises InputError unless the flags give one network."""
    if job.bert_config_file and job.model_size or not (
            job.bert_config_file or job.model_size or job.init_checkpoint):
        raise InputError("give either --bert_config_file (a configuration) or --model_size (a "
                         "published size), or --init_checkpoint, whose configuration counts "
                         "without them.")


def read_network(job: PretrainingFlags) -> Sizes:
    """The configuration of --bert_config_file, --model_size or --init_checkpoint."""
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
    if config is None:
        if record is None:
            RecordFiles.open(job.input_file, "input_file")      # are they records at all?
            raise InputError("--model_size needs the size of the vocabulary from the records' "
                             "manifest, but there is no manifest; give --bert_config_file.")
        with naming(f"--model_size, recipe {recipe.name}"):
            return _adapted(published(job.model_size, recipe.sizes, recipe.presets,
                                      vocab_size=record["vocabulary"]["size"]), job, record)
    # A network that is made from another, such as one with fixed patterns, can take its place.
    names = [networks.NETWORKS[cls.__name__] for cls in type(config).__mro__
             if cls.__name__ in networks.NETWORKS]
    if recipe.network not in names:
        raise InputError(f"{_named(job)} describes a {names[0]}, but recipe "
                         f"{recipe.name} trains a {recipe.network}; give a configuration of "
                         f"{recipe.network}.")
    config = adapt(config, recipe, _named(job)) if isinstance(config, EncoderConfig) else config
    return _adapted(config, job, record)


def _named(job):
    flag = "bert_config_file" if job.bert_config_file else "init_checkpoint"
    return f"--{flag}: {getattr(job, flag)}"


def _adapted(config, job, record):
    """The configuration as the recipe's settings and the records ask for it."""
    for part in job.further:
        if hasattr(part, "adapted"):
            config = part.adapted(config)
    if record and hasattr(config, "for_records"):
        config = config.for_records(record["options"])
    return config


def adapt(config: EncoderConfig, recipe: recipes.Recipe, path: str) -> EncoderConfig:
    """Reads the configuration at `path`, and completes it with the recipe's values."""
    for key, least in (("model_type", None), ("directionality", EncoderConfig.directionality)):
        own, value = recipe.sizes.get(key, least), getattr(config, key)
        if own in (None, value):
            continue
        if value != getattr(EncoderConfig, key):
            raise InputError(f"{path} has the {key} {value}, but recipe {recipe.name} trains the "
                             f"{key} {own}; change the configuration, or the recipe.")
        config = dataclasses.replace(config, **{key: own})
    return config


def make_learner(config: Sizes, recipe: recipes.Recipe, terms: Sequence[recipes.Term],
                 dtype: str, settings: Any = None) -> "training.Learner":
    """Makes the learner of a recipe, to compute in `dtype`, with the object of the first dataclass
    of settings that the recipe's row names."""
    return recipes.load(recipe.learner).of_terms(config, terms, dtype, settings)
