"""Workers of a cluster, and devices."""

import concurrent.futures
import importlib.util
import json
import signal
import subprocess
import sys
import time
import types

import pytest
import tensorflow as tf

from bert_tf.errors import InputError
from bert_tf.training import cluster, distribution, open_strategy
from bert_tf.training.cluster import Cluster
from bert_tf.training.settings import FineTuneSettings, TrainSettings
from tests import processes
from tests.programs import refused

VARIABLES = ("TF_CONFIG", "JOB_COMPLETION_INDEX", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS",
             "SLURM_STEP_NODELIST", "SLURM_STEP_TASKS_PER_NODE", "SLURMD_NODENAME",
             "SLURM_LOCALID")


@pytest.fixture(name="environment")
def fixture_environment(monkeypatch):
    """Function (variables by name): the environment has these and no others of a cluster."""
    def make(**variables):
        for name in VARIABLES:
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
    return make


def config(task, **jobs):
    return json.dumps({"cluster": jobs, "task": task})


def slurm(nodes, tasks, number, **more):
    return {"SLURM_STEP_NODELIST": nodes, "SLURM_STEP_TASKS_PER_NODE": tasks,
            "SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": str(number), **more}


@pytest.mark.parametrize("way, variables, hosts, expected", [
    ("tf_config", {"TF_CONFIG": config({"type": "worker", "index": 1}, worker=["a:1", "b:2"])},
     [], Cluster(["a:1", "b:2"], 1)),
    ("tf_config", {"TF_CONFIG": config({"type": "worker", "index": "0"}, chief=["a:1"],
                                       worker=["b:2"])}, [], Cluster(["a:1", "b:2"], 1)),
    ("slurm", slurm("node[1-2]", "2(x2)", 2), [],
     Cluster(["node1:8888", "node1:8889", "node2:8888", "node2:8889"], 2)),
    # Slurm counts node9 before node10.
    ("slurm", slurm("node[9-10]", "2(x2)", 1, SLURMD_NODENAME="node9", SLURM_LOCALID="1"), [],
     Cluster(["node10:8888", "node10:8889", "node9:8888", "node9:8889"], 3)),
    ("indexed_job", {"JOB_COMPLETION_INDEX": "1"}, ["job-0.net", "job-1.net:99"],
     Cluster(["job-0.net:2222", "job-1.net:99"], 1))])
def test_a_cluster_is_found(environment, way, variables, hosts, expected):
    environment(**variables)
    assert cluster.find(way, hosts) == expected


@pytest.mark.parametrize("way, variables, hosts, part", [
    ("tf_config", {}, [], "needs the environment variable TF_CONFIG"),
    *(("tf_config", {"TF_CONFIG": text}, [], "TF_CONFIG describes no cluster") for text in (
        "[]", "{", "3", '{"cluster": {}}', config({"type": "worker", "index": 2}, worker=["a:1"]),
        config({"type": "ps", "index": 0}, ps=["a:1"]), config([], worker=["a:1"]),
        config({"type": "worker", "index": "x"}, worker=["a:1"]),
        config({"type": "worker", "index": 0.5}, worker=["a:1"]),
        '{"cluster": {"worker": 3}, "task": {"type": "worker", "index": 0}}')),
    ("tf_config", {"TF_CONFIG": config({"type": "worker", "index": 0}, worker=["a", "b:2"])}, [],
     "a worker at 'a'; write the address"),
    ("tf_config", {"TF_CONFIG": config({"type": "worker", "index": 0}, worker=["a:1", "a:1"])}, [],
     "two workers of the cluster have one address"),
    ("slurm", {}, [], "start the command with srun"),
    ("slurm", slurm("node[1-", "2(x2)", 2), [], "Slurm's environment variables"),
    ("slurm", slurm("node[1-2]", "2(x2)", 4), [], "SLURM_PROCID is 4 of 4 tasks"),
    ("indexed_job", {"JOB_COMPLETION_INDEX": "0"}, [], "--cluster_hosts, which has 0"),
    ("indexed_job", {}, ["a", "b"], "JOB_COMPLETION_INDEX, which is ''"),
    ("indexed_job", {"JOB_COMPLETION_INDEX": "2"}, ["a", "b"], "which is '2'")])
def test_a_broken_cluster_is_one_sentence(environment, way, variables, hosts, part):
    environment(**variables)
    with refused(part):
        cluster.find(way, hosts)


class Store(dict):
    """What TensorFlow's coordination service offers."""

    def set_config_key_value(self, key, value):
        self[key] = value

    def get_config_key_value(self, key, timeout_in_ms):
        while key not in self:
            time.sleep(0.01)
        return self[key]


def agree(*workers):
    """What each of some workers, (flags, ...), says in the end; None if all is well."""
    store = Store()

    def one(index, flags, folder=""):
        try:
            cluster.agree(Cluster(["a:1", "b:1", "c:1"], index), flags, 60, folder, store)
        except InputError as error:
            return str(error)

    with concurrent.futures.ThreadPoolExecutor() as pool:
        return [ended.result() for ended in [
            pool.submit(one, index, *worker) for index, worker in enumerate(workers)]]


