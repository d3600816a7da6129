"""Manifests with odd values: records are accepted or refused in one sentence, never a traceback."""

import contextlib
import io
import json
import pathlib
import shutil

import pytest

from bert_tf import data, recipes
from bert_tf.errors import InputError
from data_prep import verify_records
from tests.checkpoints.test_damage import odd_values

OLD = pathlib.Path(__file__).parent.parent / "compatibility" / "version_0_1_0"
PRETRAINING, TAGS, CHOICES = (
    "records/text.manifest.json", "tagger/records/train.manifest.json",
    "multiple_choice/records/train.manifest.json")


def open_records(path):
    shards = sorted(str(shard) for shard in path.parent.glob("text.tfrecord*"))
    records = data.RecordSet.open(shards, "input_file")
    assert records.rows >= 0 and records.identity()
    assert records.vocab_hash is None or isinstance(records.vocab_hash, str)


def verify(path):
    with contextlib.redirect_stdout(io.StringIO()):
        verify_records.main(verify_records.VerifyRecordsFlags(input_file=[str(path)]))


def read_examples(path):
    assert data.ExampleSet(str(path)).identity()


@pytest.mark.parametrize("use, name, recipe", [
    (open_records, PRETRAINING, None), (open_records, PRETRAINING, "bert"),
    (verify, PRETRAINING, "bert"), (read_examples, TAGS, None), (read_examples, CHOICES, None),
    (verify, TAGS, None)])
def test_odd_values_are_accepted_or_refused(tmp_path, use, name, recipe):
    shutil.copytree((OLD / name).parent, tmp_path / "records")
    path = tmp_path / "records" / pathlib.Path(name).name
    whole = json.loads(path.read_text()) | (
        {"recipe": recipes.RECIPES[recipe].describe()} if recipe else {})
    path.write_text(json.dumps(whole))
    use(path)
    # What a version has read for its own sake alone may be anything.
    read = {key: value for key, value in whole.items() if key not in ("fingerprint", "inputs")}
    refused = 0
    # Each place has three or four odd values, its neighbours have others.
    for value in (*list(odd_values(read))[::3], {}, [], [[[]]]):
        path.write_text(json.dumps(value))
        try:
            use(path)
        except InputError:
            refused += 1
    assert refused > 20
    for content in ("[" * 5000, "\xff", "", "{"):
        path.write_bytes(content.encode("latin-1"))
        with pytest.raises(InputError, match=f"{path.name} is not a manifest of records"):
            use(path)
