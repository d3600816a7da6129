"""One command in one place, disturbed once: its files, its processes, and the expected outcome."""

import fnmatch
import json
import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from typing import Any

from tests.faults.commands import Command, Material
from tests.faults.places import comparable, differences
from tests.faults.processes import End, Running
from tests.processes import free_addresses

_PAGE = 4096        # files take whole pages of a small disk


class Cell:
    """A command in a place. `scratch` is a local folder for logs and copies; a command that takes
    `limit` seconds hangs. `expected` are the files of an undisturbed run, see `measure`."""

    def __init__(self, command: Command, place: Any, material: Material, scratch: str,
                 limit: float) -> None:
        self.command, self.place, self.limit = command, place, limit
        self._material, self._scratch = material, scratch
        self.expected: dict[str, object] = {}
        self._cpu, self._names, self.output_bytes = 0.0, 1, 1
        self.last: tuple[list[End], str] | None = None

    # Files

    def fill(self) -> None:
        """Clears the place, and puts the command's inputs there."""
        self.place.clear()
        for name in self.command.inputs:
            self.place.put(self._material.path(name), f"in/{name}")
        for part in ("staged", "tmp"):
            shutil.rmtree(os.path.join(self._scratch, part), ignore_errors=True)
            os.makedirs(os.path.join(self._scratch, part))

    def pick(self, start: str, drawing: random.Random) -> str:
        """One of the files whose names begin so: the last checkpoint, any of others."""
        folder, _, rest = start.replace("IN/", "in/").replace("OUT/", "out/").partition("/")
        names = sorted(name for name in self.place.names(folder) if name.startswith(rest))
        return f"{folder}/{names[-1] if 'checkpoint' in rest else drawing.choice(names)}"

    def material(self, pattern: str) -> bytes:
        folder, _, rest = pattern.partition("/")
        path = self._material.path(folder)
        (name, *_) = fnmatch.filter(sorted(os.listdir(path)), rest)
        with open(os.path.join(path, name), "rb") as file:
            return file.read()

    def input_bytes(self) -> int:
        """The room on a disk that the command's inputs take."""
        return sum(-(-len(content) // _PAGE) * _PAGE for content in self.place.read("in").values())

    def differs(self) -> str:
        """Names the files that differ from an undisturbed run's; "" without any."""
        found = differences(comparable(self.place.read("out")), self.expected)
        return ", ".join(found[:4]) + (f" and {len(found) - 4} more" if found[4:] else "")

    # Processes

    def start(self, log: str = "first.log", only: list[int] | None = None,
              cluster_timeout: float | None = None, **environment) -> list[Running]:
        common = {**self.place.environment, "TMPDIR": os.path.join(self._scratch, "tmp"),
                  **environment}
        folders = {"IN": f"{self.place.root}/in", "OUT": f"{self.place.root}/out"}
        changes = {} if cluster_timeout is None else {"cluster_timeout": cluster_timeout}
        hosts = free_addresses(self.command.workers)
        return [self.command.start(folders, os.path.join(self._scratch, f"{worker}-{log}"), {
            **common, "BERT_TF_STAGE_FOLDER": os.path.join(self._scratch, "staged", str(worker)),
            **({} if len(hosts) == 1 else {"TF_CONFIG": json.dumps({
                "cluster": {"worker": hosts}, "task": {"type": "worker", "index": worker}})})},
            **changes) for worker in only or range(self.command.workers)]

    def ends(self, running: list[Running]) -> list[End]:
        deadline = time.monotonic() + self.limit
        return [one.end(max(0.1, deadline - time.monotonic())) for one in running]

    def do_half(self) -> list[End]:
        """Kills the command as soon as half of its work is done."""
        (running,) = self.start()
        if running.wait_until(lambda: self.command.half in self.place.names("out"), self.limit):
            running.send(signal.SIGKILL, "group")
        return self.ends([running])

    def measure(self) -> End:
        """Runs the command undisturbed, and keeps its files and its CPU time."""
        self.fill()
        running, cpu, names = self.start(), 0.0, set()

        def watch():
            nonlocal cpu
            cpu = max(cpu, running[0].cpu_seconds())
            names.update(self._local_names())
            return False

        running[0].wait_until(watch, self.limit)
        ends = self.ends(running)
        self._cpu, self._names = cpu, max(1, len(names))
        files = self.place.read("out")
        self.expected, self.output_bytes = comparable(files), sum(map(len, files.values()))
        return next((end for end in ends if end.kind != "done"), ends[0])

    def _local_names(self):
        """Names of files on this machine: output, and files about to be sent to a store."""
        found = self.place.names("out") if self.place.name == "disk" else set()
        for base, _, names in os.walk(os.path.join(self._scratch, "staged")):
            found |= {os.path.join(base, name) for name in names}
        return found

    def moment(self, running: Running, drawing: random.Random) -> Callable[[], bool]:
        """Returns a function that says whether a random moment has come: after a share of the CPU
        time, or when so many names of files have appeared."""
        if drawing.random() < 0.5:
            cpu = drawing.uniform(0, 1.02) * self._cpu
            return lambda: running.cpu_seconds() >= cpu
        count, seen = drawing.randint(1, self._names), set()

        def has_come():
            seen.update(self._local_names())
            return len(seen) >= count
        return has_come

    # Outcomes

    def finish(self) -> None:
        """Gives the command again within a disk that will go; see `try_fault`."""
        self.last = self.ends(self.start()), self.differs()

    def try_fault(self, fault, drawing: random.Random) -> dict[str, Any]:
        """Disturbs the command, gives it again, and returns the "outcome": "equal", "sentence" or a
        defect; the "ends" of all commands; and whether the fault "met" the command."""
        self.last = None
        self.fill()
        disturbed, met = fault.disturb(self, drawing)
        again, differs = self.last or (self.ends(self.start()), self.differs())
        bad = [end for end in [*disturbed, *again] if end.kind in ("traceback", "hang", "silent")]
        if any(end.kind == "killed" for end in again):
            bad.append(End("killed", "the same command, given again, was killed"))
        outcome = (bad[0].kind if bad else "equal" if not differs else
                   "sentence" if any(end.kind == "sentence" for end in again) else "different")
        return {"outcome": outcome, "met": met, "differs": differs,
                "ends": [list(end) for end in [*disturbed, *again]]}
