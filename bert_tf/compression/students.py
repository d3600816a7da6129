"""Students initialised with layers of a larger model."""

import dataclasses
import os
from collections.abc import Sequence

from bert_tf import networks
from bert_tf.checkpoints import keras_file
from bert_tf.checkpoints.weights import variables
from bert_tf.errors import InputError
from bert_tf.files import make_folder
from bert_tf.kept import Kept
from bert_tf.opening import open_model
from bert_tf.tokenization import find_vocabulary, open_tokenizer
from bert_tf.training.learners.learner import Learner, digest
from bert_tf.training.train import save_model
from bert_tf.training.transfer import renumbered


def take_layers(encoder, layers: Sequence[int]):
    """Returns a network with some layers of another, numbered from 0, in this order, and all its
    other weights; InputError if layers are absent or share weights."""
    config = encoder.config
    if config.shares_layers or not hasattr(encoder, "layers_"):
        raise InputError(f"a student can't take layers from this {type(encoder).__name__}: its "
                         "layers share weights, or are not numbered; name another model.")
    if not layers or not all(0 <= layer < config.depth for layer in layers):
        raise InputError(f"--student_layers={','.join(map(str, layers))}: the model has layers 0 "
                         f"to {config.depth - 1}; name some of these.")
    sizes = {config.common_names.get("num_hidden_layers", "num_hidden_layers"): len(layers),
             **config.of_layers(layers)}
    if config.quantisation:
        sizes["quantisation"] = config.quantisation.of_layers(layers)
    if config.is_cut:
        gone = dict(config.pruned_heads)
        sizes["pruned_heads"] = {new: gone.get(old, ()) for new, old in enumerate(layers)}
        sizes["intermediate_sizes"] = [config.feed_forward_size(layer) for layer in layers]
    student = networks.build(dataclasses.replace(config, **sizes))
    weights = variables(encoder)
    for name, variable in variables(student).items():
        variable.assign(weights[renumbered(name, layers)])
    return student


def write_start(path: str, layers: Sequence[str], folder: str, has_begun: bool = False) -> str:
    """Writes a student with some layers of the model at `path`, of any format, and returns its
    folder. InputError if layers can't be taken, or a run `has_begun` with another student there."""
    numbers, model = list(map(int, layers)), open_model(path)
    student = take_layers(model.network(), numbers)
    make_folder(folder, "output_dir")
    # Values that the model lacks, such as a pooler, are random.
    taken = digest(variable for name, variable in variables(student).items()
                   if renumbered(name, numbers) in model.weights.tensors)
    made_of = Kept(os.path.join(folder, "made_of.json"), {
        "student_layers": numbers, "student": taken}, os.path.dirname(folder),
        forgets=not has_begun)
    if has_begun and keras_file.find(folder):
        return folder
    save_model(folder, Learner(student, []))
    if vocabulary := find_vocabulary(model.folder):
        open_tokenizer(vocabulary).save(folder)
    made_of.begin()
    return folder
