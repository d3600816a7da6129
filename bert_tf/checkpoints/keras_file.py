"""Our own `.keras` files: a Learner or an encoder, as Keras saves it.

The archive is read as data: no class that it names is made.
"""

import os
import re
import zipfile

from bert_tf.checkpoints import folders, hdf5, training_checkpoint
from bert_tf.checkpoints.rules import Format, Source, encoder_rows
from bert_tf.config import EncoderConfig, parse_json
from bert_tf.errors import InputError
from bert_tf.heads import HEADS, MAX_LSTMS

_SELF = (("", ""),)
_DENSE = (("/kernel", "/vars/0"), ("/bias", "/vars/1"))
_NORM = (("/gamma", "/vars/0"), ("/beta", "/vars/1"))
NAME = "model.keras"
_MEMBERS = {"metadata.json", "config.json", "model.weights.h5"}
# The classes of objectives.
_CLASSES = tuple(head.objective for head in HEADS.values())


def _group(head):
    """The name that Keras gives to the weights of an objective: its class in snake case."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", head.objective.replace("LM", "Lm")).lower()


FORMAT = Format(
    rows=(
        *encoder_rows(
            {"table": _SELF, "norm": _NORM, "dense": _DENSE},
            ("encoder/embeddings/vars/0", "encoder/embeddings/vars/1", "encoder/embeddings/vars/2",
             "encoder/embeddings/norm"), "encoder/layers/transformer_layer_{i}/",
            ("attention/query", "attention/key", "attention/value", "attention_output/projection",
             "attention_output/norm", "intermediate", "output_/projection", "output_/norm")),
        ("pooler/dense", "encoder/layers/dense", _DENSE),
        ("masked_lm/transform/dense", "layers/masked_lm/transform", _DENSE),
        ("masked_lm/transform/LayerNorm", "layers/masked_lm/norm", _NORM),
        ("masked_lm", "layers/masked_lm/vars", (("/output_bias", "/0"), ("/output_weights", "/1"))),
        *((f"{head.name}/dense", f"layers/{_group(head)}/classifier", _DENSE)
          for head in HEADS.values() if head.rebuildable and "dense/bias" in head.shapes),
    ),
    ignored=((r"(.*/)?(optimizer|seed_generator)/.*", "state of the training"),),
)
# What is read but not written: which layers its features come from isn't among the weights.
_FEATURES, _READER = "feature_tagging/features", "layers/feature_tagging/reader"
_READ = Format((
    *FORMAT.rows,
    ("feature_tagging/dense", "layers/feature_tagging/classifier", _DENSE),
    (_FEATURES, f"{_READER}/vars", (("/layer_weights", "/0"), ("/scale", "/1"))),
    *((f"{_FEATURES}/lstm_{i}/{way}_lstm/lstm_cell",
       f"{_READER}/lstms/bidirectional_{i}/{way}_layer/cell/vars",
       (("/kernel", "/0"), ("/recurrent_kernel", "/1"), ("/bias", "/2")))
      for i in range(MAX_LSTMS) for way in ("forward", "backward"))), FORMAT.ignored)
# Keras gives the first of several layers of a list no number.
_FIRST = re.compile(r"\b(transformer_layer|bidirectional)/")


def find(path):
    """The `.keras` file that `path` (the file, or a folder) stands for, or None.

    In the folder of a training run the checkpoints count, which are never older.
    """
    if os.path.isdir(path):
        path = "" if training_checkpoint.find(path) else os.path.join(path, NAME)
    return path if path.endswith(".keras") and os.path.isfile(path) else None


def _members(file):
    """A dict of the archive's contents by name.

    Raises:
        InputError: it holds anything but the three files that Keras writes, uncompressed.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            infos = archive.infolist()
            if {info.filename for info in infos} != _MEMBERS or len(infos) != len(_MEMBERS):
                raise InputError(f"{file} must hold {', '.join(sorted(_MEMBERS))} and nothing else "
                                 "to be a .keras file.")
            if any(info.compress_type != zipfile.ZIP_STORED for info in infos):
                raise InputError(f"{file} is compressed, which Keras never does.")
            return {info.filename: archive.read(info) for info in infos}
    except InputError:
        raise
    except Exception as error:  # as the damage has it
        raise InputError(f"{file}: can't be read as a .keras file ({error}).") from error


def _describe(values, known, source):
    """The "config" of an object that a `.keras` file describes, if it is of a class in `known`.

    Raises:
        InputError: it isn't.
    """
    values = values if isinstance(values, dict) else {}
    name, config = values.get("class_name"), values.get("config")
    if (name not in known or values.get("registered_name") != f"bert_tf>{name}"
            or not isinstance(config, dict)):
        raise InputError(f"{source}: describes a {name}, where only {' or '.join(known)} of "
                         "bert_tf is read.")
    return config


def _objectives(config, source):
    """The (class, configuration) of each objective of a Learner's configuration."""
    objectives = config.get("objectives")
    described = [(objective, _describe(objective, _CLASSES, source))
                 for objective in (objectives if isinstance(objectives, list) else [objectives])]
    return [(objective["class_name"], options) for objective, options in described]


def _config(values, source):
    """The `EncoderConfig` of the Learner or the encoder that `values` describe."""
    config = _describe(values, ("Learner", "BertEncoder"), source)
    if values["class_name"] == "Learner":
        _objectives(config, source)
        config = _describe(config.get("encoder"), ("BertEncoder",), source)
    if not isinstance(config.get("config"), dict):
        raise InputError(f"{source}: has no configuration of the encoder.")
    try:
        return EncoderConfig.from_dict(config["config"])
    except InputError as error:
        raise InputError(f"{source}: {error}") from None


def read_objectives(file):
    """The class and the `get_config()` of each objective of the Learner in a file.

    Raises:
        InputError: it is damaged, or describes no Learner or other objectives than ours.
    """
    source = f"{file}, config.json"
    values = parse_json(_members(file)["config.json"], source)
    return _objectives(_describe(values, ("Learner",), source), source)


def read(file, task=None):  # pylint: disable=unused-argument
    """The `Source` of a file.

    Raises:
        InputError: it is damaged, or describes another class than the Learner or the encoder.
    """
    members = _members(file)
    values = parse_json(members["config.json"], f"{file}, config.json")
    config = _config(values, f"{file}, config.json")
    prefix = "" if values["class_name"] == "Learner" else "encoder/"
    found = {_FIRST.sub(r"\1_0/", prefix + name): tensor
             for name, tensor in hdf5.tensors(members["model.weights.h5"], file).items()}
    return Source(file, config, found, _READ, folders.vocabulary_beside(file))
