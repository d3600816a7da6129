"""All programs, and what each gives to `flags.run`."""

import dataclasses
import functools
import shlex
import sys

import pytest

from bert_tf import flags
from run_scripts import commands


@functools.cache
def names():
    """All programs: commands, and the words that follow where a command is several programs."""
    return [name for command in commands.COMMANDS for name in (
        [f"{command} {name}" for name in commands.programs(command)]
        if command in commands.SEVERAL else
        [command, *(f"{command} {flag}" for flag in commands.VARIANTS.get(command, ()))])]


@dataclasses.dataclass
class Program:
    """What a command gives to `flags.run`."""

    main: object
    classes: tuple
    defaults: object
    recipe: object


@functools.cache
def program(command):
    """The `Program` of a command line, a string."""
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flags, "run", lambda main, *classes, defaults=None, recipe=None: found.append(
            Program(main, classes, defaults, recipe)))
        patch.setattr(sys, "argv", shlex.split(command))
        patch.setattr(sys, "path", [*sys.path])
        commands.run()
    return found[0]


@functools.cache
def fields(command):
    """{flag: the field of a dataclass that it fills} of a command line's program, with both
    spellings."""
    known = {}
    for kind in program(command).classes:
        for field in dataclasses.fields(kind):
            if "help" in field.metadata:
                known[field.name] = known[field.metadata["alias"]] = field
    return known
