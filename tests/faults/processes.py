"""Commands as processes that can be disturbed: each leads a group of its own.

Commands that need TensorFlow are forked from a server that has imported it, since an import takes
longer than the commands' tiny jobs. Their steps run without tracing for the same reason.
"""

import contextlib
import importlib
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from run_scripts import commands

TICKS = os.sysconf("SC_CLK_TCK")        # units of processes' CPU time, a second
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tensorflow", "keras", "s3fs"])
_POLL_SECONDS = 0.01
_FAMILY_SECONDS = 0.2       # between looks for new processes, which cost more
_QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_NUM_INTRAOP_THREADS": "1",
          "TF_NUM_INTEROP_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
_ASKED = {130, 143}     # statuses of programs that a signal asked to end


def process_fields(process: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on; OSError if the process has ended."""
    with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:
        return file.read().rpartition(")")[2].split()


def family(root: int) -> list[int]:
    """A process and all that descend from it."""
    children: dict[int, list[int]] = {}
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            children.setdefault(int(process_fields(int(name))[1]), []).append(int(name))
    processes = [root]
    for one in processes:
        processes += children.get(one, [])
    return processes


class End(NamedTuple):
    """The end of a command: "done", "sentence", "signal", "killed", "traceback" or "hang", and its
    message."""

    kind: str
    said: str = ""


class Running:
    """A command that runs, forked from the server if it `is_warm`; `log` takes its output."""

    def __init__(self, module: str, flags: Mapping, log: str, environment: Mapping,
                 is_warm: bool) -> None:
        arguments = [f"--{name}={value}" for name, value in flags.items()]
        environment = {**os.environ, **_QUIET, **environment}
        self._log, self._family, self._looked = log, [], 0.0
        with open(log, "w", encoding="utf-8") as file:
            if is_warm:
                self._forked = _CONTEXT.Process(target=_run, args=(
                    module, arguments, log, environment))
                self._forked.start()
                self.pid = self._forked.pid or 0
                while not os.path.getsize(log) and self._forked.exitcode is None:
                    time.sleep(_POLL_SECONDS)
            else:
                self._forked = None
                self._child = subprocess.Popen(
                    [sys.executable, "-m", module, *arguments], stdout=file, env=environment,
                    stderr=subprocess.STDOUT, start_new_session=True)
                self.pid = self._child.pid

    @property
    def status(self) -> int | None:
        """The exit status; None while the command runs."""
        return self._forked.exitcode if self._forked else self._child.poll()

    def cpu_seconds(self) -> float:
        """CPU seconds of the command and of all that descend from it."""
        total = 0
        if time.monotonic() > self._looked + _FAMILY_SECONDS:
            self._family, self._looked = family(self.pid), time.monotonic()
        for process in self._family:
            with contextlib.suppress(OSError, IndexError):
                total += sum(map(int, process_fields(process)[11:15]))
        return total / TICKS

    def wait_until(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Waits for a condition; returns whether it came before the command's end."""
        deadline = time.monotonic() + seconds
        while self.status is None and time.monotonic() < deadline:
            if condition():
                return True
            time.sleep(_POLL_SECONDS)
        return False

    def send(self, number: int, to: str = "parent") -> bool:
        """Sends a signal to the "parent", its newest "child" or the "group"; returns whether there
        was one."""
        with contextlib.suppress(ProcessLookupError):
            if to == "group":
                os.killpg(self.pid, number)
            elif to == "parent":
                os.kill(self.pid, number)
            else:
                children = [one for one in family(self.pid)[1:] if _is_worker(one)]
                if not children:
                    return False
                os.kill(max(children), number)
            return True
        return False

    def end(self, seconds: float) -> End:
        """Waits for the end and returns it; kills a command that takes longer."""
        self.wait_until(lambda: False, seconds)
        is_hanging = self.status is None
        if is_hanging:
            self.send(signal.SIGKILL, "group")
        while self.status is None:
            time.sleep(_POLL_SECONDS)
        with open(self._log, encoding="utf-8", errors="replace") as file:
            said = file.read().removeprefix(_STARTED)
        return End("hang", said[-800:]) if is_hanging else judge(self.status or 0, said)


_STARTED = "started\n"


def _is_worker(process):
    """Whether a process is one that does pieces, and not Python's own helper."""
    with contextlib.suppress(OSError), open(f"/proc/{process}/cmdline", "rb") as file:
        return b"spawn_main" in file.read()
    return False


def judge(status: int, said: str) -> End:
    """Returns how a command ended, from its status and its output."""
    if "Traceback (most recent call last)" in said:
        return End("traceback", said[-1500:])
    if status == -signal.SIGKILL:
        return End("killed")
    errors = re.findall(r"^error: .*", said, re.M)
    if status == 0:
        return End("done")
    if status in (*_ASKED, -signal.SIGINT, -signal.SIGTERM) and not errors:
        return End("signal")
    if len(errors) == 1:
        return End("sentence", errors[0])
    return End("traceback", f"status {status}: {said[-800:]}")


def _run(module, arguments, log, environment):
    held = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, held)
    os.setsid()
    handle = os.open(log, os.O_WRONLY | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(handle, stream)
    sys.stdout, sys.stderr = (open(stream, "w", buffering=1, closefd=False) for stream in (1, 2))
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["-m", *arguments]
    tensorflow = sys.modules["tensorflow"]
    tensorflow.config.run_functions_eagerly(True)
    tensorflow.get_logger().setLevel("WARNING")     # replicas without tracing log a traceback
    program = importlib.import_module(module)
    sys.argv[0] = program.__file__ or module
    for number in held:
        signal.signal(number, signal.SIG_DFL)
    print(_STARTED, end="", flush=True)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, held)
    commands.start(module)
