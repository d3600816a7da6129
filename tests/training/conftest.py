"""Fixtures of the tests of training."""

import pytest

from bert_tf.data.batches.pipeline import RecordSet
from tests.training import tiny


@pytest.fixture(name="records", scope="module")
def fixture_records(tmp_path_factory):
    path = tmp_path_factory.mktemp("records") / "a.tfrecord"
    tiny.write_records(path, 40)
    return RecordSet.open(str(path), "input_file")
