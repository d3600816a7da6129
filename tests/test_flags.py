"""From a dataclass to flags and back, and what a program says of wrong ones."""

import contextlib
import dataclasses
import os
import subprocess
import sys

import pytest
from absl import flags as absl_flags

from bert_tf import flags
from bert_tf.errors import InputError, nearest, nearest_flag
from bert_tf.flags import REQUIRED, CommandLine, only, option, parsing, without
from bert_tf.flags.parsing import read


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


def parse(*arguments, kind=Job, **functions):
    values = absl_flags.FlagValues()
    line = CommandLine.open(["program", *arguments], [kind], **functions)
    line.parse(values)
    return read(kind, values)


@pytest.mark.parametrize("wrong, meant", [
    ("adamv", "adamw"), ("Radan", "radam"), ("lam", "lamb"), ("zebra", "")])
def test_of_equally_similar_names_the_one_with_the_same_beginning_is_meant(wrong, meant):
    assert nearest(wrong, ["adamw", "radam", "lamb"]) == meant


@pytest.mark.parametrize("wrong, meant", [
    ("batch_size", "train_batch_size"), ("epochs", "num_train_epochs"), ("train", "do_train"),
    ("steps", "num_train_steps"), ("seed", "random_seed"), ("lr", ""),
    ("save_steps", "save_checkpoints_steps"), ("output", "output_dir"), ("tain_file", "train_file"),
    ("test_file", ""), ("adv_steps", "")])
def test_the_short_names_of_other_libraries_mean_the_flags_that_hold_their_words(wrong, meant):
    assert nearest_flag(wrong, [
        "eval_batch_size", "train_batch_size", "grid_num_train_epochs", "num_train_epochs",
        "do_train", "train_file", "eval_steps", "num_train_steps", "train_fraction_seed",
        "random_seed", "adv_lr", "save_checkpoints_steps", "output_dir"], 0.65) == meant


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


@pytest.mark.parametrize("arguments, is_refused", [
    (["--output_dir="], True), (["--input_file=a,,b"], True), (["--input_file=,"], True),
    (["--input_file=", "--vocab_file="], False)])
def test_empty_names_of_files_are_refused(arguments, is_refused):
    @dataclasses.dataclass
    class Paths:
        """Flags of files."""

        output_dir: str = option("here", "A folder.")
        input_file: list[str] = option(["f"], "Files.")
        vocab_file: str = option("", "A file, or none.")

    with pytest.raises(InputError, match=f"{arguments[0].partition('=')[0]}: the name of a file or "
                       "folder is empty") if is_refused else contextlib.nullcontext():
        assert parse(*arguments, kind=Paths) == Paths("here", [], "")


def test_a_list_is_not_shared_between_jobs():
    parse("--name=n", "--files=f").many.append("c")
    assert parse("--name=n", "--files=f").many == ["a", "b"]


def test_help_shows_every_flag():
    text = flags.help_text("What it does.", CommandLine.open(["program"], [Job]))
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
    return ("kind y", {"number": 8, "rate": 0.1, "many": ["c"], "elsewhere": 3}) if (
        given.get("kind") == "y") else ("kind x", {})


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
    arguments = ["--name=n", "--files=f", *arguments]
    assert parse(*arguments, defaults=by_kind) == dataclasses.replace(
        Job("n", ["f"]), kind=kind, **changes)
    line = CommandLine.open(["program", *arguments], [Job], by_kind)
    assert (line.source, list(line.defaults)) == (f"kind {kind}", list(taken))


