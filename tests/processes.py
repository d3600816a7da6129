"""Processes of their own for tests, which need not start TensorFlow again.

Each is forked from a server that has imported TensorFlow and Keras (`preload.py`), started no
thread of theirs, and imported nothing of the package: an import of TensorFlow takes longer than
most tests.
"""

import atexit
import contextlib
import gc
import json
import multiprocessing
import os
import random
import resource
import signal
import socket
import sys
import threading
import traceback

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.preload"])
# Whether TensorFlow and Keras stay as users have them, which takes the tests twice as long.
PLAIN = os.environ.get("BERT_TF_TEST_PLAIN", "") not in ("", "0")
# Graphs that run a few times on a few numbers don't repay what optimizing them takes.
UNOPTIMIZED = {} if PLAIN else {"disable_meta_optimizer": True}
# A program that holds the lock of a path until its stdin ends.
HOLD = """
import sys
from bert_tf.files import locked
with locked(sys.argv[1], "--output_dir"):
    print("held", flush=True)
    sys.stdin.read()
"""
# Seconds after which a process hangs, however busy the machine is.
_LIMIT = 1800


@contextlib.contextmanager
def full_disk(room=10_000):
    """Lets this process write no file of more than `room` bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


class Process:
    """`python -c code arguments...` in the folder `cwd`, with stdout and stderr in one, `said`.

    Args:
        optimized: whether TensorFlow optimizes graphs, as it does for users.
        eagerly: whether functions run without tracing, which takes longer than a few small steps.
        environment: variables that are added to those of this process.
    """

    def __init__(self, code, arguments=(), cwd=None, optimized=False, eagerly=False, **environment):
        ours, theirs = socket.socketpair()
        self._process = _CONTEXT.Process(target=_run, args=(
            theirs, code, arguments, cwd or os.getcwd(), {**os.environ, **environment},
            {} if optimized else UNOPTIMIZED, eagerly))
        self._process.start()
        # Where a test fails before `finish`, nothing is waited for at the end.
        atexit.register(self._process.kill)
        theirs.close()
        self.pid, self._socket = self._process.pid, ours
        self.said = ours.makefile(encoding="utf-8", errors="replace")

    def send(self, number):
        """Sends a signal."""
        os.kill(self.pid, number)

    def wait_for(self, begin, count):
        """Returns this process as soon as it has written `count` lines that begin with `begin`."""
        watch = threading.Timer(_LIMIT, self.send, [signal.SIGKILL])
        watch.start()
        lines = []
        while sum(line.startswith(begin) for line in lines) < count:
            lines.append(self.said.readline())
            assert lines[-1], "".join(lines)
        watch.cancel()
        return self

    def read(self):
        """What the process has written since, after it has done all that it does."""
        watch = threading.Timer(_LIMIT, self.send, [signal.SIGKILL])
        watch.start()
        said = self.said.read()
        watch.cancel()
        return said

    def finish(self, status=0, said=None):
        """Ends the process, whose status must be this; returns what `read` does."""
        said = self.read() if said is None else said
        self.said.close()
        self._socket.close()
        self._process.join()
        assert self._process.exitcode == status, said
        return said


def finish_workers(workers, status=0):
    """`finish` of each; none ends before all are done, or it might end within their last sum."""
    said = [worker.read() for worker in workers]
    return [worker.finish(status, text) for worker, text in zip(workers, said)]


def start_command(module, flags, before="", **options):
    """The Process of a command of this project, from a dict of its flags; `before` is Python that
    it runs first."""
    return Process(f"{before}\nfrom run_scripts.commands import start; start({module!r})", [
        f"--{name}={','.join(value) if isinstance(value, list) else value}"
        for name, value in flags.items()], **options)


def free_addresses(count):
    """Addresses that nobody listens at, nor gets where any port will do: systems give ports above
    32,768 then, and another program might get one of these before a worker is up."""
    ports = set()
    while len(ports) < count:
        port = random.SystemRandom().randrange(10_000, 32_000)
        with socket.socket() as one, contextlib.suppress(OSError):
            one.bind(("localhost", port))
            ports.add(port)
    return [f"localhost:{port}" for port in ports]


def start_workers(module, flags_of_each, **options):
    cluster = {"worker": free_addresses(len(flags_of_each))}
    return [start_command(module, {**flags, "distribution_strategy": "multi_worker"}, **options,
                          TF_CONFIG=json.dumps({"cluster": cluster,
                                                "task": {"type": "worker", "index": index}}))
            for index, flags in enumerate(flags_of_each)]


def _run(connection, code, arguments, cwd, environment, optimizer_options, eagerly):
    for stream in (1, 2):
        os.dup2(connection.fileno(), stream)
    # Those of the server remember what kind of file theirs were.
    sys.stdout, sys.stderr = (open(stream, "w", buffering=1, closefd=False) for stream in (1, 2))
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    sys.argv = ["-c", *arguments]
    gc.freeze()
    gc.set_threshold(200_000, 10_000, 1000)     # as in conftest.py
    config = sys.modules["tensorflow"].config
    if optimizer_options:
        config.optimizer.set_experimental_options(optimizer_options)
    if eagerly:
        config.run_functions_eagerly(True)
    status = 0
    try:
        exec(compile(code, "<code>", "exec"), {"__name__": "__main__"})
    except SystemExit as end:
        status = end.code or 0
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    connection.shutdown(socket.SHUT_WR)
    connection.recv(1)      # until `finish`
    sys.exit(status)
