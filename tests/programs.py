"""All programs, and what each gives to `flags.run`."""

import dataclasses
import functools
import sys

import pytest

from bert_tf import flags
from run_scripts import commands


@functools.cache
def names():
    """All programs: the commands, and those of `bert-benchmark` and `bert-analyze` with a name."""
    return [name for command, module in commands.COMMANDS.items() for name in (
        [f"{command} {name}" for name in commands.programs(module)]
        if module in commands.PACKAGES else [command])]


@dataclasses.dataclass
class Program:
    """What a command gives to `flags.run`."""

    main: object
    classes: tuple
    defaults: object
    recipe: object


@functools.cache
def program(command):
    """The `Program` of a command, whose first arguments may be in its name."""
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flags, "run", lambda main, *classes, defaults=None, recipe=None: found.append(
            Program(main, classes, defaults, recipe)))
        patch.setattr(sys, "argv", command.split())
        patch.setattr(sys, "path", [*sys.path])
        commands.run()
    return found[0]


@functools.cache
def fields(command):
    """{flag: the field of a dataclass that it fills}, with both spellings."""
    known = {}
    for kind in program(command).classes:
        for field in dataclasses.fields(kind):
            if "help" in field.metadata:
                known[field.name] = known[field.metadata["alias"]] = field
    return known