PROGRAM = '''"""A program."""
import dataclasses, logging, os, signal
from bert_tf import errors, files, flags

@dataclasses.dataclass
class Wings:
    """Flags of --kind=y."""
    span: float = flags.option(1.0, "How wide.", least=0)

@dataclasses.dataclass
class Job:
    """Its flags."""
    number: int = flags.option(flags.REQUIRED, "A number.", least=0)
    kind: str = flags.option("x", "Which.", choices=("x", "y", "zebra"))
    deep: int = flags.only("kind", "zebra")(0, "How deep.")
    fast: bool = flags.option(False, "Whether to be fast.", rare=True)
    words: list[str] = flags.option([], "Some words.", rare=True)
    file: str = dataclasses.field(default="", repr=False,
                                  metadata=flags.option("", "A file.").metadata)

def main(job, *further):
    if job.number == 19:
        print("before the error")
        raise errors.InputError("19 is no good.")
    if job.number == 13:
        raise errors.InputError("13 is unlucky; take another number.")
    if job.number == 14:
        raise KeyboardInterrupt
    if job.number == 16:
        os.kill(os.getpid(), signal.SIGTERM)
    if job.number == 18:
        errors.explain_with(lambda error: errors.InputError("a known one; mend it.") if isinstance(
            error, ZeroDivisionError) else None)
        1 / 0
    if job.number == 15:
        raise OSError(28, "No space left on device")
    if job.number == 21:
        raise OSError(27, "File too large")
    if job.number == 20:
        logging.getLogger("library").info("I looked.")
        logging.getLogger("library").warning("I found nothing.")
    if job.number == 22:
        files.read_json(job.file)
    if job.number == 17:
        flags.keep(dataclasses.replace(job), "absent")
        flags.keep(job, job.file)
    print(job.number, job.kind, *job.words)

def defaults(given):
    return "kind y", {"number": 8} if given.get("kind") == "y" else {}

flags.run(main, Job, defaults=defaults,
          adds=lambda given: [Wings] if given.get("kind") == "y" else [])
'''


@pytest.fixture(name="run", scope="module")
def fixture_run(tmp_path_factory):
    """Runs the program above; returns (status, stdout, stderr)."""
    folder = tmp_path_factory.mktemp("program")
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
    (folder / "flags.txt").write_text("--number=8\n--kind=y\n", encoding="utf-8")
    (folder / "latin.txt").write_text("--number=8\n--kind=\u00fc\n", encoding="latin-1")
    (folder / "names_latin.txt").write_text("--flagfile=latin.txt\n", encoding="utf-8")
    (folder / "marked.txt").write_text("--kind=x\n\n// more\n--flagfile=more.txt\n",
                                       encoding="utf-8-sig")
    (folder / "more.txt").write_text("# more\n--number=8\n--flagfile=marked.txt\n",
                                     encoding="utf-8")

    def run(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE):
        environment = {name: value for name, value in os.environ.items()
                       if name != "PYTHONUNBUFFERED"}
        done = subprocess.run([sys.executable, "program.py", *arguments], cwd=folder, stdout=stdout,
                              stderr=stderr, text=True, check=False, env=environment)
        return done.returncode, done.stdout, done.stderr

    return run


def test_an_error_follows_the_output_before_it(run):
    assert run("--number=19", stderr=subprocess.STDOUT)[1] == (
        "before the error\nerror: 19 is no good.\n")


@pytest.mark.parametrize("arguments, status, message", [
    (["--number=13"], 1, "error: 13 is unlucky; take another number.\n"),
    ([], 1, "error: --number must be given: A number.\n"),
    (["--numbr=1"], 1, "error: there is no flag --numbr; did you mean --number? --helpfull lists "
                       "all.\n"),
    (["--wrong=1"], 1, "error: there is no flag --wrong; --number must be given; --helpfull "
                       "lists all.\n"),
    (["--wrong=1", "--number=2"], 1, "error: there is no flag --wrong; --helpfull lists all.\n"),
    (["--nofaast"], 1, "did you mean --fast?"),
    (["--config_file=x", "--number=2"], 1,
     "error: there is no flag --config_file; --helpfull lists all.\n"),
    (["--number=1e5"], 1, "error: flag --number=1e5: it must be a whole number; --help lists"),
    (["--number=1", "--fast=yes"], 1, "error: flag --fast=yes: it must be true or false; --help"),
    (["--number=1", "--kind=y", "--span=a"], 1, "error: flag --span=a: it must be a number; --h"),
    (["--number=1", "--kind=z"], 1, "--kind=z: choose from x, y, zebra;"),
    (["--number=1", "--kind=zebr"], 1, "did you mean zebra? The choices are x, y, zebra;"),
    (["--number=-1"], 1, "error: --number is -1; it must be at least 0.\n"),
    (["--number=1", "--deep=2"], 1,
     "error: there is no --deep with --kind=x; it is for --kind=zebra.\n"),
    (["--number=1", "--span", "2"], 1,
     "error: there is no --span with --kind=x; it is for --kind=y.\n"),
    (["--number=1", "--kind=y", "--span=-1"], 1, "error: --span is -1.0; it must be at least 0"),
    (["--number=1", "more"], 1, "error: unexpected argument 'more'"),
    (["--flagfile=absent.txt"], 1, "error: --flagfile: there is no file absent.txt; check"),
    (["--flagfile"], 1, "error: --flagfile: there is no file ''; check the name.\n"),
    (["--flagfile=.."], 1, "error: --flagfile: .. can't be read (Is a directory); name a file"),
    (["--flagfile=latin.txt"], 1, "error: --flagfile: latin.txt is not UTF-8; save it as UTF-8.\n"),
    (["--flagfile=names_latin.txt"], 1, "error: --flagfile: latin.txt is not UTF-8; save"),
    (["--number=14"], 130, "interrupted\n"),
    (["--number=16"], 143, "terminated\n"),
    (["--number=1", "--kind=x", "--file=a\udcff"], 1,
     "error: --file: 'a\\udcff' is not UTF-8"),
    (["--number=1", "--file=no://b/x"], 1, "error: --file: no://b/x: no:// is not known"),
    (["--number=22", "--file=absent"], 1, "error: --file: absent: can't be read (No such file"),
    (["--number=22", "--file=flags.txt"], 1, "error: --file: flags.txt, line 1 is not valid JSON"),
    (["--number=18"], 1, "error: a known one; mend it.\n"),
    (["--number=15"], 1, "error: [Errno 28] No space left on device: make room and run"),
    (["--number=21"], 1, "error: [Errno 27] File too large: name a folder that takes larger"),
])
def test_what_is_wrong_is_said_in_one_line(run, arguments, status, message):
    found, out, err = run(*arguments)
    assert (found, out) == (status, "") and message in err and err.count("\n") == 1, err


