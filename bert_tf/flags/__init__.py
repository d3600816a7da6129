"""From a dataclass to absl flags and back: the only package of the library that knows absl.

A configuration is a dataclass whose fields carry their help, their bounds and where they apply; a
script names the dataclasses it needs and gets them filled:

    @dataclasses.dataclass
    class Job:
        \"\"\"The text and the seed.\"\"\"

        vocab_file: str = option(REQUIRED, "The WordPiece vocabulary, one token a line.")
        random_seed: int = option(12345, "Seed of every random choice.", least=0)

    def main(job: Job): ...

    def run():
        flags.run(main, Job)

Each dataclass is a group in the help, under the first line of its docstring; fields that a class
inherits are in the group of the class that declares them. `--help` leaves out options that are
`rare`, which `--helpfull` shows.

A command line has only the flags that its other flags call for:

- an option made with `only("kind", "deep")(default, help)` exists with --kind=deep, an option made
  with `only("teacher")(...)` where --teacher is given, one made with `without("teacher")(...)`
  where it is not;
- `run(..., adds=function)`: the function of the given flags returns further dataclasses, such as
  those of a recipe, which `main` takes after the others.

An unknown flag is refused with the values that have it. `check` refuses the same values in a
dataclass that Python users fill.

If defaults depend on another flag, `run` takes a function that gives them: flags on the command
line come before these defaults, and these come before the dataclass's own.

Flags exist only while a script runs, so any number of scripts can be imported into one process.
"""

import lazy_loader

# Dataclasses need options.py alone, and not absl.
__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submod_attrs={
    "help": ["help_text"],
    "options": ["REQUIRED", "applicable", "changed", "check", "check_used", "command_line", "only",
                "option", "without"],
    "parsing": ["CommandLine"],
    "program": ["keep", "keep_for", "run"],
})
