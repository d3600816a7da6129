"""Our own `.keras` files: a Learner or an encoder, as Keras saves it. The archive is read as data:
of the classes that it names, only our own are made."""

import collections
import os
import re
import zipfile

from bert_tf.checkpoints import google, hdf5, names, rules, training_checkpoint
from bert_tf.checkpoints.rules import SELF, Format, Source, Tensor
from bert_tf.checkpoints.weights import Weights, as_float32, assign
from bert_tf.config import Sizes, config_from_dict
from bert_tf.errors import InputError, naming
from bert_tf.files import is_file, is_folder, parse_json, staged
from bert_tf.heads import BILSTM, HEADS, OBJECTIVES, objective_of
from bert_tf.kept import read_kept
from bert_tf.networks import NETWORKS, network_of

NAME = names.MODEL_FILE
_MEMBERS = {"metadata.json", "config.json", "model.weights.h5"}
_IGNORED = ((r"(.*/)?(optimizer|seed_generator)/.*",
             "optimizer and counters, which only a resumed run needs"),
            (r".*/ranges/.*", "ranges of a network that rounds its numbers"),
            (r"untrained/.*", "first values, since the converted checkpoint had none"))


def find(path: str) -> str | None:
    """The `.keras` file at `path`, the file or a folder, or None. In the folder of a training run
    the checkpoints count, which are never older, unless the run stops early. In the folder of a
    task (names.py) there need not be such a file."""
    if is_folder(path):
        if training_checkpoint.find(path):
            return None
        path = os.path.join(path, NAME)
    if path.endswith(".keras") and is_file(names.resolve(path)[1]):
        return path
    return None


def _members(file, wanted=_MEMBERS):
    """The contents by name; InputError for anything but Keras's three files, uncompressed."""
    try:
        with zipfile.ZipFile(staged(names.resolve(file)[1])) as archive:
            infos = archive.infolist()
            if {info.filename for info in infos} != _MEMBERS or len(infos) != len(_MEMBERS):
                raise InputError(f"{file} must hold {', '.join(sorted(_MEMBERS))} and nothing else "
                                 "to be a .keras file.")
            if any(info.compress_type != zipfile.ZIP_STORED for info in infos):
                raise InputError(f"{file} is compressed, but Keras never compresses such files; "
                                 "save the model again.")
            return {name: archive.read(name) for name in wanted}
    except InputError:
        raise
    except Exception as error:  # as the damage has it
        raise InputError(f"{file}: can't be read as a .keras file ({error}); copy the file again, "
                         "or save the model again.") from error


def _describe(values, known, source):
    """The "config" of an object in a `.keras` file; InputError if its class is not in `known`."""
    if not isinstance(values, dict):
        values = {}
    name, config = values.get("class_name"), values.get("config")
    if (not isinstance(name, str) or name not in known
            or values.get("registered_name") != f"bert_tf>{name}" or not isinstance(config, dict)):
        raise InputError(f"{source} describes a {name}, but only {' or '.join(known)} of bert_tf "
                         "can be read.")
    return config


def described_objectives(config: dict, source: str) -> list[tuple[str, dict]]:
    """The (class, configuration) of each objective of a Learner's configuration."""
    objectives = config.get("objectives")
    if not isinstance(objectives, list):
        objectives = [objectives]
    described = [(objective, _describe(objective, OBJECTIVES, source)) for objective in objectives]
    return [(objective["class_name"], options) for objective, options in described]


def _parse(values, source):
    """The network's configuration, and a Learner's objectives or None."""
    config = _describe(values, ("Learner", *NETWORKS.values()), source)
    objectives = None
    if values["class_name"] == "Learner":
        objectives = described_objectives(config, source)
        values = config.get("encoder")
        config = _describe(values, (*NETWORKS.values(),), source)
    if not isinstance(config.get("config"), dict):
        raise InputError(f"{source} has no configuration of the encoder; save the "
                         "model again.")
    with naming(source):
        return config_from_dict(config["config"]), objectives


def _name_heads(objectives, source):
    """The names of the objectives' heads, in their order; InputError if two are alike. The only
    head of its class has the name of its row in `HEADS`, others have their objectives' names."""
    count = collections.Counter(name for name, _ in objectives)
    heads = [OBJECTIVES[name].name if count[name] == 1 else options.get("name")
             for name, options in objectives]
    if len(set(map(str, heads))) < len(heads) or not all(
            isinstance(head, str) and re.fullmatch(r"\w[\w.-]*", head)
            and HEADS.get(head, OBJECTIVES[name]) is OBJECTIVES[name]
            for head, (name, _) in zip(heads, objectives)):
        raise InputError(f"{source}: objectives of the same class need different names, not "
                         f"{', '.join(map(str, heads))}.")
    return heads