def test_flags_come_from_a_file_too(run):
    assert run("--flagfile=flags.txt", "--kind=x") == (0, "8 x\n", "")
    # From an editor that marks UTF-8; it names another file, which names this one.
    assert run("--flagfile", "marked.txt") == (0, "8 x\n", "")
    assert "(default: 8" not in run("--flagfile=latin.txt", "--help")[1]


def test_names_of_files_may_begin_with_the_users_folder(monkeypatch):
    """Shells leave the ~ of --name=~/file; it would become a folder of this name."""
    monkeypatch.setenv("HOME", "/users/ann")
    assert parsing.expand_flagfiles([
        "--input_file=a,~/b", "-output_dir=~", "--output=~/x=y", "--text=~/a", "--file=~#1"]) == [
            "--input_file=a,/users/ann/b", "-output_dir=/users/ann", "--output=/users/ann/x=y",
            "--text=~/a", "--file=~#1"]


def test_files_that_would_be_dropped_are_refused(tmp_path):
    @dataclasses.dataclass
    class Files:
        """Files."""

        input_file: list[str] = option(REQUIRED, "Some.")
        output_file: str = option("", "One.")

    def given(*arguments):
        return CommandLine.open(["x", *arguments], [Files]).given

    with pytest.raises(InputError, match="^--input_file is given 2 times, .* with commas between"):
        given("--input_file=a", "--input_file", "b")
    # The last of one name counts, and a flagfile is for other values.
    (tmp_path / "flags.txt").write_text("--input_file=c\n--output_file=c\n")
    assert given(f"--flagfile={tmp_path}/flags.txt", "--input_file=a,b", "--output_file=d",
                 "--output_file=e") == {"input_file": ["a", "b"], "output_file": "e"}


def test_libraries_say_only_what_is_worth_a_warning(run):
    assert "I looked." not in (said := run("--number=20")[2]) and "I found nothing." in said
    assert "I looked." in run("--number=20", "--verbosity=0")[2]


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help(run, flag):
    status, out, err = run(flag, "--number=x")
    assert (status, err) == (0, "") and out.startswith("A program.\n")
    assert "--kind={x,y,zebra}" in out


def test_defaults_of_another_flag_are_printed_and_shown_by_help(run):
    assert run("--kind=y") == (0, "defaults from kind y: --number=8\n8 y\n", "")
    assert run("--kind=y", "--number=2") == (0, "2 y\n", "")
    assert "--number=int   (default: 8, from kind y)" in run("--kind=y", "--help")[1]
    assert "--number=int   (required)" in run("--help")[1]


