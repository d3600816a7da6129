"""Fixtures of the tests of scripts."""

import pytest
from tensorflow.python.framework import config as tf_config


@pytest.fixture(autouse=True)
def fixture_determinism():
    """Switches off what a run switches on in this process."""
    yield
    tf_config.disable_op_determinism()
