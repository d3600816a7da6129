"""The workers of a run on several machines: how each finds the others, and how they compare flags.

Before TensorFlow connects them, all workers meet at the first worker's address. So all workers end
with an error if one does not come within a bounded time, or if flags differ.
"""

import contextlib
import hashlib
import json
import os
import re
import select
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import lazy_loader

from bert_tf.errors import InputError
from bert_tf.files import (
    PATH_FLAGS,
    file_size,
    is_file,
    join_path,
    make_folder,
    open_file,
    remove_file,
    write_aside,
)

tf = lazy_loader.load("tensorflow")

_PORT = 2222                    # of hosts that are named without one
_RETRY_SECONDS = 0.2
_MARGIN_SECONDS = 30            # for the answer of the first worker, when its own time is over
_MOST_BYTES = 1 << 20           # of flags, and of files that are compared by their contents
_GREETING = "bert_tf"
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
        """Returns the resolver for TensorFlow's strategies."""
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
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            'TF_CONFIG describes no cluster that can be joined; it must read {"cluster": '
            '{"worker": ["host:port", ...]}, "task": {"type": "worker", "index": 0}} '
            f"({type(error).__name__}: {error}).") from error
    return Cluster(addresses, index + (sizes["chief"] if kind == "worker" else 0))


def unjoined() -> str:
    """Returns a sentence on the cluster that a run does not join; "" if TF_CONFIG names none."""
    try:
        count = len(_from_tf_config(()).addresses)
    except InputError:
        count = 1
    return "" if count == 1 else (
        f"TF_CONFIG names {count} workers, but this run trains alone; give "
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
    found = _WAYS[way](hosts)
    for address in found.addresses:
        host, _, port = address.rpartition(":")
        if not (host and port.isdecimal() and 0 < int(port) < 1 << 16):
            raise InputError(f"the cluster has a worker at {address!r}; write the address as "
                             "HOST:PORT.")
    if len(set(found.addresses)) < len(found.addresses):
        raise InputError("two workers of the cluster have one address: "
                         f"{', '.join(found.addresses)}; give each worker its own host or port.")
    return found


# Flags that say how this worker finds the others. Workers compare the others' addresses instead.
_OWN = ("cluster", "cluster_hosts", "cluster_timeout")


def comparable(flags: Mapping[str, Any], records: Mapping[str, Any]) -> dict[str, str]:
    """Returns the values that workers compare of their flags: the contents of small files, not the
    names of files and folders, which machines may have in different places.

    Args:
        flags: values by name.
        records: JSON values that identify the records of some flags.
    """
    found = {name: f"records of identity {_digest(json.dumps(value, sort_keys=True).encode())}"
             for name, value in records.items()}
    for name, value in flags.items():
        if name in _OWN:
            continue
        if PATH_FLAGS.fullmatch(name):
            if not (isinstance(value, str) and is_file(value) and file_size(value) <= _MOST_BYTES):
                continue
            with open_file(value, "rb") as file:
                value = f"a file with SHA-256 {_digest(file.read())}"
        found[name] = str(value)
    return found


def _digest(content):
    return hashlib.sha256(content).hexdigest()[:16]


def meet(cluster: Cluster, flags: Mapping[str, str], seconds: float, folder: str = "") -> None:
    """Waits until all workers are here with the same flags and the same output folder.

    Args:
        flags: result of `comparable`.
        seconds: how long to wait.
        folder: --output_dir, or "".

    Raises:
        InputError: some workers have not come, or flags or folders differ; all workers that are
            here raise the same error.
    """
    if len(cluster.addresses) > 1:
        flags = {**flags, "cluster_hosts": ",".join(cluster.addresses)}
        problem = (_visit if cluster.index else _receive)(cluster, flags, seconds, folder)
        if problem:
            raise InputError(problem)


@contextlib.contextmanager
def connecting(addresses: list[str], seconds: float) -> Iterator[None]:
    """Kills this process, with a sentence, if TensorFlow takes too long to connect the workers in
    the block: TensorFlow would wait for ever for a worker that has died.

    A separate process keeps the time: TensorFlow lets no thread of Python run meanwhile.
    """
    message = (f"error: the workers {', '.join(addresses)} have met, but did not connect within "
               f"{seconds:g} s (--cluster_timeout); start all of them again.\n")
    watch = subprocess.Popen([sys.executable, "-I", "-S", "-c", _WATCH, str(os.getpid()),
                              str(seconds), message], stdin=subprocess.PIPE, start_new_session=True)
    try:
        yield
    finally:
        watch.communicate()


def _receive(cluster, flags, seconds, folder):
    """The first worker: receives the others, and sends them the problem, "" without one."""
    workers = len(cluster.addresses)
    with contextlib.ExitStack() as stack:
        here = [(0, {"flags": flags}, None)]
        arrivals = stack.enter_context(contextlib.closing(
            _arrivals(cluster, time.monotonic() + seconds)))
        for index, theirs, connection in arrivals:
            stack.enter_context(connection)
            # One that has hung up may come again.
            here = [one for one in here if not (one[2] and _is_closed(one[2]))]
            here.append((index, theirs, connection))
            indices = {index for index, *_ in here}
            if len(indices) < len(here) or len(here) == workers:
                break
        here.sort(key=lambda one: one[0])
        problem = _problem(cluster, here, seconds) or _elsewhere(folder, here)
        for _, _, connection in here[1:]:
            with contextlib.suppress(OSError):      # it is gone, as TensorFlow will notice
                _send(connection, {"problem": problem})
        return problem


def _problem(cluster, here, seconds):
    """Returns a sentence on a problem of the workers here, (index, message, ...); "" if none."""
    indices = [index for index, *_ in here]
    for index in set(indices):
        if indices.count(index) > 1:
            return f"two workers take themselves for worker {index}; give each its own place."
    absent = [f"{index} ({address})" for index, address in enumerate(cluster.addresses)
              if index not in indices]
    if absent:
        return (f"of {len(cluster.addresses)} workers, {', '.join(absent)} did not come within "
                f"{seconds:g} s (--cluster_timeout); start the same command on every machine.")
    said = [value["problem"] for _, value, _ in here if value.get("problem")]
    return said[0] if said else _difference([value["flags"] for _, value, _ in here])


def _elsewhere(folder, here):
    """Returns a sentence on a worker that has left its mark in another folder than the first
    worker's; "" without one."""
    for index, value, _ in here:
        if value.get("mark") and not is_file(join_path(folder, value["mark"])):
            return (f"--output_dir is {folder} for worker 0, and worker {index} has another folder "
                    "there; give all workers one folder, on a disk that they share or in a store.")
    return ""


def _arrivals(cluster, deadline) -> Iterator:
    """Yields (index, message, connection) of workers that come before the deadline."""
    workers = len(cluster.addresses)
    with _listening(cluster) as server:
        while (left := deadline - time.monotonic()) > 0:
            server.settimeout(left)
            try:
                connection, _ = server.accept()
                connection.settimeout(_MARGIN_SECONDS)
                value = _read(connection)
            except (OSError, ValueError):       # time is over, or it is not a worker of ours
                continue
            if value.get("greeting") == _GREETING and value.get("index") in range(1, workers):
                yield value["index"], value, connection
            else:
                connection.close()


def _listening(cluster):
    """A server at this worker's own port; InputError if it can't be there."""
    address = cluster.addresses[cluster.index]
    try:
        is_dual = socket.has_dualstack_ipv6()
        return socket.create_server(
            ("", int(address.rpartition(":")[2])), dualstack_ipv6=is_dual,
            family=socket.AF_INET6 if is_dual else socket.AF_INET)
    except OSError as error:
        raise InputError(f"worker {cluster.index} can't listen at {address} ({error.strerror}); "
                         "give a free port.") from error


def _is_closed(connection):
    """Returns whether the other end, which has nothing to say now, has hung up."""
    return bool(select.select([connection], [], [], 0)[0])


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


@contextlib.contextmanager
def _marked(folder):
    """Gives the name of a file that is in a folder during the block; "" without a folder."""
    if not folder:
        yield ""
        return
    make_folder(folder, "output_dir")
    path = join_path(folder, mark := f".bert_tf-{uuid.uuid4().hex}")
    with write_aside(path):
        pass
    try:
        yield mark
    finally:
        remove_file(path)


def _visit(cluster, flags, seconds, folder):
    """A further worker: goes to the first worker, and returns the problem."""
    with _marked(folder) as mark:
        return _ask(cluster, {"flags": flags, "mark": mark}, seconds)


@contextlib.contextmanager
def _own_port(cluster):
    """Holds this worker's own port, where TensorFlow will listen; gives a sentence if it can't."""
    try:
        server = _listening(cluster)
    except InputError as error:
        yield str(error)
        return
    with server:
        yield ""


def _ask(cluster, own, seconds):
    """Returns the first worker's answer to a further worker."""
    host, _, port = cluster.addresses[0].rpartition(":")
    deadline = time.monotonic() + seconds
    while True:
        try:
            with socket.create_connection((host.strip("[]"), int(port)),
                                          _RETRY_SECONDS + max(deadline - time.monotonic(), 0)
                                          ) as connection, _own_port(cluster) as problem:
                connection.settimeout(seconds + _MARGIN_SECONDS)
                _send(connection, {"greeting": _GREETING, "index": cluster.index,
                                   "problem": problem, **own})
                return _read(connection)["problem"]
        except (OSError, ValueError):
            if time.monotonic() > deadline:
                return (f"the first worker ({cluster.addresses[0]}) did not answer worker "
                        f"{cluster.index} within {seconds:g} s (--cluster_timeout); start the same "
                        "command on every machine, with the same cluster.")
            time.sleep(_RETRY_SECONDS)


def _send(connection, value):
    connection.sendall(json.dumps(value).encode() + b"\n")


def _read(connection):
    """Returns a JSON object from a line; raises ValueError if the line has another value."""
    with connection.makefile("rb") as file:
        value = json.loads(file.readline(_MOST_BYTES))
    if not isinstance(value, dict):
        raise ValueError
    return value


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
