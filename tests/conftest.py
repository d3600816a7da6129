"""Fixtures of all tests."""

import os
import pathlib

import pytest


@pytest.fixture(scope="session")
def test_data():
    """The folder of real material ($BERT_TF_TEST_DATA); skips the test where there is none."""
    folder = os.environ.get("BERT_TF_TEST_DATA")
    if not folder or not os.path.isdir(folder):
        pytest.skip("BERT_TF_TEST_DATA names no folder of real vocabularies and texts")
    return pathlib.Path(folder)
