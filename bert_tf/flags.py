"""From a dataclass to absl flags and back: the only file of the library that knows absl.

A configuration is a dataclass whose fields carry their help text; a script names the dataclasses
it needs and gets them filled:

    @dataclasses.dataclass
    class Job:
        vocab_file: str = option(REQUIRED, "The WordPiece vocabulary, one token a line.")
        random_seed: int = option(12345, "Seed of every random choice.")

    def main(job: Job): ...

    def run():
        flags.run(main, Job)

Where defaults depend on another flag, `run` takes a function that gives them: what is on the
command line comes before these, and these come before the dataclass's own.

Flags exist only while a script runs, so any number of scripts can be imported into one process.
"""

import contextlib
import dataclasses
import errno
import os
import sys
import textwrap
import typing

from absl import app
from absl import flags as absl_flags

from bert_tf import signals
from bert_tf.errors import InputError
from bert_tf.files import PATH_FLAGS, check_decodable, check_local

REQUIRED = dataclasses.MISSING
_HELP = ("--help", "-h", "-help", "--helpfull")


def option(default, help, *, choices=None, alias=None):
    """A dataclass field that is also a flag.

    Args:
        default: the value when the flag is not given; `REQUIRED` makes the flag mandatory.
        help: one or two sentences for `--help`.
        choices: the allowed strings, if there are only some.
        alias: another name of the same flag (an older spelling).
    """
    metadata = {"help": help, "choices": choices, "alias": alias}
    if default is REQUIRED:
        return dataclasses.field(metadata=metadata)
    if isinstance(default, (list, tuple)):
        return dataclasses.field(default_factory=lambda: list(default), metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def _is_required(field):
    return (field.default is dataclasses.MISSING
            and field.default_factory is dataclasses.MISSING)


def _default(field):
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return None if field.default is dataclasses.MISSING else field.default


def _plain_type(annotation):
    """`int` for `int | None`; `list` for `list[str]`."""
    options = [t for t in typing.get_args(annotation) if t is not type(None)]
    if typing.get_origin(annotation) is list:
        return list
    return options[0] if options else annotation


def _options(config_class):
    """The fields of `config_class` that are flags, with their types."""
    types = typing.get_type_hints(config_class)
    return [(field, _plain_type(types[field.name]))
            for field in dataclasses.fields(config_class) if "help" in field.metadata]


def define(config_class, flag_values):
    """Defines one absl flag for each `option` of `config_class` in `flag_values`."""
    for field, kind in _options(config_class):
        choices = field.metadata["choices"]
        if choices:
            definer, extra = absl_flags.DEFINE_enum, {"enum_values": list(choices)}
        else:
            definer = {bool: absl_flags.DEFINE_bool, int: absl_flags.DEFINE_integer,
                       float: absl_flags.DEFINE_float, str: absl_flags.DEFINE_string,
                       list: absl_flags.DEFINE_list}[kind]
            extra = {}
        definer(field.name, default=_default(field), help=field.metadata["help"],
                flag_values=flag_values, **extra)
        if field.metadata["alias"]:
            absl_flags.DEFINE_alias(field.metadata["alias"], field.name, flag_values=flag_values)


def read(config_class, flag_values):
    """An instance of `config_class` filled from parsed flags.

    Raises:
        InputError: a required flag was not given.
    """
    values = {}
    for field, _ in _options(config_class):
        value = getattr(flag_values, field.name)
        if _is_required(field) and value in (None, "", []):
            raise InputError(f"--{field.name} must be given: {field.metadata['help']}")
        parts = value if isinstance(value, list) else [value]
        check_decodable(parts, f"--{field.name}")
        if PATH_FLAGS.fullmatch(field.name):
            check_local(parts, f"--{field.name}: ")
        values[field.name] = value
    return config_class(**values)


def take_defaults(defaults, config_classes, flag_values):
    """Puts other defaults in the place of the dataclasses' own.

    Args:
        defaults: function of the flags on the command line, a dict of values by name. It returns
            (source, values): a phrase that names where the defaults come from, and a dict of them
            by the name of their flag; names that are no flag of `config_classes` are left out.
        config_classes: the dataclasses.
        flag_values: the parsed flags, which are changed.

    Returns:
        (source, taken): the values that are in effect now because no flag gives another.
    """
    names = [field.name for config_class in config_classes for field, _ in _options(config_class)]
    # An alias counts as an occurrence of the flag itself, which still calls itself a default.
    given = {name: getattr(flag_values, name) for name in names if flag_values[name].present}
    source, values = defaults(given)
    taken = {name: value for name, value in values.items() if name in names and name not in given}
    for name, value in taken.items():
        flag_values.set_default(name, value)
    return source, taken


def _print_help(doc, config_classes, defaults):
    """Prints the help, with the defaults that the rest of the command line leads to."""
    source, taken = "", {}
    if defaults:
        flag_values = absl_flags.FlagValues()
        for config_class in config_classes:
            define(config_class, flag_values)
        # A flag that can't be read is no reason to withhold the help.
        with contextlib.suppress(absl_flags.Error, InputError):
            flag_values([arg for arg in sys.argv if arg not in _HELP])
            source, taken = take_defaults(defaults, config_classes, flag_values)
    print(help_text(doc, config_classes, taken, source))


def _shown(value):
    """A value as it is written on the command line."""
    return ",".join(value) if isinstance(value, list) else value


def _notes(field, defaults, source):
    """Yields the notes in brackets after a flag in the help."""
    if field.name in defaults:
        yield f"default: {_shown(defaults[field.name])}, from {source}"
    elif _is_required(field):
        yield "required"
    elif _default(field) not in (None, "", []):
        yield f"default: {_shown(_default(field))}"
    if field.metadata["alias"]:
        yield f"also --{field.metadata['alias']}"


def help_text(doc, config_classes, defaults=(), source=""):
    """What `--help` prints: the script's docstring, then every flag, required ones first.

    Args:
        doc: the docstring.
        config_classes: the dataclasses.
        defaults: dict of the defaults that differ from the dataclasses' own.
        source: where those come from.
    """
    lines = [doc.strip(), ""]
    for config_class in config_classes:
        ordered = sorted(_options(config_class), key=lambda pair: not _is_required(pair[0]))
        for field, kind in ordered:
            choices = field.metadata["choices"]
            value = "{" + ",".join(choices) + "}" if choices else {list: "a,b,..."}.get(
                kind, kind.__name__)
            left = f"  --[no]{field.name}" if kind is bool else f"  --{field.name}={value}"
            note = "; ".join(_notes(field, defaults, source))
            lines.append(left + (f"   ({note})" if note else ""))
            lines += textwrap.wrap(field.metadata["help"], 88,
                                   initial_indent=" " * 8, subsequent_indent=" " * 8)
        lines.append("")
    return "\n".join(lines)


def _report(source, taken):
    if taken:
        print(f"defaults from {source}: " + ", ".join(
            f"--{name}={_shown(value)}"
            for name, value in taken.items()), flush=True)


def run(main, *config_classes, defaults=None):
    """Runs `main(*configs)` as a program: parses flags, prints help, exits 1 on an InputError and
    where a disk is full.

    Args:
        main: function of one instance of each of `config_classes`.
        defaults: see `take_defaults`; those taken are printed in one line.
    """
    # TensorFlow, which `main` may load, says much on stderr that is of no use there.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    doc = sys.modules[main.__module__].__doc__ or ""
    if any(argument in _HELP for argument in sys.argv[1:]):
        _print_help(doc, config_classes, defaults)
        sys.exit(0)
    for config_class in config_classes:
        define(config_class, absl_flags.FLAGS)

    def parse(argv):
        try:
            return absl_flags.FLAGS(argv)
        except absl_flags.Error as error:
            problem = str(error).removesuffix(" ?").removesuffix(".")
            print(f"error: {problem}; --help lists the flags.", file=sys.stderr)
            sys.exit(1)

    def guarded(argv):
        try:
            if len(argv) > 1:
                raise InputError(
                    f"unexpected argument {argv[1]!r}: flags are written --name=value.")
            if defaults:
                _report(*take_defaults(defaults, config_classes, absl_flags.FLAGS))
            main(*[read(config_class, absl_flags.FLAGS) for config_class in config_classes])
        except InputError as error:
            print(f"error: {error}", file=sys.stderr)
            sys.exit(1)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            print(f"error: {error}: make room and start the same command again.", file=sys.stderr)
            sys.exit(1)

    # Names of files may hold bytes that no encoding can print.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    with signals.ending():
        app.run(guarded, flags_parser=parse)
