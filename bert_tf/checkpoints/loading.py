"""Loads a checkpoint of any format, all of it or nothing."""

import dataclasses
import importlib
import os
import re
import types

from bert_tf.checkpoints import names, rules
from bert_tf.checkpoints.rules import Source
from bert_tf.checkpoints.weights import Account, Weights, assign, translate
from bert_tf.config import EncoderConfig
from bert_tf.errors import InputError
from bert_tf.files import exists, fetched, is_file, is_folder, list_folder
from bert_tf.files.hub import PICKLES


@dataclasses.dataclass(frozen=True)
class FileFormat:
    """A format of checkpoints: a module, imported when a file may belong to it.

    The module has `find(path)`, which returns the file at a folder or file, or None; and
    `read(file)`, which returns its `Source`. One that is written also has `table_for(weights)`, the
    `Format` to write with, or InputError if the format's own code would compute other outputs; and
    `write(folder, weights, tensors)`, of weights, configuration and vocabulary. Its tensors have
    the format's names.

    Attributes:
        home: the module's name in `bert_tf`.
        endings: of its file names; () where another format's module finds them.
    """

    home: str
    endings: tuple[str, ...]
    writable: bool = True

    @property
    def module(self) -> types.ModuleType:
        return importlib.import_module(f"bert_tf.{self.home}")


FORMATS = {
    "google": FileFormat("checkpoints.google", (".index",)),
    "huggingface": FileFormat("checkpoints.huggingface",
                              (".safetensors", ".safetensors.index.json")),
    "model_garden": FileFormat("checkpoints.model_garden", ()),
    "keras_hub": FileFormat("checkpoints.keras_hub", (".weights.h5",)),
    "paddle": FileFormat("models.ernie.weights", ("word_embedding", "params")),
    # A task's folder next to a model of several tasks has no weights of its own.
    "keras": FileFormat("checkpoints.keras_file", (".keras", "task.json")),
    "elmo": FileFormat("models.recurrent.weights", ("weights.hdf5",)),
    "openai": FileFormat("models.gpt.weights", ("params_0.npy",)),
    "quantised": FileFormat("checkpoints.quantised", (rules.QUANTISED,), writable=False),
    "training": FileFormat("checkpoints.training_checkpoint", (".safetensors",), writable=False),
}
# Names of models, such as bert-base-uncased; not of files.
_NAME = re.compile(r"[A-Za-z][\w.]*(-[\w.]+)+")
# Where layers share weights, these keys too change the network without changing a shape.
_SHARED = ("num_hidden_layers", "num_hidden_groups", "inner_group_num", "shared_parts")


def _files(path):
    """The names in a folder; of a file, itself and the index of its prefix."""
    if is_folder(path):
        return list_folder(path)
    return [path, *[f"{path}.index"] * is_file(f"{path}.index")]


def weights_at(path: str, files: list[str] | None = None) -> dict[str, str]:
    """Returns the file of all weights at `path`, by the name of the format. `files`: the names in
    the folder, where they are known."""
    files = files or _files(path)
    return {name: weights for name, form in FORMATS.items()
            if any(file.endswith(form.endings) for file in files)
            and (weights := form.module.find(path))}


def check_exists(path: str) -> None:
    """Raises InputError without a file or a folder; a bare name may mean a model of the Hub."""
    if exists(path):
        return
    message = f"there is no {path}; name the folder of a checkpoint, or its file."
    if not path.startswith((".", os.sep)) and path.count("/") <= 1 and _NAME.fullmatch(
            os.path.basename(path)):
        name = path if "/" in path else f"OWNER/{path}"
        message += (f" For the model of this name from the Hub, write hf://{name}; docs/data.md "
                    "lists models.")
    raise InputError(message)


