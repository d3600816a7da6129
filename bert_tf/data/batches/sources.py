"""Datasets of the records in files, wherever the files are."""

from collections.abc import Sequence

import tensorflow as tf

from bert_tf.files import is_remote, tensorflow_name


def record_files(paths: Sequence[str] | tf.Tensor, of: Sequence[str]) -> tf.data.Dataset:
    """Returns the dataset of the names that TensorFlow opens record files by. While one file is
    read, the next file is copied.

    Args:
        of: names of all files, which say whether any must be copied to this machine.
    """
    names = tf.data.Dataset.from_tensor_slices(paths)
    if not any(map(needs_copy, of)):
        return names

    def copy(path):
        name = tf.numpy_function(lambda name: tensorflow_name(name.decode()), [path], tf.string)
        name.set_shape([])
        return name
    return names.map(copy).prefetch(1)


def needs_copy(path: str) -> bool:
    """Returns whether TensorFlow can't open a file itself."""
    return is_remote(path) and not path.startswith("gs://")


def records_of(paths: Sequence[str] | tf.Tensor, of: Sequence[str], compression: str
               ) -> tf.data.Dataset:
    """Returns the serialised records of files, one file after the other; see `record_files`."""
    if not any(map(needs_copy, of)):
        return tf.data.TFRecordDataset(paths, compression)
    return record_files(paths, of).flat_map(lambda path: tf.data.TFRecordDataset(path, compression))
