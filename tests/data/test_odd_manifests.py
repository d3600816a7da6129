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
from run_scripts import commands
from tests.checkpoints.test_damage import odd_values

PRETRAINING, TAGS, CHOICES = (
    "text/text.manifest.json", "tags/train.manifest.json", "choices/train.manifest.json")
_LENGTHS = ["--vocab_file=vocab.txt", "--num_workers=1", "--max_seq_length=16"]
COMMANDS = (
    ["bert-create-pretraining-data", *_LENGTHS, "--input_file=text.txt", "--dupe_factor=1",
     "--output_file=text/text.tfrecord", "--max_predictions_per_seq=4"],
    ["bert-finetune", "--records_only", *_LENGTHS, "--task_kind=tagging", "--train_file=tags.txt",
     "--output_dir=tags"],
    ["bert-finetune", "--records_only", *_LENGTHS, "--task_kind=multiple_choice",
     "--train_file=choices.jsonl", "--text_a_column=question", "--choice_columns=answer*",
     "--label_column=right", "--output_dir=choices"])


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    words = ["house", "tree", "sings", "old", "near", "."]
    (folder / "vocab.txt").write_text("\n".join(
        ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]))
    (folder / "text.txt").write_text("house sings .\nold tree .\n\nnear tree .\nold house .\n")
    (folder / "tags.txt").write_text("house B-PLACE\nsings O\n\nold O\ntree B-PLACE\n")
    (folder / "choices.jsonl").write_text("".join(
        json.dumps({"question": "house", "answer0": "sings", "answer1": word, "right": 0}) + "\n"
        for word in words))
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        for command in COMMANDS:
            main, settings = commands.parse(command)
            main(*settings)
    return folder


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
def test_odd_values_are_accepted_or_refused(made, tmp_path, use, name, recipe):
    shutil.copytree((made / name).parent, tmp_path / "records")
    path = tmp_path / "records" / pathlib.Path(name).name
    whole = json.loads(path.read_text()) | (
        {"recipe": recipes.RECIPES[recipe].describe()} if recipe else {})
    path.write_text(json.dumps(whole))
    use(path)
    # What a version has read for its own sake alone may be anything.
    read = {key: value for key, value in whole.items() if key not in ("fingerprint", "inputs")}
    refused = 0
    # Each place has two or three odd values, its neighbours have others.
    for value in (*list(odd_values(read))[::5], {}, [], [[[]]]):
        path.write_text(json.dumps(value))
        try:
            use(path)
        except InputError:
            refused += 1
    assert refused > 20
    for content in ("[" * 5000, "\xff", "", "{"):
        path.write_bytes(content.encode("latin-1"))
        with pytest.raises(InputError, match=f"{path.name} is not a manifest of records .*; make"
                           ) as error:
            use(path)
        assert "correct it" not in str(error.value)