def read_source(path: str | os.PathLike, task: str | None = None,
                generator: bool = False) -> Source:
    """Returns the checkpoint at `path`, a folder of any format or the checkpoint in it, in its own
    names. `task` is the classifier's head, a name in `HEADS`, where the files leave it open; with
    `generator`, it is the generator of ELECTRA's pre-training."""
    place = fetched(path)
    files = _files(place)
    candidates = weights_at(place, files)
    if "adapter_config.json" in files:
        raise InputError(f"{place} holds an adapter, such as LoRA's, which is not read; merge it "
                         "into its model with peft (merge_and_unload) and save the merged model in "
                         "another folder, or name the file of the weights to leave it out.")
    if len(candidates) > 1:
        raise InputError(f"{place} holds {' and '.join(candidates.values())}; name one of these "
                         "files.")
    if not candidates:
        check_exists(place)
        if pickles := sorted(name for name in files if name.endswith(PICKLES)):
            raise InputError(f"{pickles[0]} is not read, because such files can run code or need "
                             "other libraries; convert the file to model.safetensors.")
        if "saved_model.pb" in files:
            raise InputError(f"{place} is a SavedModel, as of TensorFlow Hub, which is not read; "
                             "give the checkpoint that it was exported from.")
        below = [folder for name in files
                 if is_folder(folder := os.path.join(place, name)) and weights_at(folder)]
        if below:
            raise InputError(f"{place} holds no checkpoint itself; name a folder in it that does: "
                             f"{', '.join(below[:5])}.")
        raise InputError(f"{place} holds no checkpoint: no TensorFlow checkpoint (*.index), "
                         "model.safetensors, model.weights.h5, model.keras, "
                         "checkpoint-*.safetensors or params of ERNIE; name the right folder.")
    (form, file), = candidates.items()
    source = FORMATS[form].module.read(file).for_task(task)
    if not generator:
        return source
    if source.generator is None:
        raise InputError(f"{source.file} holds no generator; give the output folder of a "
                         "pre-training with one.")
    return source.generator


def read(path: str | os.PathLike, task: str | None = None, generator: bool = False) -> Weights:
    """Returns the checkpoint in our names; tensors are read on demand. See `read_source`."""
    source = read_source(path, task, generator)
    return translate(source, config_of(source))


def config_of(source: Source) -> EncoderConfig:
    if source.config is None:
        raise InputError(f"{source.file}: there is no bert_config.json or config.json in the same "
                         "folder; put it there.")
    return source.config


def read_config(path: str | os.PathLike) -> EncoderConfig:
    """Returns the configuration next to a checkpoint; all tensors must fit it."""
    return read(path).config


def read_for(path: str | os.PathLike, config: EncoderConfig) -> Weights:
    """Returns the `Weights` at `path` for a network of `config`, which the configuration next to
    the checkpoint makes too."""
    return _translate_for(read_source(path), config)


def _translate_for(source, config):
    if not source.config:
        return translate(source, config)
    unseen = (*config.unseen_keys, *source.config.unseen_keys)
    if source.config.layer_weights != config.layer_weights and (
            source.config.shares_layers or config.shares_layers):
        unseen += _SHARED
    for key in unseen:
        value, ours = (getattr(sizes, key, None) for sizes in (source.config, config))
        if value != ours:
            raise InputError(f"{source.file}: {key} is {value!r}, but the model has {ours!r}; use "
                             "the configuration of the checkpoint.")
    return translate(source, config)


def load(checkpoint: str | os.PathLike | Weights, model) -> Account:
    """Loads a checkpoint into an encoder or a Learner; returns an `Account` of what was read.

    Where the file has them, the pooler and the heads of the model's objectives are loaded too, and
    the generator of an `Electra`; if absent, these keep their initial values. InputError if
    anything is wrong; the model is unchanged then.

    Args:
        checkpoint: a folder of any format, or the checkpoint in it; or the result of `read`.
        model: an encoder or a `Learner`; its configuration must fit the checkpoint.
    """
    heads = [objective.name for objective in getattr(model, "objectives", ())]
    task = next((head for head in heads if head in names.CLASSIFIERS), None)
    config = getattr(model, "encoder", model).config
    weights = None
    if isinstance(checkpoint, Weights):
        weights, checkpoint = checkpoint, checkpoint.source
    origin = (weights and weights.origin) or read_source(checkpoint)
    source = origin.for_task(task)
    if not weights or weights.config != config or source is not origin:
        weights = _translate_for(source, config)
    parts = model.parts() if hasattr(model, "parts") else {}
    # A network that has not its own tables takes them from a copy that has.
    filled = parts["model"] if hasattr(model, "take") else model
    account = assign(filled, weights)
    if source.generator is not None and "generator" in parts:
        its = translate(source.generator, parts["generator"].encoder.config)
        account = account.joined(assign(parts["generator"], its).mapped)
    if filled is not model:
        model.take(parts)
    return account
