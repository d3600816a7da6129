"""What is done to a pre-trained network before it is fine-tuned: slower, frozen or new layers."""

from keras import ops

from bert_tf.errors import InputError


def check(config, frozen_layers=0, reinit_layers=0, layer_decay=1.0):
    """Raises InputError if a network can't be treated so.

    Args:
        config: `EncoderConfig`.
        frozen_layers: see `freeze`.
        reinit_layers: see `reinitialize_top`.
        layer_decay: see `layer_decay_factors`.
    """
    most = config.num_hidden_layers
    if not -1 <= frozen_layers <= most:
        raise InputError(f"--frozen_layers is {frozen_layers}; it must be from 0 to {most}, the "
                         "layers there are, or -1 for the whole encoder.")
    if not 0 <= reinit_layers <= most:
        raise InputError(f"--reinit_layers is {reinit_layers}; it must be from 0 to {most}, the "
                         "layers there are.")
    if not 0 < layer_decay <= 1:
        raise InputError(f"--layer_decay is {layer_decay}; it must be above 0 and at most 1.")


def layer_decay_factors(config, decay):
    """`rate_factors` of an optimizer with which each layer learns slower than the one above it.

    Of L layers, layer i, counted from 0, has decay**(L - i) of the learning rate, the embeddings
    have decay**(L + 1), the pooler and the heads all of it (arXiv:1801.06146, section 3.2;
    arXiv:1905.05583, section 5.3.4). google-research/electra, which has no pooler and leaves its
    place free, has one power more in all layers and in the embeddings.

    Args:
        config: `EncoderConfig`.
        decay: above 0, at most 1.

    Returns:
        A tuple of (regular expression, factor), empty if `decay` is 1.

    Raises:
        InputError: `decay` is something else.
    """
    check(config, layer_decay=decay)
    if decay == 1:
        return ()
    layers = config.num_hidden_layers
    return (("embeddings/", decay**(layers + 1)),
            *((f"encoder/layer_{i}/", decay**(layers - i)) for i in range(layers)))


def freeze(encoder, layers):
    """Makes the embeddings and the lowest layers keep their weights in training.

    A `Learner` gives an encoder that is frozen as a whole no dropout, one that is not all of it.

    Args:
        encoder: `BertEncoder`.
        layers: how many layers, and the embeddings with them; 0 for nothing at all, -1 for the
            whole encoder, with its pooler.

    Raises:
        InputError: there are not so many.
    """
    check(encoder.config, frozen_layers=layers)
    if layers < 0:
        encoder.trainable = False
    elif layers:
        for layer in (encoder.embeddings, *encoder.layers_[:layers]):
            layer.trainable = False


def reinitialize_top(encoder, layers):
    """Draws the pooler and the top layers anew, as if they had not been trained
    (arXiv:2006.05987, section 5).

    The values are a function of the seed of `keras.utils.set_random_seed`.

    Args:
        encoder: `BertEncoder`.
        layers: how many layers, and the pooler with them; 0 for nothing at all.

    Raises:
        InputError: there are not so many.
    """
    check(encoder.config, reinit_layers=layers)
    if not layers:
        return
    for layer in (*encoder.layers_[-layers:], encoder.pooler):
        for variable in layer.weights:
            if variable.name == "kernel":
                variable.assign(encoder.initializer()(variable.shape, variable.dtype))
            else:
                fill = ops.ones if variable.name == "gamma" else ops.zeros
                variable.assign(fill(variable.shape, variable.dtype))