def _told_names(told, objectives, heads, source):
    """Our names by Keras's paths, as the file lists them; InputError for a name listed twice."""
    if not isinstance(told, dict) or not all(isinstance(name, str) for name in told.values()) or (
            len(set(told.values())) < len(told)):
        raise InputError(f"{source}: weights must list the name of each weight once; "
                         "save the model again.")
    rows = {str(options.get("name")): head for head, (_, options) in zip(heads, objectives)}
    split = {path: name.partition("/") for path, name in told.items()}
    return {path: f"{rows.get(first, first)}{slash}{rest}"
            for path, (first, slash, rest) in split.items()}


def read_config(file: str) -> Sizes:
    """The configuration of the network; the weights, which may be large, are not read."""
    source = f"{file}, config.json"
    return _parse(parse_json(_members(file, ["config.json"])["config.json"], source), source)[0]


def read(file: str) -> Source:
    members, source = _members(file), f"{file}, config.json"
    description = parse_json(members["config.json"], source)
    config, objectives = _parse(description, source)
    heads = _name_heads(objectives or (), source)
    rows = {head: OBJECTIVES[name] for head, (name, _) in zip(heads, objectives or ())}
    told = _told_names(description["config"].get("weights"), objectives or (), heads, source)
    tensors = {told.get(path, f"/{path}"): tensor
             for path, tensor in hdf5.tensors(members["model.weights.h5"], file).items()}
    own = names.resolve(file)[0]
    if own is not None:
        tensors, rows = names.of_task(own, tensors, rows, objectives or (), file)
    table = Format(None, _IGNORED, {name: head.name for name, head in rows.items()
                                    if name not in HEADS})
    return Source(file, config, tensors, table, rules.vocabulary_beside(file),
                  labels=_labels_beside(file),
                  objectives=tuple((name, options) for name, options in objectives or ()
                                   if own in (None, options.get("name"))))


def _labels_beside(file):
    task = read_kept(os.path.join(os.path.dirname(file), "task.json")).get("task")
    if not isinstance(task, dict):
        return ()
    labels = task.get("label_names") or task.get("labels") or ()
    return tuple(labels) if all(isinstance(label, str) for label in labels) else ()


def table_for(weights: Weights) -> Format:
    """Leaves out heads that the weights alone don't show how to build."""
    left = {name for name, head in HEADS.items() if not head.rebuildable}
    return Format(tuple((name, name, SELF) for name in names.shapes(weights.config)
                        if names.head(name) not in left), _IGNORED)


def _learner(weights):
    """An untrained Learner with the heads of `weights`, which Keras builds from its description."""
    objectives = []
    for head in map(HEADS.get, weights.heads):
        if head and head.rebuildable:
            options = {"config": weights.config.to_dict(), **weights.beside(head.name)}
            if head.is_labelled:
                options["num_labels"] = weights.tensors[f"{head.name}/dense/bias"].shape[0]
            if head.name == "span_boundary":
                options["max_targets"] = weights.tensors[
                    "span_boundary/position_embeddings"].shape[0]
            reader = f"{head.name}/{next(iter(BILSTM))}"
            if reader in weights.tensors:
                options["reader_size"] = weights.tensors[reader].shape[1] // 4
            if head.name == "masked_lm":
                options["tied"] = "masked_lm/output_weights" not in weights.tensors
            objectives.append(_described(objective_of(head, weights.config.is_causal), **options))
    encoder = _described(network_of(weights.config).__name__, config=weights.config.to_dict())
    import keras  # not lazily: see tests/test_architecture.py
    return keras.saving.deserialize_keras_object(
        _described("Learner", objectives=objectives, encoder=encoder))


def _described(name, /, **config):
    """As Keras saves an object of one of our classes."""
    return {"module": None, "class_name": name, "registered_name": f"bert_tf>{name}",
            "config": config}


def write(folder: str, weights: Weights, tensors: dict[str, Tensor]) -> None:
    """Writes a file of Keras; InputError if a value isn't the same in float32."""
    for tensor in tensors.values():
        as_float32(tensor, weights.source)
    learner = _learner(weights)
    learner.untrained = assign(learner, weights).missing
    learner.save(os.path.join(folder, NAME))
    google.write_around(folder, weights)
