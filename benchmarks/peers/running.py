"""Runs systems in turns: each is a process that waits for the command to take steps."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

from bert_tf.errors import InputError

FOLDER = os.path.dirname(os.path.abspath(__file__))
OURS, ON_JAX = "bert_tf", "bert_tf_jax"
SYSTEMS = (OURS, "model_garden", "keras_hub", "transformers")
# The packages to import, which show whether an interpreter has the system.
PACKAGES = {OURS: "keras", "model_garden": "official.nlp",
            "keras_hub": "keras_hub", "transformers": "transformers, torch"}
# Variables that a system needs to be imported.
_VARIABLES = {"model_garden": {"TF_USE_LEGACY_KERAS": "1"}}
_MOST_STEPS = 10_000


def has_system(python: str, system: str) -> bool:
    """Returns whether an interpreter can import the packages that a system needs."""
    try:
        return subprocess.run(
            [python, "-c", f"import {PACKAGES[system]}"], capture_output=True, check=False,
            env={**os.environ, **_VARIABLES.get(system, {})}).returncode == 0
    except OSError:
        return False


class Worker:
    """A process that runs one system's steps of one job, on the CPU unless its device is "gpu".

    Args:
        log: file for the system's output.

    Raises:
        InputError: the system failed; the message ends with the end of its output.
    """

    def __init__(self, python: str, system: str, job: Mapping, log: str):
        self._log, self._system = log, system
        threads = str(job["threads"])
        limits = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "TF_NUM_INTRAOP_THREADS",
                                "TF_NUM_INTEROP_THREADS"), threads)
        root = os.path.dirname(os.path.dirname(FOLDER))
        path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
        device = {"CUDA_VISIBLE_DEVICES": ""}
        if job.get("device") == "gpu":
            device = {}
            system = {OURS: ON_JAX}.get(system, system)
        with open(log, "w", encoding="utf-8") as file:
            self._process = subprocess.Popen(
                [python, os.path.join(FOLDER, "worker.py"), f"{system}_system", json.dumps(job)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file, text=True,
                env={**os.environ, **limits, "PYTHONPATH": path, "TF_CPP_MIN_LOG_LEVEL": "3",
                     **device})

    def wait(self) -> str:
        """Waits until the first step is done; returns the versions that are measured."""
        return self._answer()["version"]

    def steps(self, count: int) -> dict[str, float]:
        """Takes steps; returns the "seconds" of one, and "peak" memory in bytes."""
        assert self._process.stdin
        print(count, file=self._process.stdin, flush=True)
        answer = self._answer()
        return {"seconds": answer["seconds"] / count, "peak": answer["peak"]}

    def _answer(self):
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            with open(self._log, encoding="utf-8", errors="replace") as file:
                raise InputError(f"{self._system} failed, see {self._log}: {file.read()[-1500:]}")
        return json.loads(line)

    def close(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.communicate()


def in_turns(pythons: Mapping[str, str], job: Mapping, rounds: int, seconds: float,
             logs: str) -> dict[str, dict]:
    """Measures systems in turns, round by round.

    Args:
        pythons: the interpreter of each system.
        seconds: seconds that a system works in each round, at least.
        logs: folder for the systems' output.

    Returns:
        For each system its "version", "peak" memory in bytes, and "seconds": of a step in each
        round, a list.
    """
    with contextlib.ExitStack() as stack:
        workers, counts = {}, {}
        for system, python in pythons.items():
            workers[system] = Worker(python, system, job, os.path.join(logs, f"{system}.log"))
            stack.callback(workers[system].close)
        # They compile at the same time, and no step is timed before the last one is ready.
        by_system = {system: {"version": worker.wait(), "seconds": [], "peak": 0}
                     for system, worker in workers.items()}
        for system, worker in workers.items():
            least = min(worker.steps(1)["seconds"] for _ in range(2))
            counts[system] = min(_MOST_STEPS, max(1, round(seconds / max(least, 1e-6))))
        for _ in range(rounds):
            for system, worker in workers.items():
                measured = worker.steps(counts[system])
                by_system[system]["seconds"].append(measured["seconds"])
                by_system[system]["peak"] = max(by_system[system]["peak"], measured["peak"])
    return by_system


def default_pythons() -> dict[str, str]:
    """Returns the interpreters of the environments that run_scripts/test_peers.sh makes."""
    root = os.path.dirname(os.path.dirname(FOLDER))
    pythons = {OURS: sys.executable}
    for system, folder in (("keras_hub", ".venv-peers"), ("transformers", ".venv-peers"),
                           ("model_garden", ".venv-official")):
        path = os.path.join(root, folder, "bin", "python")
        pythons[system] = path if os.path.exists(path) else sys.executable
    return pythons


def chosen_pythons(systems: Sequence[str], chosen: Sequence[str]) -> dict[str, str]:
    """Returns the interpreter of each of some systems that is installed.

    Args:
        chosen: items NAME=PATH for interpreters other than the default ones.

    Raises:
        InputError: an item has another form, or its interpreter lacks the system; names the flag
            --peer_python.
    """
    pythons = default_pythons()
    for text in chosen:
        name, _, path = text.partition("=")
        if name not in systems or not path:
            raise InputError(f"--peer_python: {text!r} must be NAME=PATH, with a name of "
                             f"{', '.join(systems)}.")
        if not has_system(path, name):
            raise InputError(f"--peer_python: {path} can't import {PACKAGES[name]}, which {name} "
                             "needs.")
        pythons[name] = path
    return {system: pythons[system] for system in systems
            if system == OURS or has_system(pythons[system], system)}
