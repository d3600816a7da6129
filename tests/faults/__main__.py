"""Disturbs commands as machines do; checks that running them again mends it.

    python -m tests.faults --output_dir=faults
    python -m tests.faults --output_dir=few --commands=run_pretraining --faults=SIGTERM --trials=1

Each cell is a fault, a command and a place: a disk, or a local S3 server (moto). The command works
on a tiny job, is disturbed, and is run again. A cell is "equal" if all files have the bits of an
undisturbed run, and "sentence" if the command ends with an error of one sentence. Anything else is
a defect: a traceback, a hang, other files, or damage that nobody reports. Moments are random: a
share of the CPU time, or when so many files have appeared. results.json keeps each trial; the same
command tries only the missing ones. The exit status is 1 if there is a defect.
"""

import argparse
import collections
import contextlib
import functools
import os
import random
import shutil
import sys
from unittest import mock

from bert_tf.kept import Kept
from tests.faults.cell import Cell
from tests.faults.commands import COMMANDS, Material
from tests.faults.kinds import FAULTS
from tests.faults.places import Place
from tests.faults.s3 import ENVIRONMENT, s3_server

GOOD = ("equal", "sentence")


def parse(arguments):
    """The flags; unknown names are refused."""
    def names(known):
        def choose(text):
            chosen = text.split(",")
            if unknown := {*chosen} - {*known}:
                raise argparse.ArgumentTypeError(f"{unknown}: choose from {', '.join(known)}")
            return chosen
        return choose

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--output_dir", required=True, type=os.path.abspath)
    parser.add_argument("--commands", type=names(COMMANDS), default=[*COMMANDS])
    parser.add_argument("--faults", type=names(FAULTS), default=[*FAULTS])
    parser.add_argument("--places", type=names(("disk", "S3")), default=["disk", "S3"])
    parser.add_argument("--trials", type=int, default=3, help="random moments to kill a command on "
                        "a disk; a third as many in a store and for signals, six times as many for "
                        "commands without TensorFlow")
    parser.add_argument("--limit", type=float, default=300.0,
                        help="seconds after which a command counts as hanging")
    parser.add_argument("--seed", type=int, default=1, help="of the moments and of the damage")
    return parser.parse_args(arguments)


def count(job, place, command, fault):
    """How often a cell is tried."""
    if not FAULTS[fault].is_random:
        return 1
    rare = place != "disk" or not FAULTS[fault].is_kill
    return -(-job.trials * COMMANDS[command].cheapness // (3 if rare else 1))


@contextlib.contextmanager
def opened(place, folder):
    """Gives a place to work in, whose root is always the same."""
    if place == "disk":
        yield Place(place, os.path.join(folder, "disk"), {})
        return
    with s3_server() as address:
        environment = {**ENVIRONMENT, "AWS_ENDPOINT_URL": address}
        with mock.patch.dict(os.environ, environment):
            yield Place(place, "s3://bucket/cell", environment)


def attempt(cell, fault, drawing):
    """The outcome of a trial."""
    if not cell.expected and (end := cell.measure()).kind != "done":
        return {"outcome": end.kind, "met": False, "ends": [list(end)]}
    return cell.try_fault(FAULTS[fault], drawing)


def main(job):
    """Tries the missing cells, prints a line for each trial, and returns the number of defects."""
    scratch = os.path.join(job.output_dir, "scratch")
    os.makedirs(scratch, exist_ok=True)
    kept = Kept(os.path.join(job.output_dir, "results.json"), {"seed": job.seed})
    material = Material(os.path.join(job.output_dir, "material"), job.limit)
    for name in job.places:
        with opened(name, job.output_dir) as place:
            for command in job.commands:
                cell = Cell(COMMANDS[command], place, material, scratch, job.limit)
                for fault, trial in [(each, trial) for each in job.faults
                                     if FAULTS[each].applies(cell)
                                     for trial in range(count(job, name, command, each))]:
                    key = f"{name}: {command}: {fault}: {trial}"
                    if kept.get("trials", key):
                        continue
                    one = kept.get("trials", key, measure=functools.partial(
                        attempt, cell, fault,
                        random.Random(f"{job.seed} {command} {fault} {trial}")))
                    said = "; ".join(": ".join(end)[-200:] for end in one["ends"])
                    print(f"{key}: {one['outcome']} ({said})", flush=True)
                    if one["outcome"] not in GOOD:
                        aside = os.path.join(job.output_dir, "failed", key.replace(": ", "-"))
                        shutil.copytree(scratch, aside.replace(" ", "_"), dirs_exist_ok=True)
    results = kept.get("trials") or {}
    kills = sum(FAULTS[key.split(": ")[2]].is_kill and one["met"] for key, one in results.items())
    outcomes = collections.Counter(one["outcome"] for one in results.values())
    print(f"{len(results)} trials, {kills} of them killed by kill -9 at a random moment: "
          + ", ".join(f"{number} {outcome}" for outcome, number in outcomes.items()), flush=True)
    return len(results) - sum(outcomes[outcome] for outcome in GOOD)


if __name__ == "__main__":
    sys.exit(main(parse(sys.argv[1:])) > 0)
