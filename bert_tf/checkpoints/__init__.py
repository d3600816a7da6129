"""Weights in every format: one table of names each, read in both directions."""

from bert_tf.checkpoints.account import Account
from bert_tf.checkpoints.loading import load, read, read_config, read_for
from bert_tf.checkpoints.weights import Weights

__all__ = ["Account", "Weights", "load", "read", "read_config", "read_for"]
