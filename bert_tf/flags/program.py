"""Runs programs: parses flags, prints help, and reports in one sentence what users can mend."""

import functools
import os
import re
import sys

from absl import app, logging
from absl import flags as absl_flags

from bert_tf import signals
from bert_tf.errors import InputError, explained
from bert_tf.files import FLAGFILE, is_file, open_file, places, write_aside
from bert_tf.flags import help as help_pages
from bert_tf.flags.options import changed, options_of, shown_default
from bert_tf.flags.parsing import CommandLine, define, read

_ENDLESS = 1 << 30     # steps that no run takes, such as a warm-up that never ends
_given: list[str] = []      # the flags of the program that runs
_filled: list = []          # the dataclasses that it was given


def keep(config, folder: str, prefix: str = "", without: type | None = None,
         trains: bool = True) -> None:
    """Writes the flags that the running program was given to `flags.txt`, or PREFIXflags.txt, in a
    folder.

    Args:
        config: a dataclass that `run` gave to the program's `main`. For others, which Python users
            and other programs make, nothing is written.
        without: a dataclass whose flags are left out.
        trains: whether the program makes what lies in the folder; if not, the flags of a training
            or of another program there stay.
    """
    path = os.path.join(folder, prefix + FLAGFILE)
    if not any(config is filled for filled in _filled) or not trains and _are_of_maker(path):
        return
    left_out = tuple(f"--{name}=" for name in options_of(filter(None, [without])))
    _write_flags(path, os.path.basename(sys.argv[0]),
                 [line for line in _given if not line.startswith(left_out)])


def _are_of_maker(path):
    if not is_file(path):
        return False
    with open_file(path, "rt", encoding="utf-8") as file:
        lines = [line.rstrip() for line in file]
    own = f"# {os.path.basename(sys.argv[0])} "
    return "--do_train" in lines or not "".join(lines[:1]).startswith(own)


def keep_for(command: str, folder: str, *configs) -> None:
    """Writes the flags that give `command` these filled dataclasses to `flags.txt` in a folder, for
    a program that calls it from Python."""
    values = absl_flags.FlagValues()
    for config in configs:
        define(type(config), values)
    values_of = {name: value for config in configs for name, value in changed(config).items()}
    for name, value in values_of.items():
        setattr(values, name, value)
    _write_flags(os.path.join(folder, FLAGFILE), command,
                 [values[name].serialize() for name in values_of])


def _write_flags(path, command, lines):
    if unkept := next((line for line in lines if line.split("\n") != [line.strip()]), None):
        print(f"warning: {FLAGFILE} is not written, because a flagfile "
              f"can't hold {unkept!r}", flush=True)
        return
    with write_aside(path) as file:
        file.writelines(line + "\n" for line in [
            f"# {command} --flagfile=THIS_FILE",
            *(f"# {copy}" for copy in dict.fromkeys(places.COPIES.values())), *lines])


def _parse(argv, *settings):
    """Returns the `CommandLine` of arguments, whose flags are set, and what is no flag. `settings`
    are those of `CommandLine.open`."""
    try:
        line = CommandLine.open(argv, *settings)
        left = line.parse(absl_flags.FLAGS)
        if not app.FLAGS["verbosity"].present:
            # absl's own default shows the notes of other libraries, such as requests and logins.
            app.FLAGS.verbosity = logging.WARNING
        return line, left[1:]
    except InputError as error:
        problem = str(error)
    except absl_flags.Error as error:
        problem = str(error).removesuffix(" ?").removesuffix(".") + "; --help lists the flags."
    print(f"error: {problem}", file=sys.stderr)
    sys.exit(1)


def run(main, *config_classes, defaults=None, adds=None):
    """Runs `main(*configs)` as a program: parses flags, prints help, exits 1 on an InputError and
    where a disk is full.

    Args:
        defaults: see `CommandLine.open`; the defaults taken are printed in one line.
        adds: function of the dict of given flags; returns further dataclasses, such as those that
            the recipe of --recipe names. `main` takes them after the others.
    """
    # Names of files may hold bytes that no encoding can print.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    settings = config_classes, defaults, adds
    with signals.reaching_output():
        if any(argument in (*help_pages.SHORT, *help_pages.FULL) for argument in sys.argv[1:]):
            help_pages.print_help(sys.modules[main.__module__].__doc__ or "", *settings)
            sys.exit(0)
        with signals.ending():
            app.run(functools.partial(_call, main),
                    flags_parser=lambda argv: _parse(argv, *settings))


def _with_flag(message):
    """The message; if it begins with a file, with the flag that names the file before it."""
    for name, _, value in (flag.partition("=") for flag in _given):
        if value and re.match(f"(there is no (file )?)?{re.escape(value)}(:|;|, line )", message):
            return f"{name}: {message}"
    return message


def _call(main, parsed):
    """Calls `main` with the dataclasses that the parsed flags fill; exits with the sentence of an
    error that users can mend."""
    line, left = parsed
    try:
        if left:
            raise InputError(f"unexpected argument {left[0]!r}: flags are written --name=value.")
        _given[:] = [absl_flags.FLAGS[name].serialize() for name in line.given]
        if line.defaults:
            print(f"defaults from {line.source}: " + ", ".join(
                f"--{name}={shown_default(value)}"
                for name, value in line.defaults.items() if value != _ENDLESS), flush=True)
        _filled[:] = [read(kind, absl_flags.FLAGS) for kind in line.classes]
        main(*_filled)
    except Exception as error:
        known = error if isinstance(error, InputError) else explained(error)
        if not known:
            raise
        sys.stdout.flush()      # in a log file the lines before the error precede it
        message = str(known)
        if not known.is_asked_for:      # a stop that the user asked for is not an error
            message = f"error: {_with_flag(places.name_of_copies(message))}"
        print(message, file=sys.stderr)
        sys.exit(known.status)
