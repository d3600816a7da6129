"""Batches that grow while a run reads its first tokens."""

import json
import math
import sys

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.checkpoints import checksummed
from bert_tf.data.batches.pipeline import PackedRecords
from bert_tf.errors import InputError
from bert_tf.training import Run, resume
from bert_tf.training.growing_batches import growing_batch
from bert_tf.training.settings import TrainSettings
from tests.programs import refused
from tests.training import tiny


def test_sizes_are_those_of_modernbert(test_data):
    golden = json.loads((test_data / "golden" / "modernbert" / "schedules.json").read_text())
    for case in golden["batch_size_warmup"]:
        # Each process counts its own tokens.
        tokens = math.ceil(case["warmup_tokens"] / case["world_size"])
        assert case["batch_size"] == [
            growing_batch(at, case["min"], case["max"], tokens)[0] for at in case["tokens"]]
        ends = [0]
        while ends[-1] != sys.maxsize:
            ends.append(growing_batch(ends[-1], case["min"], case["max"], tokens)[1])
        assert ends[1:-1] == case["thresholds"]


def test_its_packer_makes_batches_of_these_sizes(test_data):
    golden = np.load(test_data / "golden" / "modernbert" / "packing.npz")
    settings = json.loads(str(golden["1/settings"]))
    rows, tokens = [], 0
    micro = settings["micro_batch_size"]
    least, most = settings["batch_size_warmup_min_size"] // micro, settings["batch_size"] // micro
    while (name := f"1/epoch0/{len(rows)}/attention_mask") in golden.files:
        mask = golden[name]
        rows.append(len(mask))
        assert len(mask) == growing_batch(
            tokens, least, most, settings["batch_size_warmup_tokens"])[0]
        tokens += mask.sum()
    assert {*rows} == {2, 3, 4}


def settings(folder, **changes):
    return TrainSettings(str(folder), **{
        "train_batch_size": 8, "batch_size_warmup_min_size": 2, "batch_size_warmup_tokens": 150,
        "num_train_steps": 6, "num_warmup_steps": 0, "save_checkpoints_steps": 1,
        "keep_checkpoint_max": 10, "iterations_per_loop": 100, **changes})


@pytest.mark.parametrize("is_packed", [False, True])
def test_a_run_grows_by_the_tokens_it_has_read_and_resumes_to_the_last_bit(
        eagerly, records, tmp_path, is_packed):
    def train(name, **changes):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        run = Run(tiny.trainer(dropout=0.1), settings(folder, **changes),
                  PackedRecords.of(records, 1) if is_packed else records)
        run.resume()
        run.train()
        return list(map(checksummed.read, resume.checkpoints(str(folder))))

    saved = train("whole")
    taken, tokens = ([0, *values] for values in (
        [extra["taken"] for _, extra in saved],
        [int(tensors["trainer/tokens"]) for tensors, _ in saved]))
    assert np.diff(taken).tolist() == [2 * growing_batch(at, 1, 4, 150)[0] for at in tokens[:-1]]
    assert {*np.diff(taken).tolist()} == {2, 4, 6, 8}
    if is_packed:       # other pauses than those for checkpoints, too
        train("broken", stop_at_step=3, save_checkpoints_steps=100)
        (tensors, extra), = train("broken", save_checkpoints_steps=100)[1:]
        assert {**extra, "run": None} == {**saved[-1][1], "run": None}
        assert all(np.array_equal(tensors[name], value) for name, value in saved[-1][0].items())
    else:               # a graph takes batches of several sizes, too
        tf.config.run_functions_eagerly(False)
        steps = int(np.flatnonzero(np.diff(taken) > 2)[0]) + 1
        (tensors, extra), = train("graph", stop_at_step=steps, save_checkpoints_steps=100)
        assert (extra["taken"], int(tensors["trainer/tokens"])) == (taken[steps], tokens[steps])


def test_batches_that_cannot_grow_are_refused(tmp_path):
    for changes, part in (
            ({"train_batch_size": 7}, "(7) must be a multiple of --batch_size_warmup_min_size"),
            ({"batch_size_warmup_tokens": 0}, "needs --batch_size_warmup_tokens")):
        with refused(part):
            settings(tmp_path, **changes)
    with pytest.raises(InputError, match="^--batch_size_warmup_min_size .2. must be a multiple"):
        settings(tmp_path).check_replicas(4)
