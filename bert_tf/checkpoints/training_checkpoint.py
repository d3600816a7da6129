"""Our own training checkpoints, with the weights under our names."""

import dataclasses
import os
import re

from bert_tf.checkpoints import checksummed, names, rules, safetensors_files
from bert_tf.checkpoints.rules import Format, Source
from bert_tf.config import config_from_dict
from bert_tf.files import is_file, is_folder, match_names
from bert_tf.models.deberta import weights as deberta
from bert_tf.models.electra import weights as electra

_FORMAT = Format(rows=None, ignored=(
    (r"(optimizer|trainer)/.*|.*seed_generator_state",
     "optimizer and counters, which only a resumed run needs"),
    (r".*/ranges/\w+", "ranges of a network that rounds its numbers"),
    # Auxiliary objectives, and a teacher that learns.
    (r"(fit_dense|weight_projection|dual_masked_lm|teacher)/.*",
     "only compares the network with a teacher")),
    # ELECTRA's ablation that predicts replaced tokens.
    heads={"replaced_lm": "masked_lm"})
# A learner, and in it a network by its own name.
_NETWORK = re.compile("^learner/((bert|bilstm|elmo|gpt|sequence_lstm|t5|xlnet)/)?")


def find(path: str) -> str | None:
    """The checkpoint file at `path`: the file, or in a folder the newest; or None, also if a run
    that stops early has saved its best weights as a model."""
    files = [path]
    if is_folder(path):
        if all(is_file(os.path.join(path, name)) for name in (names.BEST_FILE, names.MODEL_FILE)):
            return None
        files = match_names(path, "checkpoint-*.safetensors")
    return next((file for file in reversed(files) if is_file(file)
                 and re.fullmatch(rules.OWN, os.path.basename(file))), None)


def read(file: str) -> Source:
    """If the run keeps averages of the weights, these are read, as in the run's `model.keras`."""
    checksummed.verify(file)
    described = checksummed.read_extra(file).get("run", {}).get("generator_config")
    held = safetensors_files.tensors(file)
    averages = names.averages(held)
    if averages and held["trainer/step"].read():        # of no step, else
        for name, average in averages.items():
            held[name], held[average] = held[average], held[name]
    tensors = {_NETWORK.sub("", name): one for name, one in held.items()}
    source = Source(file, rules.config_beside(file), tensors, _FORMAT,
                    rules.vocabulary_beside(file))
    if not any(name.startswith("generator/") for name in tensors):
        return source
    source = dataclasses.replace(source, tensors=deberta.with_sums(tensors))
    return electra.split(source, "", "masked_lm/",
                         config_from_dict(described) if described else None)
