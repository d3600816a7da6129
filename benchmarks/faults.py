"""Disturbs commands as machines do; checks that running them again mends it.

    bert-benchmark faults --output_dir=faults

Each cell is a fault, a command and a place: a disk, or a local S3 server (moto). The command works
on a tiny job, is disturbed, and is run again. A cell is "equal" if all files have the bits of an
undisturbed run, and "sentence" if the command ends with an error of one sentence. Anything else is
a defect: a traceback, a hang, other files, or damage that nobody reports. Moments are random: a
share of the CPU time, or when so many files have appeared. Run the same command again to try only
the missing cells. Writes results.json and faults.md.
"""

import contextlib
import dataclasses
import os
import random
import shutil
from collections.abc import Iterator
from typing import Any, ClassVar
from unittest import mock

from benchmarks.faulting.cell import Cell
from benchmarks.faulting.commands import COMMANDS, Material, check_names
from benchmarks.faulting.kinds import FAULTS
from benchmarks.faulting.places import S3, Local
from benchmarks.faulting.store import ENVIRONMENT, s3_server
from benchmarks.kept_comparison import KeptComparison
from bert_tf import flags
from bert_tf.errors import InputError
from bert_tf.files import make_folder, write_aside
from bert_tf.flags import REQUIRED, option
from run_scripts.kept_results import KeptResults

_PLACES = ("disk", "S3")
# What --smoke tries, once each.
_SMOKE_COMMANDS = ("create_pretraining_data", "run_pretraining")
_SMOKE_FAULTS = ("kill -9 of the parent", "SIGTERM", "shard missing", "store refuses")


