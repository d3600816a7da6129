"""From a dataclass to absl flags and back: the only package of the library that knows absl.

A script names the dataclasses that it needs, and `main` gets them filled:

    @dataclasses.dataclass
    class Job:
        \"\"\"The text and the seed.\"\"\"      # the title of a group in the help

        vocab_file: str = option(REQUIRED, "The WordPiece vocabulary, one token a line.")
        random_seed: int = option(12345, "Seed of every random choice.", least=0)

    def run():
        flags.run(main, Job)

A command line has only the flags that its other flags call for: an option made with `only("kind",
"deep")(default, help)` exists with --kind=deep, one with `only("teacher")(...)` where --teacher is
given, one with `without("teacher")(...)` where it is not; and `run` takes functions that add
dataclasses, such as a recipe's, or give other defaults. `check` refuses the same values in a
dataclass that Python users fill. Flags exist only while a script runs.
"""

import lazy_loader

# Dataclasses need options.py alone, and not absl.
__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submod_attrs={
    "help": ["help_text"],
    "options": ["REQUIRED", "applicable", "changed", "check", "check_used", "command_line", "only",
                "option", "shown", "without"],
    "parsing": ["CommandLine"],
    "program": ["keep", "keep_for", "run"],
})
