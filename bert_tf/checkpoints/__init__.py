"""Weights in other people's formats: one table of names each, read in both directions."""

from bert_tf.checkpoints.loading import load, read_config
from bert_tf.checkpoints.rules import Account

__all__ = ["Account", "load", "read_config"]
