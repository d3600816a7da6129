"""`from_pretrained` of the encoder and of every task: any format, known by what the folder holds.

The classes know nothing of checkpoints, which are further up; who takes them from `bert_tf` gets
them from here, with this method:

    encoder = bert_tf.BertEncoder.from_pretrained("uncased_L-12_H-768_A-12")
    learner = bert_tf.Classification.from_pretrained("uncased_L-12_H-768_A-12", num_labels=3)
"""

import warnings

from bert_tf import checkpoints, objectives
from bert_tf.heads import HEADS
from bert_tf.networks.encoder import BertEncoder
from bert_tf.training.learner import Learner


def _load(path, model):
    account = checkpoints.load(path, model)
    if account.missing:
        warnings.warn(f"{account.source} has no {', '.join(account.missing)}; these keep their "
                      "initial values until they are trained.", stacklevel=3)
    return model


@classmethod
def _encoder(cls, path, **options):
    """The encoder at `path`.

    Args:
        path: a folder or file of any format that `bert_tf.checkpoints.load` reads.
        options: of the class, such as `dtype="mixed_bfloat16"`.

    Raises:
        InputError: there is no checkpoint, or it can't be used.
    """
    return _load(path, cls(checkpoints.read_config(path), **options))


@classmethod
def _task(cls, path, dtype=None, **options):
    """A `Learner` of the encoder at `path` and this objective.

    The head's weights are loaded too if they are there; if not, a warning says so.

    Args:
        path: a folder or file of any format that `bert_tf.checkpoints.load` reads.
        dtype: of both; Keras's default if None.
        options: of the objective, such as `num_labels`.

    Raises:
        InputError: there is no checkpoint, or it can't be used.
    """
    config = checkpoints.read_config(path)
    return _load(path, Learner(BertEncoder(config, dtype=dtype),
                               [cls(config, dtype=dtype, **options)]))


BertEncoder.from_pretrained = _encoder
for _head in HEADS.values():
    _objective = getattr(objectives, _head.objective)
    _objective.from_pretrained = _task
    globals()[_head.objective] = _objective
