"""Fixtures of all tests."""

import os
import pathlib

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf  # noqa: E402  pylint: disable=wrong-import-position

# Two devices to train on, which must be made before TensorFlow does anything.
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2)


@pytest.fixture(scope="session")
def mirrored():
    """The one MirroredStrategy of the session: a second one would break the collectives."""
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


@pytest.fixture(scope="session")
def test_data():
    """The folder of real material ($BERT_TF_TEST_DATA); skips the test where there is none."""
    folder = os.environ.get("BERT_TF_TEST_DATA")
    if not folder or not os.path.isdir(folder):
        pytest.skip("BERT_TF_TEST_DATA names no folder of real vocabularies and texts")
    return pathlib.Path(folder)
