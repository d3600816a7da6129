"""The network of pre-training, from its file or a published size, the recipe and the records; and
the tokenizer of the records, which a run keeps with its model."""

import contextlib
import dataclasses
import os
from collections.abc import Sequence

from bert_tf import checkpoints, networks, recipes
from bert_tf.config import EncoderConfig, Sizes, published
from bert_tf.data.batches.record_files import RecordFiles
from bert_tf.data.records import manifest
from bert_tf.errors import InputError, naming
from bert_tf.files import exists, is_folder
from bert_tf.flags import check
from bert_tf.tokenization import Tokenizer, find_vocabulary, open_tokenizer
from run_scripts.pretraining.flags import PretrainingFlags, first_manifest


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


def _fitting(job, config, recipe):
    """The configuration of a file, completed with the recipe's values, if the recipe trains it."""
    flag = "bert_config_file" if job.bert_config_file else "init_checkpoint"
    path = f"--{flag}: {getattr(job, flag)}"
    # A network that is made from another, such as one with fixed patterns, can take its place.
    names = [networks.NETWORKS[cls.__name__] for cls in type(config).__mro__
             if cls.__name__ in networks.NETWORKS]
    if recipe.network not in names:
        raise InputError(f"{path} describes a {names[0]}, but recipe {recipe.name} trains a "
                         f"{recipe.network}; give a configuration of {recipe.network}.")
    if not isinstance(config, EncoderConfig):
        return config
    for key, least in (("model_type", None), ("directionality", EncoderConfig.directionality)):
        own, value = recipe.sizes.get(key, least), getattr(config, key)
        if own in (None, value):
            continue
        if value != getattr(EncoderConfig, key):
            raise InputError(f"{path} has the {key} {value}, but recipe {recipe.name} trains the "
                             f"{key} {own}; change the configuration, or the recipe.")
        config = dataclasses.replace(config, **{key: own})
    return config


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
    options = manifests[0][0]["options"] if manifests else {}
    if job.vocab_file and "do_lower_case" in options:   # some records lack it
        made = recipes.of_manifest(manifests[0][0])
        return open_tokenizer(path, options["do_lower_case"], saved={**made.tokenizer_settings})
    return tokenizer


def compare_teacher(tokenizer: Tokenizer | None, terms: Sequence[recipes.Term],
                    teacher: str) -> None:
    """Warns of a teacher in whose folder the vocabulary differs from the records', although it
    reads their ids, which it does unless its weights alone are compared."""
    own = find_vocabulary(teacher) if teacher else None
    if not (own and tokenizer) or any(term.objective == "WeightProjection" for term in terms):
        return
    with contextlib.suppress(InputError):       # of a vocabulary that can't be read here
        pairs = zip(open_tokenizer(own).vocabulary.tokens, tokenizer.vocabulary.tokens)
        for index, (other, token) in enumerate(pairs):
            if other != token:
                print(f"warning: --teacher={teacher} has {other!r} as token {index}, but the "
                      f"records have {token!r}, so the teacher reads other words", flush=True)
                return


def keep_model_files(tokenizer: Tokenizer | None, config: Sizes, folder: str) -> None:
    """Writes the configuration and the tokenizer, which every command needs with the weights, into
    the folder of a run; the tokenizer also into the folder of a generator."""
    path, generator = (os.path.join(folder, name) for name in ("bert_config.json", "generator"))
    if not exists(path):
        config.to_json_file(path)
    for each in (folder, *([generator] if is_folder(generator) else [])):
        if tokenizer:
            tokenizer.save(each)
