"""From one format of weights to another, file to file."""

from bert_tf.conversion.convert import FORMATS, Changes, convert

__all__ = ["FORMATS", "Changes", "convert"]
