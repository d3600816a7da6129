"""The benchmark of long runs: samples of processes, fifths of a job, and its text."""

import re
import subprocess
import sys

import pytest

from benchmarks import long_runs
from bert_tf.errors import InputError

# Opens three files, starts a child and two threads, takes 50 MB, and waits.
GREEDY = """
import subprocess, sys, threading
files = [open(sys.executable, "rb") for _ in range(3)]
threads = [threading.Thread(target=threading.Event().wait, daemon=True) for _ in range(2)]
[thread.start() for thread in threads]
held = bytearray(b"x" * 50_000_000)
child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
print("ready", flush=True)
sys.stdin.read()
"""


def test_a_sample_counts_all_processes():
    idle = long_runs.sample(subprocess_of("import sys; print(flush=True); sys.stdin.read()"))
    found = long_runs.sample(subprocess_of(GREEDY))
    assert found["memory"] - idle["memory"] == pytest.approx(50, abs=25)
    # Three files and the pipe's end here; three or more streams of the child.
    assert found["files"] - idle["files"] >= 7 and found["threads"] - idle["threads"] == 3
    assert found["cpu_seconds"] > 0


@pytest.fixture(autouse=True)
def fixture_started():
    started.clear()
    yield
    for process in started:
        process.communicate()


started: list = []


def subprocess_of(code):
    """The number of a Python process that has said something and waits."""
    started.append(subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE,
                                    stdout=subprocess.PIPE))
    started[-1].stdout.readline()
    return started[-1].pid


def samples(memory=lambda at: 100.0, rate=lambda at: 10.0, count=100):
    """Samples of a job of 1,000 units."""
    found, cpu = [], 0.0
    for index in range(count + 1):
        at = index / count
        cpu += 1000 / count / rate(at)
        found.append({"progress": int(1000 * at), "memory": memory(at), "files": 5, "threads": 2,
                      "cpu_seconds": cpu})
    return found


def test_fifths_and_their_changes():
    flat = long_runs.changes(long_runs.fifths(samples()))
    assert flat == pytest.approx(dict.fromkeys(["memory", "files", "threads", "rate"], 0), abs=1e-6)
    # A leak of 100 MB over the whole job, and a rate that halves at its end.
    leak = long_runs.changes(long_runs.fifths(samples(
        lambda at: 100 + 100 * at, lambda at: 10 if at <= 0.8 else 5)))
    assert leak["memory"] == pytest.approx(100 * (190 / 130 - 1), abs=1)
    assert leak["rate"] == pytest.approx(-50, abs=3)
    # Processes that have ended are missing in the last sample.
    found = samples()
    found[-1]["cpu_seconds"] = 1.0
    assert long_runs.changes(long_runs.fifths(found))["rate"] == pytest.approx(0, abs=6)
    # What is taken while the job begins is no leak.
    begin = long_runs.fifths(samples(lambda at: 50 if at < 0.1 else 100))
    assert long_runs.changes(begin)["memory"] == 0 and begin["memory"][0] < 100


def test_a_table_says_what_is_not_flat():
    text, all_flat = long_runs.table({"job": samples(lambda at: 100 + 100 * at)})
    assert not all_flat and re.search(r"^\| job \| memory, MB .* \*\*not flat\*\* \|$", text, re.M)
    assert text.count("| flat |") == 3 and long_runs.table({"job": samples()})[1]


@pytest.mark.parametrize("found", [[], samples(count=4), [{"progress": 0}]])
def test_too_few_samples_are_refused(found):
    with pytest.raises(InputError, match="ended too early"):
        long_runs.fifths(found)


SLOW = """
import os, sys
print("step 1,000/3,000  loss 1.0", flush=True)
while not os.path.exists(sys.argv[1]):
    pass
"""


def test_progress_is_read_from_the_output(tmp_path, monkeypatch):
    take, log = long_runs.sample, tmp_path / "log"

    def take_and_end(process):
        found = take(process)
        if "step 1,000" in log.read_text():
            (tmp_path / "end").touch()
        return found

    monkeypatch.setattr(long_runs, "sample", take_and_end)
    found = long_runs.watch([sys.executable, "-c", SLOW, str(tmp_path / "end")], str(log), 0.01)
    assert found[-1]["progress"] == 1000 and {one["progress"] for one in found} <= {0, 1000}
    with pytest.raises(InputError, match="failed, see .*log: .*broken"):
        long_runs.watch([sys.executable, "-c", "raise SystemExit('broken')"], str(log), 0.01)


def test_the_text_has_all_documents_in_other_orders(tmp_path):
    (tmp_path / "in.txt").write_text("a\nb\n\nc\n\n\nd\n")
    job = long_runs.LongRunsFlags(output_dir=str(tmp_path), text_bytes=300, vocab_file="v",
                                  input_file=[str(tmp_path / "in.txt")])
    long_runs.write_text(job, str(tmp_path / "out.txt"))
    text = (tmp_path / "out.txt").read_text()
    assert 300 <= len(text.encode()) < 400
    documents = [tuple(line.split()[0] for line in each.splitlines())
                 for each in text.strip().split("\n\n")]
    passes = [documents[at:at + 3] for at in range(0, len(documents) - 2, 3)]
    assert all(sorted(one) == [("a", "b"), ("c",), ("d",)] for one in passes) and len(passes) > 3
    assert len({*map(tuple, passes)}) > 1 and re.search(r" [a-z]{9} \.$", text, re.M)


@pytest.mark.parametrize("name, first, last, is_flat", [
    ("files", 8, 8.9, True), ("files", 8, 9.1, False), ("threads", 30, 31.4, True),
    ("memory", 100, 90, True), ("memory", 100, 106, False)])
def test_what_is_flat(name, first, last, is_flat):
    found = [{**one, name: first + (last - first) * (one["progress"] >= 800)} for one in samples()]
    assert long_runs.table({"job": found})[1] == is_flat