@dataclasses.dataclass(kw_only=True)
class FaultsFlags(KeptComparison):
    """The cells to try, and the number of trials."""

    output_dir: str = option(REQUIRED, "The folder to write into.")
    commands: list[str] = option([], "Commands to disturb; default: all.")
    faults: list[str] = option([], "Faults to try; default: all.")
    places: list[str] = option(list(_PLACES), "disk, S3 or both.", choices=_PLACES)
    trials: int = option(3, "Number of random moments to kill a command on a disk; a third as many "
                         "in a store and for signals, six times as many for commands without "
                         "TensorFlow.", least=1)
    limit: float = option(300.0, "Seconds after which a command counts as hanging.", above=0)
    random_seed: int = option(1, "Seed of the moments and of the damage.")
    smoke: bool = option(False, "Try a few cells once; this takes about two minutes.")

    free: ClassVar = ("commands", "faults", "places", "trials", "limit", "smoke")

    def chosen(self) -> tuple[list[str], list[str]]:
        """Returns the names of commands and of faults; InputError for unknown ones."""
        return (check_names(self.commands or list(_SMOKE_COMMANDS if self.smoke else COMMANDS),
                            COMMANDS, "commands"),
                check_names(self.faults or list(_SMOKE_FAULTS if self.smoke else FAULTS),
                            FAULTS, "faults"))

    def count(self, place: str, command: str, fault: str) -> int:
        """Returns how often a cell is tried."""
        if self.smoke or not FAULTS[fault].is_random:
            return 1
        rare = place != "disk" or not FAULTS[fault].is_kill
        return -(-self.trials * COMMANDS[command].cheapness // (3 if rare else 1))


@contextlib.contextmanager
def opened(place: str, folder: str) -> Iterator[Local | S3]:
    """Gives a place to work in, whose root is always the same."""
    if place == "disk":
        yield Local(os.path.join(folder, "disk"))
        return
    with s3_server() as address:
        environment = {**ENVIRONMENT, "AWS_ENDPOINT_URL": address}
        with mock.patch.dict(os.environ, environment):
            yield S3("s3://bucket/cell", environment)


def try_cells(job: FaultsFlags, kept: KeptResults, place: Local | S3,
              material: Material) -> None:
    """Tries all cells of a place that are missing, and prints a line for each trial."""
    names, faults = job.chosen()
    for name in names:
        cell = Cell(COMMANDS[name], place, material, job.path("scratch"), job.limit)
        for fault in faults:
            why = FAULTS[fault].lacks(cell)
            for trial in range(1 if why else job.count(place.name, name, fault)):
                def attempt(name=name, fault=fault, trial=trial, cell=cell, why=why):
                    if why:
                        return {"outcome": "does not apply", "why": why}
                    if not cell.expected and (end := cell.measure()).kind != "done":
                        return {"outcome": end.kind, "met": False, "ends": [list(end)]}
                    drawing = random.Random(f"{job.random_seed} {name} {fault} {trial}")
                    try:
                        found = cell.try_fault(FAULTS[fault], drawing)
                    except PermissionError as error:
                        return {"outcome": "does not apply", "why": str(error)}
                    if found["outcome"] not in ("equal", "sentence"):
                        aside = job.path("failed", f"{place.name}-{name}-{fault}-{trial}")
                        shutil.copytree(job.path("scratch"), aside.replace(" ", "_"),
                                        dirs_exist_ok=True)
                    said = "; ".join(": ".join(end)[-200:] for end in found["ends"])
                    print(f"{place.name}: {name}: {fault}: {found['outcome']} ({said})", flush=True)
                    return found
                kept.get("cells", place.name, name, fault, str(trial), measure=attempt)


# Report

def _summary(trials: dict[str, dict[str, Any]]) -> str:
    """One field of the table."""
    if not trials:
        return ""
    outcomes = [one["outcome"] for one in trials.values()]
    if outcomes[0] == "does not apply":
        return "–"
    said = [f"{outcomes.count(each)} {each}" if len(outcomes) > 1 else each
            for each in dict.fromkeys(sorted(outcomes))]
    return ", ".join(f"**{each}**" if not each.endswith(("equal", "sentence")) else each
                     for each in said)


def tables(cells: dict[str, dict]) -> Iterator[str]:
    """Yields the lines of the report."""
    for place, commands in cells.items():
        yield f"\n### {place}\n"
        yield "| fault | " + " | ".join(commands) + " |"
        yield "|" + "---|" * (len(commands) + 1)
        for fault in FAULTS:
            if any(fault in found for found in commands.values()):
                yield f"| {fault} | " + " | ".join(
                    _summary(found.get(fault, {})) for found in commands.values()) + " |"
    reasons: dict[str, dict] = {}
    sentences: dict[str, str] = {}
    for place, name, fault, trial in trials_of(cells):
        if trial["outcome"] == "does not apply":
            reasons.setdefault(f"{fault}: {trial['why']}", {})[name] = place
        for kind, said in trial.get("ends", ()):
            if kind == "sentence" and fault not in sentences:
                sentences[fault] = f"{name}, {place}: `{said}`"
    yield "\n### What does not apply\n"
    yield from (f"- {reason} ({', '.join(names)})" for reason, names in reasons.items())
    yield "\n### One sentence of each fault\n"
    yield from (f"- {fault}: {said}" for fault, said in sentences.items())


def trials_of(cells: dict[str, dict]) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Yields place, command, fault and result of each trial."""
    for place, commands in cells.items():
        for name, faults in commands.items():
            for fault, trials in faults.items():
                for trial in trials.values():
                    yield place, name, fault, trial


def main(job: FaultsFlags) -> None:
    """Tries the missing faults, writes the report and prints the defects."""
    job.check()
    job.chosen()
    if not set(job.places) <= {*_PLACES}:
        raise InputError(f"--places: choose from {', '.join(_PLACES)}.")
    job.output_dir = os.path.abspath(job.output_dir)
    kept = job.open_results()
    make_folder(job.path("scratch"), "output_dir")
    material = Material(job.path("material"), job.limit)
    for name in job.places:
        with opened(name, job.output_dir) as place:
            try_cells(job, kept, place, material)
    report(job, kept)


def report(job: FaultsFlags, kept: KeptResults) -> None:
    """Writes faults.md and prints the sums; InputError if there are defects."""
    cells = kept.get("cells", measure=dict)
    found = [trial for trial in trials_of(cells) if trial[3]["outcome"] != "does not apply"]
    kills = sum(FAULTS[fault].is_kill and trial["met"] for _, _, fault, trial in found)
    counts = {outcome: sum(trial["outcome"] == outcome for *_, trial in found)
              for outcome in sorted({trial["outcome"] for *_, trial in found})}
    total = (f"{len(found)} trials, {kills} of them killed by kill -9 at a random moment: "
             + ", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    with write_aside(job.path("faults.md")) as file:
        file.write("\n".join([total, *tables(cells)]) + "\n")
    print(total, flush=True)
    if defects := len(found) - counts.get("equal", 0) - counts.get("sentence", 0):
        raise InputError(f"{defects} trials show defects, see {job.path('faults.md')} and "
                         f"{job.path('failed')}.")


def run() -> None:
    flags.run(main, FaultsFlags)


if __name__ == "__main__":
    run()
