"""Shared by comparisons: running programs, and looking at processes."""

import contextlib
import json
import os
import resource
import subprocess
import sys
import time
from typing import Any

from bert_tf import huge_pages
from bert_tf.errors import InputError
from bert_tf.options import defaults_of

OURS, PEER = "bert_tf", "transformers"
TICKS = os.sysconf("SC_CLK_TCK")        # units of processes' CPU time, a second


def process_fields(process: int) -> list[str]:
    """Returns the fields of /proc/PID/stat from the state on; OSError if the process has ended."""
    with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:
        return file.read().rpartition(")")[2].split()


def family(root: int) -> list[int]:
    """Lists a process and all that descend from it."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with contextlib.suppress(OSError):
                children.setdefault(int(process_fields(int(name))[1]), []).append(int(name))
    found = [root]
    for one in found:
        found += children.get(one, [])
    return found


def check_peer(peer_python):
    """Raises InputError if an interpreter lacks a package that the peer needs."""
    try:
        subprocess.run([peer_python, "-c", "import torch, transformers"],
                       capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise InputError(f"--peer_python: {peer_python} must be an interpreter with torch and "
                         f"transformers ({error}).") from error


def run_program(command, log, num_threads):
    """Runs a program on the CPU with its output in the file `log`; returns "seconds" and
    "cpu_seconds".

    Raises:
        InputError: the program failed; the message ends with the end of its output.
    """
    limits = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "TF_NUM_INTRAOP_THREADS",
                            "TF_NUM_INTEROP_THREADS"), str(num_threads))
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    with open(log, "w+", encoding="utf-8", errors="replace") as file:
        done = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, check=False,
                              env={**huge_pages.without(os.environ), **limits,
                                   "CUDA_VISIBLE_DEVICES": ""})
        if done.returncode:
            file.seek(0)
            raise InputError(f"{command[0]} failed, see {log}: {file.read()[-1500:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"seconds": time.monotonic() - start,
            "cpu_seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime}


def run_own_program(name, flags, log, num_threads):
    """Runs a script of run_scripts, or another module by its whole name, with a dict of flags, as
    `run_program`."""
    return run_program([sys.executable, "-m", name if "." in name else f"run_scripts.{name}",
                        *(f"--{flag}={value}" for flag, value in flags.items())], log, num_threads)


def run_peer_program(peer_python, function, arguments, log, num_threads):
    """Runs a function of transformers_peer.py, a name in its PROGRAMS, under the peer's
    interpreter, as `run_program`. The arguments must fit into JSON."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "transformers_peer.py")
    return run_program([peer_python, path, function, json.dumps(arguments)], log, num_threads)


def check_width(hidden_size: int) -> None:
    """Raises InputError if heads that are 64 wide don't fill it."""
    if hidden_size % 64 or hidden_size < 64:
        raise InputError(f"--hidden_size is {hidden_size}; it must be a multiple of 64.")


def take_little(job: Any) -> None:
    """Gives the flags of a job that have their defaults the values of its `little`."""
    defaults = defaults_of(type(job))
    vars(job).update({name: value for name, value in job.little.items()
                      if getattr(job, name) == defaults[name]})
