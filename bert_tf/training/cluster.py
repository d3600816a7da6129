"""The workers of a run on several machines: how each finds the others, and how they compare flags.

TensorFlow connects the workers, within a bounded time. Then they compare their flags through its
coordination service, so all workers end with an error if flags differ.
"""

import contextlib
import hashlib
import json
import os
import re
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import lazy_loader

from bert_tf import files, signals
from bert_tf.errors import InputError

tf = lazy_loader.load("tensorflow")

_PORT = 2222                    # of hosts that are named without one
_MOST_BYTES = 1 << 20           # of files that are compared by their contents
# A program that ends when its stdin does; after some seconds it kills a process, with a message.
_WATCH = """
import os, select, sys
if not select.select([0], [], [], float(sys.argv[2]))[0]:
    os.write(2, sys.argv[3].encode())
    os.kill(int(sys.argv[1]), 9)
"""


class Cluster(NamedTuple):
    """Where the workers are: "host:port" of each, and which of them this process is."""

    addresses: list[str]
    index: int

    def resolver(self) -> "tf.distribute.cluster_resolver.ClusterResolver":
        return tf.distribute.cluster_resolver.SimpleClusterResolver(
            tf.train.ClusterSpec({"worker": self.addresses}), task_type="worker",
            task_id=self.index, rpc_layer="grpc")


def _from_tf_config(_):
    text = os.environ.get("TF_CONFIG")
    if not text:
        raise InputError("--distribution_strategy=multi_worker needs the environment variable "
                         "TF_CONFIG with the cluster on every worker, or another --cluster.")
    try:
        value = json.loads(text)
        jobs, task = value["cluster"], value["task"]
        kind, index = str(task["type"]), int(str(task["index"]))
        sizes = {name: len(jobs.get(name, ())) for name in ("chief", "worker")}
        if not set(jobs) <= set(sizes) or not 0 <= index < sizes[kind]:
            raise ValueError(f"the cluster has no {kind} {index}, or other jobs than chief and "
                             "worker")
        addresses = [str(address) for name in sizes for address in jobs.get(name, ())]
        if kind == "worker":
            index += sizes["chief"]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            'TF_CONFIG describes no cluster that can be joined; it must read {"cluster": '
            '{"worker": ["host:port", ...]}, "task": {"type": "worker", "index": 0}} '
            f"({type(error).__name__}: {error}).") from error
    return Cluster(addresses, index)


def unjoined() -> str:
    """Returns a sentence on the cluster that a run does not join; "" if TF_CONFIG names none."""
    try:
        count = len(_from_tf_config(()).addresses)
    except InputError:
        count = 1
    if count == 1:
        return ""
    return (f"TF_CONFIG names {count} workers, but this run trains alone; give "
            "--distribution_strategy=multi_worker to join them.")


def _from_slurm(_):
    try:
        # TensorFlow's count of GPUs fails where a task has none, or those that Slurm gave it.
        number, tasks = (int(os.environ[f"SLURM_{name}"]) for name in ("PROCID", "STEP_NUM_TASKS"))
        if not 0 <= number < tasks:     # TensorFlow would take it for the first
            raise ValueError(f"SLURM_PROCID is {number} of {tasks} tasks")
        resolver = tf.distribute.cluster_resolver.SlurmClusterResolver(
            gpus_per_node=tasks, gpus_per_task=1, auto_set_gpu=False)
        addresses = resolver.cluster_spec().as_dict()["worker"]
        host, local = os.environ.get("SLURMD_NODENAME"), os.environ.get("SLURM_LOCALID")
        index = resolver.get_task_info()[1]
        if host and local:      # TensorFlow sorts hosts by their letters, Slurm by their numbers
            of_host = [a for a in addresses if a.rpartition(":")[0] == host]
            index = addresses.index(of_host[int(local)])
    except (RuntimeError, ValueError, KeyError, IndexError) as error:
        raise InputError("--cluster=slurm: Slurm's environment variables describe no job step "
                         f"({type(error).__name__}: {error}); start the command with srun."
                         ) from error
    return Cluster(addresses, index)


def _from_indexed_job(hosts):
    index = os.environ.get("JOB_COMPLETION_INDEX", "")
    if not hosts or not index.isdecimal() or int(index) >= len(hosts):
        raise InputError("--cluster=indexed_job needs the hosts of all workers in --cluster_hosts, "
                         f"which has {len(hosts)}, and this worker's number in the environment "
                         f"variable JOB_COMPLETION_INDEX, which is {index!r}.")
    return Cluster([host if ":" in host else f"{host}:{_PORT}" for host in hosts], int(index))


_WAYS: dict[str, Callable] = {"tf_config": _from_tf_config, "slurm": _from_slurm,
                              "indexed_job": _from_indexed_job}


def find(way: str, hosts: list[str]) -> Cluster:
    """Returns the cluster that this worker belongs to.

    Args:
        way: one of `settings.CLUSTERS`.
        hosts: of all workers, for "indexed_job".

    Raises:
        InputError: there is no cluster, or an address has no port.
    """
    cluster = _WAYS[way](hosts)
    for address in cluster.addresses:
        host, _, port = address.rpartition(":")
        if not (host and port.isdecimal() and 0 < int(port) < 1 << 16):
            raise InputError(f"the cluster has a worker at {address!r}; write the address as "
                             "HOST:PORT.")
    if len(set(cluster.addresses)) < len(cluster.addresses):
        raise InputError("two workers of the cluster have one address: "
                         f"{', '.join(cluster.addresses)}; give each worker its own host or port.")
    return cluster


