"""Workers find each other, wait a bounded time, and refuse to train with different flags."""

import concurrent.futures
import json
import socket

import pytest
import tensorflow as tf

from bert_tf.errors import InputError
from bert_tf.training import cluster
from bert_tf.training.cluster import Cluster
from bert_tf.training.from_settings import open_strategy
from bert_tf.training.settings import TrainSettings

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
        '{"cluster": {"worker": 3}, "task": {"type": "worker", "index": 0}}')),
    ("tf_config", {"TF_CONFIG": config({"type": "worker", "index": 0}, worker=["a", "b:2"])}, [],
     "a worker at 'a'; write the address"),
    ("tf_config", {"TF_CONFIG": config({"type": "worker", "index": 0}, worker=["a:1", "a:1"])}, [],
     "two workers of the cluster have one address"),
    ("slurm", {}, [], "start the command with srun"),
    ("slurm", slurm("node[1-", "2(x2)", 2), [], "Slurm's environment variables"),
    ("indexed_job", {"JOB_COMPLETION_INDEX": "0"}, [], "--cluster_hosts, which has 0"),
    ("indexed_job", {}, ["a", "b"], "JOB_COMPLETION_INDEX, which is ''"),
    ("indexed_job", {"JOB_COMPLETION_INDEX": "2"}, ["a", "b"], "which is '2'")])
def test_a_broken_cluster_is_one_sentence(environment, way, variables, hosts, part):
    environment(**variables)
    with pytest.raises(InputError) as error:
        cluster.find(way, hosts)
    assert part in str(error.value) and "\n" not in str(error.value)


def meet(workers, seconds):
    """What each of some workers, (index, flags), says in the end; None if all is well."""
    with socket.create_server(("localhost", 0)) as server:
        port = server.getsockname()[1]
    addresses = [f"localhost:{port}", *(f"localhost:{i}" for i in range(1, 3))]

    def one(index, flags):
        try:
            cluster.meet(Cluster(addresses, index), flags, seconds)
        except InputError as error:
            return str(error)

    with concurrent.futures.ThreadPoolExecutor() as pool:
        return [found.result() for found in [pool.submit(one, *worker) for worker in workers]]


def test_workers_with_the_same_flags_go_on():
    assert meet([(index, {"rate": "1"}) for index in (2, 0, 1)], 60) == [None] * 3


def test_a_run_that_joins_no_workers_says_so(environment, capsys):
    environment(TF_CONFIG=config({"type": "worker", "index": 0}, worker=["a:1", "b:1"]))
    open_strategy(TrainSettings(output_dir=""))
    assert "warning: TF_CONFIG names 2 workers" in capsys.readouterr().out
    environment(TF_CONFIG=config({"type": "worker", "index": 0}, worker=["a:1"]))
    open_strategy(TrainSettings(output_dir=""))
    assert "TF_CONFIG" not in capsys.readouterr().out


def test_flags_that_differ_are_refused_by_all():
    said = meet([(0, {"rate": "1", "steps": "2"}), (1, {"rate": "1", "steps": "2"}),
                 (2, {"rate": "3", "more": "4", "steps": "2"})], 60)
    assert len(set(said)) == 1
    assert "--rate is 1 for worker 0 and 3 for worker 2" in said[0]
    assert "--more is absent for worker 0 and 4 for worker 2" in said[0] and "steps" not in said[0]


def test_two_that_take_themselves_for_the_same_worker_are_refused():
    said = meet([(0, {}), (1, {}), (1, {})], 60)
    assert len(set(said)) == 1 and "two workers take themselves for worker 1" in said[0]


def test_a_worker_that_does_not_come_is_said_by_all():
    said = meet([(0, {}), (1, {})], 2)
    assert len(set(said)) == 1
    assert "of 3 workers, 2 (localhost:2) did not come within 2 s (--cluster_timeout)" in said[0]
    (alone,) = meet([(1, {})], 0.1)
    assert "did not answer worker 1 within 0.1 s" in alone


def test_a_stranger_is_not_taken_for_a_worker():
    with socket.create_server(("localhost", 0)) as server:
        port = server.getsockname()[1]
    addresses = [f"localhost:{port}", "localhost:1"]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        first = pool.submit(cluster.meet, Cluster(addresses, 0), {}, 60)
        while True:
            try:
                with socket.create_connection(("localhost", port)) as stranger:
                    stranger.sendall(b"GET / HTTP/1.1\r\n")
                break
            except ConnectionRefusedError:
                assert not first.done()
        cluster.meet(Cluster(addresses, 1), {}, 60)
        assert first.result() is None


def test_contents_of_small_files_are_compared_not_names(tmp_path):
    def values(name, content):
        (tmp_path / name).write_text(content)
        return cluster.comparable({"bert_config_file": str(tmp_path / name), "learning_rate": 0.1,
                                   "input_file": [str(tmp_path / name)], "cluster_timeout": 3,
                                   "output_dir": str(tmp_path)})

    assert values("a", "{}") == values("b", "{}") != values("c", "{ }")
    assert values("a", "").keys() == {"bert_config_file", "learning_rate"}


def test_the_end_of_another_worker_is_one_sentence():
    """What TensorFlow 2.20 raises in the worker that is left, and what has another reason."""
    for error in (
            tf.errors.UnavailableError(None, None, "Collective ops is aborted by: Socket closed\n"),
            tf.errors.InternalError(None, None, "Error: CollectiveBcastSend failed\ndetails"),
            tf.errors.UnavailableError(None, None, "Graph execution error:\n\nDetected at node "
                                       "details\nCollective ops is aborted by: recvmsg:reset\n")):
        said = str(cluster.explain_lost_worker(error))
        assert "another worker is gone" in said and "Collective" in said
        assert "\n" not in said and "details" not in said
    for error in (ValueError("Collective"), tf.errors.InternalError(None, None, "no memory")):
        assert cluster.explain_lost_worker(error) is None
