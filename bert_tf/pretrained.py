"""The class method `from_pretrained` of networks and objectives, of any format:

    encoder = bert_tf.BertEncoder.from_pretrained("uncased_L-12_H-768_A-12")
    learner = bert_tf.Classification.from_pretrained("uncased_L-12_H-768_A-12", num_labels=3)
"""

import warnings

from bert_tf import checkpoints, networks
from bert_tf.errors import InputError
from bert_tf.training.learners.learner import Learner


def _load(weights, model):
    account = checkpoints.load(weights, model)
    if account.missing:
        warnings.warn(f"{account.source} has no {', '.join(account.missing)}; these keep their "
                      "initial values until they are trained.", stacklevel=4)
    return model


def encoder(cls, path, **options):
    """Returns the network at `path`, a folder or file of any format; `options` are arguments of the
    class, such as `dtype="mixed_bfloat16"`. InputError if the network belongs to another class."""
    weights = checkpoints.read(path)
    network_class = networks.network_of(weights.config)
    fits = issubclass(cls, network_class)
    if cls.__name__ in networks.NETWORKS.values():      # no user's subclass
        fits = cls.__name__ in (network_class.__name__,
                                networks.NETWORKS[type(weights.config).__name__])
    if not fits:
        raise InputError(f"{path} holds a network of another class; call "
                         f"bert_tf.{network_class.__name__}.from_pretrained.")
    return _load(weights, cls(weights.config, **options))


def task(cls, path, dtype=None, **options):
    """Returns a `Learner` of the encoder at `path`, of any format, and this objective, whose
    `options` are such as `num_labels`. A warning names weights of the head that are not there."""
    weights = checkpoints.read(path)
    return _load(weights, Learner(networks.build(weights.config, dtype=dtype),
                                  [cls(weights.config, dtype=dtype, **options)]))