def test_help_shows_what_applies_and_counts_the_rest(run):
    _, short, _ = run("--help")
    assert "--deep" not in short and "--[no]fast" not in short and short.endswith(
        "\n2 more: --helpfull\n")
    assert "--flagfile=FILE" in short and "\nIts flags\n" in short
    assert "--deep=int" in run("--help", "--kind=zebra")[1]
    _, full, _ = run("--helpfull")
    assert "--deep" not in full and "--[no]fast" in full and "more:" not in full
    assert "To see more flags, add one of these to --help: --kind=zebra." in full
    assert "--span=float" in run("--help", "--kind=y")[1] and "--span" not in full


def test_a_run_keeps_the_flags_that_it_was_given(run, tmp_path):
    given = ["--number=17", "--kind=y", "--fast", '--words="a,b",c', f"--file={tmp_path}"]
    first = run(*given)
    assert first == (0, "17 y a,b c\n", "")
    kept = tmp_path / "flags.txt"
    lines = kept.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# program.py") and sorted(lines[1:]) == sorted(given)
    kept.rename(tmp_path / "moved.txt")
    assert run(f"--flagfile={tmp_path / 'moved.txt'}") == first and sorted(
        kept.read_text(encoding="utf-8").splitlines()) == sorted(lines)
    _, out, _ = run("--number=17", "--file=a\nb")
    assert out.startswith("warning: flags.txt is not written, because a flagfile can't hold")


@pytest.mark.parametrize("arguments", [["--help"], ["--number=1"]])
def test_output_that_nobody_reads_or_that_has_no_room(run, arguments):
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb") as pipe, open("/dev/full", "wb") as full:
        assert run(*arguments, stdout=pipe) == (141, None, "")
        status, _, err = run(*arguments, stdout=full)
    assert status == 1 and err.startswith("error: [Errno 28]") and err.count("\n") == 1


# Values of options, which Python users give too

@dataclasses.dataclass
class Values:
    """Options with bounds."""

    share: float = option(0.5, "A share.", least=0, below=1)
    rate: float | None = option(None, "A rate.", above=0)
    sizes: list[str] = option([], "Sizes.", items=int, least=1)
    scales: list[str] = option([], "Scales.", items=float, above=0)
    words: list[str] = option(["a"], "Words.", choices=("a", "bird"))
    slope: float | None = option(None, "A slope.")
    deep: int = without("teacher")(0, "How deep.")
    teacher: str = option("", "A teacher.")
    student: bool | None = only("teacher")(None, "A student.")
    forms: list[str] = option([], "Forms.")
    form_size: float = only("forms", "a", "b", "c", "d")(0.5, "Their size.")

    def __post_init__(self):
        flags.check(self)


@pytest.mark.parametrize("values, message", [
    ({"share": 1}, "--share is 1; it must be from 0 to below 1."),
    ({"share": float("nan")}, "--share is nan; it must be a finite number."),
    ({"rate": 0.0}, "--rate is 0.0; it must be above 0."),
    ({"rate": float("inf")}, "--rate is inf; it must be a finite number."),
    ({"sizes": ["3", "x"]}, "--sizes is 3,x; each must be a whole number at least 1."),
    ({"sizes": ["3", "0"]}, "--sizes is 3,0; each must be a whole number at least 1."),
    ({"scales": ["1e-4", "inf"]}, "--scales is 1e-4,inf; each must be a finite number."),
    ({"scales": ["1e-4", "0"]}, "--scales is 1e-4,0; each must be a number above 0."),
    ({"words": ["a", "birt"]},
     "--words is a,birt; there is no birt: did you mean bird? The choices are a, bird."),
    ({"slope": float("nan")}, "--slope is nan; it must be a finite number."),
    ({"student": True}, "there is no --student without --teacher."),
    ({"teacher": "t", "deep": 2}, "there is no --deep with --teacher."),
    ({"forms": ["x", "y"], "form_size": 1},
     "there is no --form_size with --forms=x,y; it is for --forms=a, b, c and 1 others."),
    ({"deep": 10 ** 20}, f"--deep is {10 ** 20}; give at most 9223372036854775807."),
])
def test_values_that_can_not_be(values, message):
    with pytest.raises(InputError) as error:
        Values(**values)
    assert str(error.value) == message


def test_values_that_can_be():
    Values(share=0, rate=1e-9, sizes=["1", "12"], words=["bird", "a"], student=False)
    Values(teacher="t", student=True)
    Values(forms=["x", "d"], form_size=1, deep=2)
    Values(slope=float("-inf"))
