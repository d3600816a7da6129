"""Watches memory, open files, threads and rate of long jobs: data and training.

    bert-benchmark long-runs --input_file=text.txt --vocab_file=vocab.txt --output_dir=long

The data job makes records of --text_bytes of text: the documents of --input_file many times, in a
different order and with some new words in each pass. The training run takes --num_train_steps steps
of a tiny model on records of --input_file. Both are commands as users start them; a sample of all
their processes is taken from /proc every --seconds. A figure is flat if its mean over the last
fifth of the job is no worse than over the second fifth: memory, files and threads have not grown by
more than 5%, or by less than one file or thread, and the rate has not fallen by more than 10%.
Writes results.json, long_runs.md and long_runs.png. Run the same command again to resume.
"""

import contextlib
import dataclasses
import functools
import itertools
import os
import random
import re
import statistics
import string
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import ClassVar

from benchmarks.kept_comparison import KeptComparison
from benchmarks.programs import TICKS, family, process_fields
from bert_tf import flags
from bert_tf.errors import InputError
from bert_tf.files import (
    find_files,
    is_file,
    open_unpacked,
    remove_folder,
    write_aside,
    write_json,
)
from bert_tf.flags import REQUIRED, option
from bert_tf.tokenization import open_tokenizer

# Share of the lines that end with a word that no other line has: the tokenizers' memory of words is
# full after the first fifth of the job.
_NEW_WORDS = 0.5
# The progress in a line of the command's output.
_PROGRESS = re.compile(r"^(?:step )?([\d,]+)(?:/| of )[\d,]+(?:  loss| pieces)", re.M)
# The figures to draw and judge, and the growth (of the rate: fall) in percent that is still flat.
_FIGURES = {"memory": ("memory, MB", 5.0), "files": ("open files", 5.0),
            "threads": ("threads", 5.0), "rate": ("rate, % of its mean", 10.0)}
_COUNTS = ("files", "threads")      # one more or less does not matter


@dataclasses.dataclass(kw_only=True)
class LongRunsFlags(KeptComparison):
    """The lengths of the two jobs."""

    output_dir: str = option(REQUIRED, "The folder to write into.")
    input_file: list[str] = option(REQUIRED, "Text: one sentence per line, a blank line between "
                                   "documents.")
    vocab_file: str = option(REQUIRED, "The vocabulary.")
    text_bytes: int = option(1_000_000_000, "Bytes of text of the data job.", least=1)
    num_train_steps: int = option(20_000, "Steps of the training run.", least=1)
    train_batch_size: int = option(8, "Sequences of a batch.", least=1)
    max_seq_length: int = option(32, "Tokens of a sequence.", least=16)
    hidden_size: int = option(32, "Width of the model, which has two layers and two heads.",
                              least=2)
    num_workers: int = option(2, "Processes of the data job.", least=1)
    seconds: float = option(1.0, "Seconds between samples.", above=0)

    free: ClassVar = ("seconds",)


# Samples

def sample(root: int) -> dict[str, float]:
    """Returns "memory" in MB (without the pages of libraries, whose count depends on other
    processes), "files", "threads" and "cpu_seconds" of a process and all that descend from it."""
    found = {"memory": 0.0, "files": 0, "threads": 0, "cpu_seconds": 0.0}
    for process in family(root):
        with contextlib.suppress(OSError, IndexError):      # it ends meanwhile
            fields = process_fields(process)
            with open(f"/proc/{process}/smaps_rollup", encoding="utf-8") as file:
                found["memory"] += sum(
                    int(line.split()[1]) / 1e3 for line in file if line.startswith("Anonymous:"))
            found["files"] += len(os.listdir(f"/proc/{process}/fd"))
            found["threads"] += int(fields[17])
            found["cpu_seconds"] += sum(map(int, fields[11:15])) / TICKS
    return found


