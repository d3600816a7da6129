"""All programs, their descriptions and their flags."""

import dataclasses
import functools

from run_scripts import commands

names = functools.cache(commands.program_names)
program = functools.cache(commands.describe)


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
