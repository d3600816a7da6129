"""All programs, their descriptions and their flags."""

import contextlib
import dataclasses
import functools

import pytest

from bert_tf.errors import InputError
from run_scripts import commands, quickstart

QUICKSTART = "run_scripts.quickstart"       # which is no command
names = functools.cache(commands.program_names)


@functools.cache
def program(command):
    """The `commands.Program` of a command line."""
    if command.split()[0] == QUICKSTART:
        return commands.Program(quickstart.__doc__, quickstart.main, (quickstart.QuickstartFlags,),
                                None, None)
    return commands.describe(command)


@functools.cache
def fields(command):
    """{flag: the field of a dataclass that it fills} of a command line's program, with both
    spellings."""
    known = {}
    for kind in program(command).every_class():
        for field in dataclasses.fields(kind):
            if "help" in field.metadata:
                known[field.name] = known[field.metadata["alias"]] = field
    return known


def share_out(values, *kinds):
    """Dataclasses of flags, each with the values of its fields; every value has a field."""
    names = [{field.name for field in dataclasses.fields(kind)} for kind in kinds]
    assert set(values) <= set().union(*names), set(values) - set().union(*names)
    return [kind(**{name: values[name] for name in values.keys() & own})
            for kind, own in zip(kinds, names)]


@contextlib.contextmanager
def refused(*parts):
    """Expects an `InputError` in one sentence that has these parts."""
    with pytest.raises(InputError) as error:
        yield
    message = str(error.value)
    assert all(str(part) in message for part in parts) and "\n" not in message, message


def refusal(command, *arguments):
    """The sentence with which a command line is refused, in this process."""
    with pytest.raises(InputError) as error:
        main, settings = commands.parse([command, *arguments])
        main(*settings)
    assert "\n" not in str(error.value)
    return str(error.value)
