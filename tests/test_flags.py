"""From a dataclass to flags and back, and what a program says of wrong ones."""

import dataclasses
import subprocess
import sys

import pytest
from absl import flags as absl_flags

from bert_tf import flags
from bert_tf.errors import InputError
from bert_tf.flags import REQUIRED, option


@dataclasses.dataclass
class Job:
    """One flag of each kind."""

    name: str = option(REQUIRED, "A name.")
    files: list[str] = option(REQUIRED, "Some files.")
    many: list[str] = option(["a", "b"], "More.")
    number: int = option(3, "A number.")
    maybe: int | None = option(None, "A number or none.")
    rate: float = option(0.5, "A rate.", alias="speed")
    fast: bool = option(False, "Whether to be fast.")
    kind: str = option("x", "Which kind.", choices=("x", "y"))
    derived: str = "no flag"


def parse(*arguments):
    """The `Job` of a command line."""
    values = absl_flags.FlagValues()
    flags.define(Job, values)
    values(["program", *arguments])
    return flags.read(Job, values)


def test_defaults():
    assert parse("--name=n", "--files=f") == Job("n", ["f"])


def test_every_kind_is_read():
    assert parse("--name=n", "--files=a,b", "--many=", "--number=-4", "--maybe=7", "--speed=1e-3",
                 "--fast", "--kind=y") == Job("n", ["a", "b"], [], -4, 7, 1e-3, True, "y")
    assert parse("--name", "n", "--files=f", "--rate=2", "--nofast", "--number", "5") == Job(
        "n", ["f"], number=5, rate=2.0)
    assert parse("--name=n", "--files=f", "--fast=True").fast is True


@pytest.mark.parametrize("arguments, missing", [
    (["--files=f"], "--name must be given: A name."),
    (["--name=n"], "--files must be given"), (["--name=", "--files=f"], "--name must be given")])
def test_required_flags(arguments, missing):
    with pytest.raises(InputError, match=missing):
        parse(*arguments)


def test_a_list_is_not_shared_between_jobs():
    parse("--name=n", "--files=f").many.append("c")
    assert parse("--name=n", "--files=f").many == ["a", "b"]


def test_help_shows_every_flag():
    text = flags.help_text("What it does.", [Job])
    assert text.startswith("What it does.\n")
    for line in ("--name=str   (required)", "--files=a,b,...   (required)",
                 "--number=int   (default: 3)", "--maybe=int", "A number or none.",
                 "--rate=float   (default: 0.5; also --speed)", "--[no]fast   (default: False)",
                 "--kind={x,y}   (default: x)"):
        assert line in text
    assert "derived" not in text
    assert text.index("--files") < text.index("--many")     # required ones first


# Defaults that depend on another flag

def by_kind(given):
    """Defaults of --kind=y."""
    return ("kind y", {"number": 8, "rate": 0.1, "many": ["c"], "elsewhere": 3}) if (
        given.get("kind") == "y") else ("kind x", {})


def parse_by_kind(*arguments):
    """The `Job` of a command line, and what was taken from `by_kind`."""
    values = absl_flags.FlagValues()
    flags.define(Job, values)
    values(["program", "--name=n", "--files=f", *arguments])
    taken = flags.take_defaults(by_kind, [Job], values)
    return flags.read(Job, values), taken


@pytest.mark.parametrize("arguments, changes, taken", [
    ([], {}, {}),
    (["--kind=y"], {"number": 8, "rate": 0.1, "many": ["c"]}, ["number", "rate", "many"]),
    # What is given comes first: the dataclass's own default too, and under an alias.
    (["--kind=y", "--number=3", "--speed=0.5"], {"many": ["c"]}, ["many"]),
    (["--kind=y", "--many=", "--rate=2", "--number", "0"],
     {"number": 0, "rate": 2.0, "many": []}, []),
])
def test_given_comes_before_other_defaults_and_these_before_the_dataclass(
        arguments, changes, taken):
    kind = "y" if arguments else "x"
    job, (source, found) = parse_by_kind(*arguments)
    assert job == dataclasses.replace(Job("n", ["f"]), kind=kind, **changes)
    assert (source, list(found)) == (f"kind {kind}", list(taken))


PROGRAM = '''"""A program."""
import dataclasses, os, signal
from bert_tf import errors, flags

@dataclasses.dataclass
class Job:
    """Its flags."""
    number: int = flags.option(flags.REQUIRED, "A number.")
    kind: str = flags.option("x", "Which.", choices=("x", "y"))
    file: str = dataclasses.field(default="", repr=False,
                                  metadata=flags.option("", "A file.").metadata)

def main(job):
    if job.number == 13:
        raise errors.InputError("13 is unlucky; take another number.")
    if job.number == 14:
        raise KeyboardInterrupt
    if job.number == 16:
        os.kill(os.getpid(), signal.SIGTERM)
    if job.number == 15:
        raise OSError(28, "No space left on device")
    print(job)

def defaults(given):
    return "kind y", {"number": 8} if given.get("kind") == "y" else {}

flags.run(main, Job, defaults=defaults)
'''


@pytest.fixture(name="run", scope="module")
def fixture_run(tmp_path_factory):
    """Runs the program above; returns (status, stdout, stderr)."""
    folder = tmp_path_factory.mktemp("program")
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
    (folder / "flags.txt").write_text("--number=8\n--kind=y\n", encoding="utf-8")

    def run(*arguments):
        done = subprocess.run([sys.executable, "program.py", *arguments], cwd=folder,
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    return run


@pytest.mark.parametrize("arguments, status, message", [
    (["--number=13"], 1, "error: 13 is unlucky; take another number.\n"),
    ([], 1, "error: --number must be given: A number.\n"),
    (["--numbr=1"], 1, "error: Unknown command line flag 'numbr'. Did you mean: number; --help "
                       "lists the flags.\n"),
    (["--number=one"], 1, "--number=one"),
    (["--number=1", "--kind=z"], 1, "should be one of <x|y>"),
    (["--number=1", "more"], 1, "error: unexpected argument 'more'"),
    (["--flagfile=absent.txt"], 1, "absent.txt"),
    (["--number=14"], 130, "interrupted\n"),
    (["--number=16"], 143, "terminated\n"),
    (["--number=1", "--kind=x", "--file=a\udcff"], 1,
     "error: --file: 'a\\udcff' holds bytes that are not"),
    (["--number=1", "--file=gs://b/x"], 1, "error: --file: gs://b/x is not on this machine's"),
    (["--number=15"], 1, "error: [Errno 28] No space left on device: make room and start"),
])
def test_what_is_wrong_is_said_in_one_line(run, arguments, status, message):
    found, out, err = run(*arguments)
    assert (found, out) == (status, "") and message in err and err.count("\n") == 1, err


def test_flags_come_from_a_file_too(run):
    assert run("--flagfile=flags.txt", "--kind=x") == (0, "Job(number=8, kind='x')\n", "")


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help(run, flag):
    status, out, err = run(flag, "--number=x")
    assert status == 0 and not err and out.startswith("A program.\n") and "--kind={x,y}" in out


def test_defaults_of_another_flag_are_printed_and_shown_by_help(run):
    assert run("--kind=y") == (
        0, "defaults from kind y: --number=8\nJob(number=8, kind='y')\n", "")
    assert run("--kind=y", "--number=2") == (0, "Job(number=2, kind='y')\n", "")
    assert "--number=int   (default: 8, from kind y)" in run("--kind=y", "--help")[1]
    assert "--number=int   (required)" in run("--help")[1]
