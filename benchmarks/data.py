"""Compares CPU seconds of bert-create-pretraining-data with tf-models-official.

Both run as programs of one process on the same text, with the same vocabulary and seed. The time
that a program needs before it starts work (imports) is measured on one line of text and shown
separately. The peer needs tf-models-official, which may be in another environment (--peer_python).

Example:
    bert-benchmark data --input_file=text.txt --vocab_file=vocab.txt
"""

import dataclasses
import os
import resource
import subprocess
import sys
import tempfile

from bert_tf.errors import InputError
from bert_tf.flags import REQUIRED, option

OURS = "data_prep.create_pretraining_data"
PEER = "official.nlp.data.create_pretraining_data"


@dataclasses.dataclass
class DataBenchmarkFlags:
    """Text to measure on, and the peer."""

    input_file: str = option(REQUIRED, "Text, one sentence per line, a blank line between "
        "documents.")
    vocab_file: str = option(REQUIRED, "The WordPiece vocabulary.")
    dupe_factors: list[str] = option(["1", "10"], "The values of --dupe_factor to measure.")
    peer_python: str = option(sys.executable, "The interpreter that has tf-models-official.")
    skip_peer: bool = option(False, "Measure only bert-create-pretraining-data.")


def _measure(python, module, arguments):
    """(CPU seconds, peak memory in MB) of a run of a program."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-c",
               "import resource, subprocess, sys\n"
               "code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL,"
               " stderr=subprocess.PIPE)\n"
               "sys.stderr.buffer.write(code.stderr[-2000:] if code.returncode else b'')\n"
               "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)\n"
               "sys.exit(code.returncode)",
               python, "-m", module, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InputError(f"{module} failed under {python}: {done.stderr[-1500:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
            float(done.stdout.split()[-1]))


def main(job: DataBenchmarkFlags) -> None:
    """Prints a line for each program and dupe factor, and the ratios."""
    megabytes = os.path.getsize(job.input_file) / 1e6
    programs = [("bert_tf", sys.executable, OURS, ["--num_workers=1"])]
    if not job.skip_peer:
        programs.append(("tf-models-official", job.peer_python, PEER, []))
    print(f"{job.input_file}: {megabytes:.1f} MB, sequences of 128, CPU seconds a MB")
    with tempfile.TemporaryDirectory() as folder:
        one_line = os.path.join(folder, "one_line.txt")
        with open(one_line, "w", encoding="utf-8") as file:
            file.write("One line.\n\nAnother document.\n")
        for dupe_factor in job.dupe_factors:
            seconds = {}
            for name, python, module, extra in programs:
                arguments = [f"--vocab_file={job.vocab_file}", f"--dupe_factor={dupe_factor}",
                             "--max_seq_length=128", "--max_predictions_per_seq=20",
                             "--random_seed=12345", *extra]
                (start, _), (total, memory) = (
                    _measure(python, module, [
                        f"--input_file={text}",
                        f"--output_file={folder}/{name}{os.path.basename(text)}.tfrecord",
                        *arguments])
                    for text in (one_line, job.input_file))
                seconds[name] = (total - start, total)
                print(f"  dupe_factor {dupe_factor:>3}  {name:<20}"
                      f" work {(total - start) / megabytes:6.3f}"
                      f"  with start-up {total / megabytes:6.3f}"
                      f"  peak memory {memory:5.0f} MB", flush=True)
            if not job.skip_peer:
                ours, peer = seconds["bert_tf"], seconds["tf-models-official"]
                print(f"  dupe_factor {dupe_factor:>3}  ratio: work {peer[0] / ours[0]:.1f}, "
                      f"with start-up {peer[1] / ours[1]:.1f}", flush=True)