# Flags that say how this worker finds the others. Workers compare the others' addresses instead.
_OWN = ("cluster", "cluster_hosts", "cluster_timeout")


def comparable(flags: Mapping[str, Any], records: Mapping[str, Any]) -> dict[str, str]:
    """Returns the values that workers compare of their flags: the contents of small files, not the
    names of files and folders, which machines may have in different places.

    Args:
        flags: values by name.
        records: JSON values that identify the records of some flags.
    """
    values = {name: f"records of identity {_digest(json.dumps(value, sort_keys=True).encode())}"
              for name, value in records.items()}
    for name, value in flags.items():
        if name in _OWN:
            continue
        if files.PATH_FLAGS.fullmatch(name):
            if not (isinstance(value, str) and files.is_file(value)
                    and files.file_size(value) <= _MOST_BYTES):
                continue
            with files.open_file(value, "rb") as file:
                value = f"a file with SHA-256 {_digest(file.read())}"
        values[name] = str(value)
    return values


def _digest(content):
    return hashlib.sha256(content).hexdigest()[:16]


@contextlib.contextmanager
def connecting(addresses: list[str], seconds: float) -> Iterator[None]:
    """Kills this process, with a sentence, if TensorFlow does not connect the workers in the block
    in time: it would wait for ever for a worker that does not come. Signals end the process too.

    A separate process keeps the time: TensorFlow lets no thread of Python run meanwhile.
    """
    message = (f"error: the workers {', '.join(addresses)} did not all connect within "
               f"{seconds:g} s (--cluster_timeout); start the same command on every machine.\n")
    watch = subprocess.Popen([sys.executable, "-I", "-S", "-c", _WATCH, str(os.getpid()),
                              str(seconds), message], stdin=subprocess.PIPE, start_new_session=True)
    try:
        with signals.left_to_the_system():
            yield
    finally:
        watch.communicate()


def agree(cluster: Cluster, flags: Mapping[str, str], seconds: float, folder: str = "",
          store: Any = None) -> None:
    """Checks that all workers, once connected, have the same flags and the same output folder.

    Args:
        flags: result of `comparable`.
        seconds: how long to wait for another worker's.
        folder: --output_dir, or "".
        store: where workers leave their values; None: TensorFlow's coordination service.

    Raises:
        InputError: flags or folders differ; all workers raise the same error.
    """
    if store is None:
        from tensorflow.python.eager.context import context  # with TensorFlow, not before
        store = context()
    with _marked("" if cluster.index else folder) as mark:
        value = {"flags": flags, "mark": mark}
        if cluster.index:       # what the first worker has marked is here, too
            mark = _ask(store, 0, seconds)["mark"]
            value["is_here"] = not mark or files.is_file(files.join_path(folder, mark))
        store.set_config_key_value(f"bert_tf/{cluster.index}", json.dumps(value))
        values = [_ask(store, index, seconds) for index in range(len(cluster.addresses))]
        store.set_config_key_value(f"bert_tf/read/{cluster.index}", "{}")
        if not cluster.index:       # the store ends with the first worker
            for index in range(len(cluster.addresses)):
                _ask(store, f"read/{index}", seconds)
    for index, value in enumerate(values):
        if not value.get("is_here", True):
            raise InputError(f"worker {index} has another --output_dir than worker 0; give all "
                             "workers one folder, on a disk that they share or in a store.")
    if problem := _difference([value["flags"] for value in values]):
        raise InputError(problem)


def _ask(store, name, seconds):
    return json.loads(store.get_config_key_value(f"bert_tf/{name}", int(1000 * seconds)))


@contextlib.contextmanager
def _marked(folder):
    """Gives the name of a file that is in a folder during the block; "" without a folder."""
    if not folder:
        yield ""
        return
    files.make_folder(folder, "output_dir")
    path = files.join_path(folder, mark := f".bert_tf-{uuid.uuid4().hex}")
    with files.write_aside(path):
        pass
    try:
        yield mark
    finally:
        files.remove_file(path)


def _difference(flags):
    """Returns a sentence on the flags that differ among workers, a dict for each; "" if none."""
    first = flags[0]
    differ: dict[str, str] = {}
    for index, others in enumerate(flags):
        for name in sorted(first.keys() | others.keys()):
            if first.get(name) != others.get(name) and name not in differ:
                differ[name] = (f"--{name} is {first.get(name, 'absent')} for worker 0 and "
                                f"{others.get(name, 'absent')} for worker {index}")
    if not differ:
        return ""
    return (f"the workers have different flags: {'; '.join(differ.values())}; start the same "
            "command on every machine.")


def explain_lost_worker(error: Exception) -> InputError | None:
    """Returns the error to show if TensorFlow's means the end of another worker; else None."""
    if not isinstance(error, tf.errors.OpError) or not (
            isinstance(error, (tf.errors.UnavailableError, tf.errors.AbortedError))
            or "ollective" in error.message):
        return None
    lines = error.message.strip().splitlines()
    # The message of a graph begins with where it was traced.
    first = next((line for line in lines if "abort" in line), lines[0]).rstrip(".:")
    first = re.sub(r"^\{\{.*?\}\} ", "", first)
    return InputError(f"another worker is gone ({first}); start all workers again, and they resume "
                      "from the last checkpoint.")
