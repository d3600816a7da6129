"""A run names its devices, and what is missing where TensorFlow sees no GPU."""

import importlib.util
import types

import pytest
import tensorflow as tf

from bert_tf.errors import InputError
from bert_tf.training import distribution, open_strategy
from bert_tf.training.settings import FineTuneSettings
from tests import processes


@pytest.fixture(name="gpus")
def fixture_gpus(monkeypatch, tmp_path):
    """Two GPUs of the driver, of which TensorFlow sees none."""
    for number in range(2):
        (tmp_path / f"nvidia{number}").touch()
    monkeypatch.setattr(distribution, "_GPUS", f"{tmp_path}/nvidia[0-9]*")
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [])
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.mark.parametrize("hidden, has_cuda, has_libraries, part", [
    ("", True, True, "CUDA_VISIBLE_DEVICES= hides them"),
    ("-1", True, True, "CUDA_VISIBLE_DEVICES=-1 hides them"),
    (None, False, True, "built without CUDA"),
    (None, True, False, "pip install 'bert_tf[gpu]'"),
    ("0", True, True, "the driver may be too old"),
    ("1", True, True, "the driver may be too old")])
def test_what_is_missing_is_said(gpus, monkeypatch, hidden, has_cuda, has_libraries, part):
    if hidden is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
    monkeypatch.setattr(tf.test, "is_built_with_cuda", lambda: has_cuda)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: has_libraries or None)
    said = distribution.missing_gpus()
    assert said.startswith("this machine has 2 GPUs, but TensorFlow sees none: ") and part in said


def test_nothing_is_missing_where_nothing_is_there(monkeypatch, gpus):
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: ["GPU:0"])
    assert not distribution.missing_gpus()
    monkeypatch.setattr(distribution, "_GPUS", "/absent/*")
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [])
    assert not distribution.missing_gpus()


def test_devices_are_named(monkeypatch, gpus):
    one = types.SimpleNamespace(num_replicas_in_sync=1)
    assert distribution.describe_devices(one).startswith("devices: CPU (")
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: ["a", "b", "c"])
    monkeypatch.setattr(tf.config.experimental, "get_device_details",
                        lambda gpu: {"device_name": "H200" if gpu == "c" else "A100"})
    assert distribution.describe_devices(one) == "devices: 1 x A100 of 3 GPUs"
    all_of_two = types.SimpleNamespace(num_replicas_in_sync=6)
    assert distribution.describe_devices(all_of_two, 2) == (
        "devices: 2 x A100, 1 x H200, on each of 2 workers")


def test_nothing_is_said_of_the_first_thing_that_xla_compiles():
    said = processes.Process("""
import keras, numpy as np
from tests.training import tiny
tiny.trainer()
# XLA compiles it in the gradient of every language model.
keras.ops.slice_update(np.zeros(2, np.float32), (0,), np.ones(1, np.float32))
print("2", file=__import__("sys").stderr)
""").finish()
    assert "using XLA" not in said and "absl::Init" not in said and said.endswith("2\n")


def test_the_scope_of_a_strategy_is_to_be_left(mirrored, tmp_path):
    with mirrored.scope(), pytest.raises(InputError, match="leave the scope, and give --distr"):
        open_strategy(FineTuneSettings(output_dir=str(tmp_path), train_batch_size=8))