def test_a_run_that_joins_no_workers_says_so(environment, capsys):
    environment(TF_CONFIG=config({"type": "worker", "index": 0}, worker=["a:1", "b:1"]))
    open_strategy(TrainSettings(output_dir=""))
    assert "warning: TF_CONFIG names 2 workers" in capsys.readouterr().out
    environment(TF_CONFIG=config({"type": "worker", "index": 0}, worker=["a:1"]))
    open_strategy(TrainSettings(output_dir=""))
    assert "TF_CONFIG" not in capsys.readouterr().out


def test_flags_that_differ_are_refused_by_all():
    assert agree(*[({"rate": "1"},)] * 3) == [None] * 3
    said = agree(({"rate": "1", "steps": "2"},), ({"rate": "1", "steps": "2"},),
                 ({"rate": "3", "more": "4", "steps": "2"},))
    assert len(set(said)) == 1
    assert "--rate is 1 for worker 0 and 3 for worker 2" in said[0]
    assert "--more is absent for worker 0 and 4 for worker 2" in said[0] and "steps" not in said[0]


def test_another_output_folder_is_refused_by_all(tmp_path):
    """Machines may have different folders of one name, so names say nothing."""
    said = agree(*(({}, str(tmp_path / name)) for name in ("one", "one", "two")))
    assert len(set(said)) == 1 and "worker 2 has another --output_dir than worker 0" in said[0]
    assert agree(*[({}, f"{tmp_path}/./one")] * 3) == [None] * 3
    assert not list(tmp_path.glob("*/.*"))


@pytest.mark.parametrize("rates, status", [((1e-4, 1e-4), 0), ((1e-4, 1e-3), 1)])
def test_workers_compare_flags_through_tensorflow(rates, status):
    """And SIGTERM counts afterwards: TensorFlow 2.20 sets a handler of its own, which drops it."""
    code = """
import os, signal, sys, time
from bert_tf.errors import InputError
from bert_tf.signals import ending
from bert_tf.training.distribution import open_strategy
from bert_tf.training.settings import TrainSettings
with ending():
    try:
        open_strategy(TrainSettings(output_dir="", distribution_strategy="multi_worker",
                                    learning_rate=float(sys.argv[1])))
    except InputError as error:
        print(error, flush=True)
        sys.exit(1)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(2)
"""
    addresses = processes.free_addresses(2)
    workers = [processes.Process(code, [str(rate)], TF_CONFIG=config(
        {"type": "worker", "index": index}, worker=addresses)) for index, rate in enumerate(rates)]
    for said in processes.finish_workers(workers, status or 143):
        assert said.endswith("terminated\n") or "--learning_rate is 0.0001 for worker 0" in said


def test_other_records_are_another_flag():
    one, two = (cluster.comparable({"input_file": ["r"]}, {"input_file": {"counts": [count]}})
                for count in (1, 2))
    assert one.keys() == two.keys() == {"input_file"} and one != two


@pytest.mark.parametrize("seconds, status", [(0.1, -signal.SIGKILL), (60, 0)])
def test_workers_that_do_not_connect_end(seconds, status):
    """TensorFlow waits for one that does not come, and no thread of Python runs."""
    code = f"""
import ctypes
from bert_tf.training import cluster
with cluster.connecting(["a:1", "b:1"], {seconds}):
    ctypes.PyDLL(None).sleep({60 if status else 0})
"""
    ended = subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    assert ended.returncode == status
    said = "error: the workers a:1, b:1 did not all connect within 0.1 s (--cluster_timeout)"
    assert ended.stderr.startswith(said) if status else not ended.stderr


def test_contents_of_small_files_are_compared_not_names(tmp_path):
    def values(name, content):
        (tmp_path / name).write_text(content)
        return cluster.comparable({"bert_config_file": str(tmp_path / name), "learning_rate": 0.1,
                                   "input_file": [str(tmp_path / name)], "cluster_timeout": 3,
                                   "output_dir": str(tmp_path)}, {})

    assert values("a", "{}") == values("b", "{}") != values("c", "{ }")
    assert values("a", "").keys() == {"bert_config_file", "learning_rate"}


def test_the_end_of_another_worker_is_one_sentence():
    """What TensorFlow 2.20 raises in the worker that is left, and what has another reason."""
    for error in (
            tf.errors.UnavailableError(None, None, "Collective ops is aborted by: Socket closed\n"),
            tf.errors.InternalError(None, None, "Error: CollectiveBcastSend failed\ndetails"),
            tf.errors.UnavailableError(None, None, "Graph execution error:\n\nDetected at node "
                                       "details\nCollective ops is aborted by: recvmsg:reset\n"),
            tf.errors.UnavailableError(None, None, "{{function_node __inference_<lambda>_31}} "
                                       "Collective ops is aborted by: unhealthy tasks:\ndetails")):
        said = str(cluster.explain_lost_worker(error))
        assert "another worker is gone" in said and "Collective" in said
        assert "\n" not in said and "details" not in said and "function_node" not in said
    for error in (ValueError("Collective"), tf.errors.InternalError(None, None, "no memory")):
        assert cluster.explain_lost_worker(error) is None


# Devices

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