def watch(command: list[str], log: str, seconds: float) -> list[dict[str, float]]:
    """Runs a command, whose output becomes a file.

    Returns:
        A sample every `seconds`, which also has the "seconds" since the start, and the "progress"
        that the command has printed.

    Raises:
        InputError: the command failed.
    """
    found, start = [], time.monotonic()
    with open(log, "w+", encoding="utf-8", errors="replace") as file:
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT,
                                   env={**os.environ, "PYTHONUNBUFFERED": "1"})
        try:
            while process.poll() is None:
                now = sample(process.pid)
                with open(log, encoding="utf-8", errors="replace") as said:
                    steps = _PROGRESS.findall(said.read())
                if now["memory"]:       # it had not ended
                    found.append({**now, "seconds": time.monotonic() - start,
                                  "progress": int(steps[-1].replace(",", "")) if steps else 0})
                time.sleep(seconds)
        finally:
            process.kill()
            process.wait()
    if process.returncode:
        with open(log, encoding="utf-8", errors="replace") as file:
            raise InputError(f"{command[2]} failed, see {log}: {file.read()[-1500:]}")
    return found


def fifths(samples: list[dict[str, float]]) -> dict[str, list[float]]:
    """Returns the means of each figure over the fifths of a job, by progress; a rate is progress a
    CPU second.

    Raises:
        InputError: there are too few samples.
    """
    end = samples[-1]["progress"] if samples else 0
    marks = [next(index for index, one in enumerate(samples)
                  if one["progress"] >= max(1, part * end / 5)) for part in range(6 * bool(end))]
    parts = [samples[begin:stop + 1] for begin, stop in itertools.pairwise(marks)]
    if not parts or min(map(len, parts)) < 2:
        raise InputError("the job ended too early to compare its fifths; make it longer, or "
                         "--seconds shorter.")
    found = {name: [statistics.fmean(one[name] for one in part) for part in parts]
             for name in ("memory", "files", "threads")}
    # A process that has ended is not counted until its parent has waited for it.
    cpu = list(itertools.accumulate((one["cpu_seconds"] for one in samples), max))
    found["rate"] = [(samples[stop]["progress"] - samples[begin]["progress"])
                     / max(cpu[stop] - cpu[begin], 1 / TICKS)
                     for begin, stop in itertools.pairwise(marks)]
    return found


def changes(figures: dict[str, list[float]]) -> dict[str, float]:
    """Returns by how many percent the last fifth of each figure is above the second."""
    return {name: 100 * (means[4] / means[1] - 1) for name, means in figures.items()}


# Jobs

def write_text(job: LongRunsFlags, path: str) -> None:
    """Writes the documents again and again until there are enough bytes."""
    documents = list(_documents(job.input_file))
    drawing, written = random.Random(1), 0
    with write_aside(path) as file:
        while written < job.text_bytes:
            drawing.shuffle(documents)
            for lines in documents:
                text = "\n".join(line + _new_word(drawing) for line in lines) + "\n\n"
                written += len(text.encode())
                file.write(text)
                if written >= job.text_bytes:
                    break


def _documents(paths) -> Iterator[list[str]]:
    for path in paths:
        with open_unpacked(path) as file:
            for block in re.split(r"\n\s*\n", file.read().decode()):
                if block.strip():
                    yield block.strip().split("\n")


def _new_word(drawing):
    return "" if drawing.random() > _NEW_WORDS else (
        " " + "".join(drawing.choices(string.ascii_lowercase, k=9)) + " .")


def command(module: str, **values) -> list[str]:
    """Returns the command line of a program, from its flags."""
    return [sys.executable, "-m", module, *(f"--{name}={value}" for name, value in values.items())]


