"""Students initialised with layers of a larger model."""

import dataclasses
from collections.abc import Sequence

from bert_tf import networks
from bert_tf.checkpoints.weights import variables
from bert_tf.errors import InputError
from bert_tf.files import make_folder
from bert_tf.models import open_model
from bert_tf.tokenization import find_vocabulary, open_tokenizer
from bert_tf.training.learners.learner import Learner
from bert_tf.training.run import save_model
from bert_tf.training.transfer import renumbered


def take_layers(encoder, layers: Sequence[int]):
    """Returns a network with some layers of another, numbered from 0, in this order, and all its
    other weights.

    Raises:
        InputError: the layers are absent or share weights.
    """
    config = encoder.config
    if getattr(config, "shares_layers", True) or not hasattr(encoder, "layers_"):
        raise InputError(f"a student can't take layers from this {type(encoder).__name__}: its "
                         "layers share weights, or are not numbered; name another model.")
    if not layers or not all(0 <= layer < config.depth for layer in layers):
        raise InputError(f"--student_layers={','.join(map(str, layers))}: the model has layers 0 "
                         f"to {config.depth - 1}; name some of these.")
    student = networks.build(dataclasses.replace(config, num_hidden_layers=len(layers)))
    theirs = variables(encoder)
    for name, variable in variables(student).items():
        variable.assign(theirs[renumbered(name, layers)])
    return student


def write_start(path: str, layers: Sequence[str], folder: str) -> str:
    """Writes a student with some layers of the model at `path`, of any format, and returns its
    folder."""
    try:
        numbers = [int(layer) for layer in layers]
    except ValueError:
        raise InputError(f"--student_layers={','.join(layers)}: give numbers from 0, separated by "
                         "commas.") from None
    model = open_model(path)
    make_folder(folder, "output_dir")
    save_model(folder, Learner(take_layers(model.network(), numbers), []))
    vocabulary = find_vocabulary(model.folder)
    if vocabulary:
        open_tokenizer(vocabulary).save(folder)
    return folder
