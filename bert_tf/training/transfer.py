"""Changes to a pre-trained network before it is fine-tuned: slower, frozen or new layers."""

import re
from collections.abc import Sequence

from keras import ops

from bert_tf.checkpoints.weights import variables
from bert_tf.config import EncoderConfig
from bert_tf.config.quantisation import FLOAT_BITS
from bert_tf.errors import InputError


def check(config: EncoderConfig, frozen_layers: int = 0, reinit_layers: int = 0,
          layer_decay: float = 1.0) -> None:
    """Checks that a network has the layers that are to be changed, each with weights of its own."""
    most, names = config.depth, config.weights()
    is_apart = not config.shares_layers and any("layer_{i}/" in name for name in names)
    for name, value, plain in (("frozen_layers", frozen_layers, (0, -1)),
                               ("reinit_layers", reinit_layers, (0,)),
                               ("layer_decay", layer_decay, (1,))):
        if not is_apart and value not in plain:
            raise InputError(f"--{name} is {value}, but the layers of this network share their "
                             "weights or are LSTMs, so no layer can be treated separately; leave "
                             "the flag out.")
    if not -1 <= frozen_layers <= most:
        raise InputError(f"--frozen_layers is {frozen_layers}; it must be from 0 to {most} (the "
                         "number of layers), or -1 for the whole encoder.")
    how = getattr(config, "quantisation", None)
    if frozen_layers < 0 and how and how.head_bits != FLOAT_BITS:
        raise InputError("--frozen_layers is -1, but a head of few bits learns only with its "
                         "network; give --frozen_layers=0, or --quantisation=none.")
    if not 0 <= reinit_layers <= most:
        raise InputError(f"--reinit_layers is {reinit_layers}; it must be from 0 to {most}, the "
                         "number of layers.")


def layer_decay_factors(config: EncoderConfig, decay: float, top: int = 1,
                        of: str = "rate") -> tuple[tuple[str, float], ...]:
    """Returns `rate_factors` of an optimizer that make each layer learn slower than the layer above
    it, pairs of a regular expression and a factor; empty if `decay` is 1.

    Layer i of L, counted from 0, learns at decay**(L - i) times the learning rate, the embeddings
    and their projection at decay**(L + 1), the pooler and the heads at the full rate
    (arXiv:1801.06146, section 3.2; arXiv:1905.05583, section 5.3.4). google-research/electra counts
    the pooler, which it lacks, as a layer: its `top` is 2, and all of these have one power more.

    Args:
        top: the power of `decay` for the top layer.
        of: "rate"; or "gradient", for `gradient_factors` as zihangdai/xlnet has them: without the
            embeddings, and without the tensors that it shares among all layers.
    """
    check(config, layer_decay=decay)
    if decay == 1:
        return ()
    layers = config.depth
    if of == "gradient":
        return tuple((f"encoder/layer_{i}/(?!.*(r_[wrs]|seg_embed)$)",
                      decay**(layers - 1 - i + top)) for i in range(layers))
    return (("embeddings(_project)?/", decay**(layers + top)),
            *((f"encoder/layer_{i}/", decay**(layers - 1 - i + top)) for i in range(layers)))


def freeze(encoder, layers: int) -> None:
    """Makes the embeddings and the lowest `layers` keep their weights in training; 0 for nothing,
    -1 for the whole encoder, with its pooler.

    A `Learner` applies no dropout in an encoder that is frozen as a whole, and all of it in one
    that is frozen in part.
    """
    check(encoder.config, frozen_layers=layers)
    if layers < 0:
        encoder.trainable = False
    elif layers:
        project = getattr(encoder, "embeddings_project", None)
        for layer in filter(None, (encoder.embeddings, project, *encoder.layers_[:layers])):
            layer.trainable = False


def reinitialize_top(encoder, layers: int) -> None:
    """Draws new weights for the pooler and the top `layers` layers, if any (arXiv:2006.05987, 5).

    The values are a function of the seed of `keras.utils.set_random_seed`.
    """
    check(encoder.config, reinit_layers=layers)
    if not layers:
        return
    for layer in filter(None, (*encoder.layers_[-layers:], encoder.pooler)):
        for variable in layer.weights:
            if len(variable.shape) > 1:
                variable.assign(encoder.initializer()(variable.shape, variable.dtype))
            else:
                fill = ops.ones if variable.name == "gamma" else ops.zeros
                variable.assign(fill(variable.shape, variable.dtype))


def begin_with(learner, teacher, layers: Sequence[int], vocab_transform: bool = False) -> None:
    """Gives a network embeddings and `layers` (from 0) of another, and its masked LM the bias
    (transformers examples/research_projects/distillation, scripts/extract_distilbert.py).

    Weights that the network lacks, such as segment embeddings, are dropped; others keep their
    values. `vocab_transform` takes the masked LM's hidden layer, too.
    """
    own, taught = learner.encoder.config, teacher.encoder.config
    if len(layers) != own.depth or not all(0 <= layer < taught.depth for layer in layers):
        raise InputError(f"--teacher_layers={','.join(map(str, layers))}: give a layer of the "
                         f"teacher, from 0 to {taught.depth - 1}, for each of the network's "
                         f"{own.depth} layers.")
    source, taken = variables(teacher), "embeddings|encoder/|masked_lm/output_bias"
    if vocab_transform:
        taken += "|masked_lm/transform"
    for name, variable in variables(learner).items():
        name = renumbered(name, layers)
        if not re.match(taken, name):
            continue
        if name not in source:
            if name.startswith("encoder/"):
                raise InputError(f"--teacher_layers: the layers of a {taught.model_type} have no "
                                 f"{name}; take another teacher, or leave the flag out.")
            continue
        if variable.shape != source[name].shape:
            raise InputError(f"--teacher_layers: {name} has the shape {source[name].shape} in the "
                             f"teacher and {variable.shape} in the network; leave the flag out.")
        variable.assign(source[name])


def renumbered(name: str, layers: Sequence[int]) -> str:
    """Returns the teacher's name of a weight; layer i of the network is the teacher's layers[i]."""
    return re.sub(r"^encoder/layer_(\d+)/",
                  lambda match: f"encoder/layer_{layers[int(match[1])]}/", name)