def make_records(job: LongRunsFlags, text: str, name: str) -> list[str]:
    """Returns the command that makes records of a text."""
    return command("data_prep.create_pretraining_data", input_file=text, vocab_file=job.vocab_file,
                   output_file=job.path(name, "records.tfrecord"), dupe_factor=1,
                   max_seq_length=job.max_seq_length, num_workers=job.num_workers,
                   max_predictions_per_seq=job.max_seq_length // 6)


def run_data_job(job: LongRunsFlags) -> list[dict[str, float]]:
    """Makes the text and its records; returns the samples."""
    if not is_file(job.path("text.txt")):
        write_text(job, job.path("text.txt"))
    remove_folder(job.path("data"))
    return watch(make_records(job, job.path("text.txt"), "data"), job.path("data.log"), job.seconds)


def run_training(job: LongRunsFlags) -> list[dict[str, float]]:
    """Makes the records of --input_file and trains on them; returns the samples."""
    remove_folder(job.path("training"))
    watch(make_records(job, ",".join(job.input_file), "training"), job.path("records.log"),
          job.seconds)
    write_json(job.path("training/config.json"), {
        "vocab_size": open_tokenizer(job.vocab_file).vocabulary.size, "num_hidden_layers": 2,
        "hidden_size": job.hidden_size, "num_attention_heads": 2,
        "intermediate_size": 4 * job.hidden_size, "max_position_embeddings": job.max_seq_length,
        "type_vocab_size": 2})
    return watch(command(
        "run_scripts.run_pretraining", input_file=job.path("training/records.tfrecord*"),
        bert_config_file=job.path("training/config.json"), output_dir=job.path("training/run"),
        do_train=True, num_train_steps=job.num_train_steps, max_seq_length=job.max_seq_length,
        num_warmup_steps=job.num_train_steps // 10, train_batch_size=job.train_batch_size,
        max_predictions_per_seq=job.max_seq_length // 6), job.path("training.log"), job.seconds)


# Report

JOBS = {"data job": run_data_job, "training run": run_training}


def measure(run: Callable[[LongRunsFlags], list], job: LongRunsFlags) -> list[dict[str, float]]:
    """Returns the samples of a job; InputError if they are too few to be compared."""
    samples = run(job)
    fifths(samples)
    return samples


def draw(path: str, samples: dict[str, list[dict[str, float]]]) -> None:
    """Draws each figure of each job over its progress, as PNG."""
    from bert_tf.analysis.pictures import picture
    with picture(path, len(samples), len(_FIGURES), (3.25, 2.6)) as (_, axes):
        for row, (name, found) in zip(axes, samples.items()):
            for axis, (key, (title, _)) in zip(row, _FIGURES.items()):
                if key == "rate":
                    rates = fifths(found)["rate"]
                    axis.bar(range(10, 100, 20), [100 * rate / statistics.fmean(rates)
                                                  for rate in rates], 18)
                else:
                    axis.plot([100 * one["progress"] / found[-1]["progress"] for one in found],
                              [one[key] for one in found], ".", markersize=2)
                axis.set_ylim(bottom=0)
                axis.set_title(f"{name}: {title}", fontsize=9)
                axis.set_xlabel("% of the job", fontsize=8)
                axis.grid(alpha=0.3)


def table(samples: dict[str, list[dict[str, float]]]) -> tuple[str, bool]:
    """Returns the figures as Markdown, and whether all are flat."""
    lines = ["| job | figure | first fifth | second | third | fourth | last | change | |",
             "|" + "---|" * 9]
    all_flat = True
    for name, found in samples.items():
        figures = fifths(found)
        for key, change in changes(figures).items():
            is_flat = (change >= -_FIGURES[key][1] if key == "rate" else
                       change <= _FIGURES[key][1] or
                       key in _COUNTS and figures[key][4] - figures[key][1] < 1)
            all_flat &= is_flat
            lines.append(f"| {name} | {_FIGURES[key][0].partition(', %')[0]} | " + " | ".join(
                f"{mean:,.4g}" for mean in figures[key]) + f" | {change:+.1f}% | "
                f"{'flat' if is_flat else '**not flat**'} |")
    return "\n".join(lines) + "\n", all_flat


def main(job: LongRunsFlags) -> None:
    """Runs the missing jobs, and prints and draws the figures of the samples."""
    job.check()
    find_files(job.input_file, "input_file")
    kept = job.open_results()
    samples = {name: kept.get(name, measure=functools.partial(measure, run, job))
               for name, run in JOBS.items()}
    draw(job.path("long_runs.png"), samples)
    text, all_flat = table(samples)
    with write_aside(job.path("long_runs.md")) as file:
        file.write(text)
    print(text, end="", flush=True)
    if not all_flat:
        raise InputError(f"a figure is not flat, see {job.path('long_runs.png')}.")


def run() -> None:
    flags.run(main, LongRunsFlags)


if __name__ == "__main__":
    run()
