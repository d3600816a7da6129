"""absl's flags for the options of dataclasses, and dataclass instances from parsed flags."""

import os
import typing
from collections.abc import Iterable

from absl import flags as absl_flags

from bert_tf import files
from bert_tf.errors import InputError, choose_from, naming
from bert_tf.files import PATH_FLAGS, check_decodable, check_stores
from bert_tf.flags.options import (
    check,
    default_of,
    fields_of,
    given_in,
    is_required,
    without_idle,
)

_FLAGFILE = ("--flagfile", "-flagfile")


class _Choice(absl_flags.ArgumentParser):
    """Takes one of some strings, and names the nearest where it is given another."""

    def __init__(self, choices):
        super().__init__()
        self._choices = list(choices)

    def parse(self, argument):
        if argument not in self._choices:
            raise ValueError(choose_from(argument, self._choices))
        return argument


def types_of(config_class) -> dict[str, type]:
    """The type of each option's flag: `int` for `int | None`; `list` for `list[str]`."""
    hints = typing.get_type_hints(config_class)
    return {field.name: _plain_type(hints[field.name]) for field in fields_of(config_class)}


def _plain_type(annotation):
    options = [t for t in typing.get_args(annotation) if t is not type(None)]
    if typing.get_origin(annotation) is list:
        return list
    return options[0] if options else annotation


def define(config_class, flag_values):
    """Defines one absl flag for each `option` of `config_class` in `flag_values`."""
    types = types_of(config_class)
    for field in fields_of(config_class):
        name, kind, metadata = field.name, types[field.name], field.metadata
        arguments = {"name": name, "default": default_of(field), "help": metadata["help"],
                     "flag_values": flag_values}
        if metadata["choices"] and kind is str:
            absl_flags.DEFINE(_Choice(metadata["choices"]), **arguments,
                              serializer=absl_flags.ArgumentSerializer())
        else:
            {bool: absl_flags.DEFINE_bool, int: absl_flags.DEFINE_integer,
             float: absl_flags.DEFINE_float, str: absl_flags.DEFINE_string,
             list: absl_flags.DEFINE_list}[kind](**arguments)
        if metadata["alias"]:
            absl_flags.DEFINE_alias(metadata["alias"], name, flag_values=flag_values)


def read(config_class, flag_values):
    """Returns a `config_class` filled from parsed flags; required ones must be given."""
    values = {}
    for field in fields_of(config_class):
        value = getattr(flag_values, field.name)
        if is_required(field) and value in (None, "", []):
            raise InputError(f"--{field.name} must be given: {field.metadata['help']}")
        parts = value if isinstance(value, list) else [value]
        check_decodable(parts, f"--{field.name}")
        if PATH_FLAGS.fullmatch(field.name):
            if "" in parts and (isinstance(value, list) or default_of(field)):
                raise InputError(f"--{field.name}: the name of a file or folder is empty; write "
                                 "the name, or leave it out.")
            check_stores(parts, f"--{field.name}: ")
            fetched = [_fetch(part, field.name) for part in parts]
            if files.READ_FLAGS.fullmatch(field.name):
                fetched = [files.as_file(part, default_of(field)) for part in fetched]
            value = fetched if isinstance(value, list) else fetched[0]
        values[field.name] = value
    config = config_class(**values)
    check(config)
    return config


def expand_flagfiles(arguments: Iterable[str], above: tuple[str, ...] = ()) -> list[str]:
    """Returns a command line with the flags of its flagfiles in their places. A flagfile may be in
    a store, and may name others.

    Args:
        above: the flagfiles that name the one with these lines, which are not read again.

    Raises:
        InputError: a flagfile can't be read.
    """
    found: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        name, _, path = argument.partition("=")
        if argument in _FLAGFILE:
            path = next(rest, "")
        if name not in _FLAGFILE:
            found.append(argument)
        elif path not in above:
            found += expand_flagfiles([line for line in flagfile_lines(path) if line and not (
                line.startswith(("#", "//")))], (*above, path))
        if argument == "--":
            break
    return [*found, *rest]


def flagfile_lines(path: str) -> list[str]:
    """Returns all lines of a flagfile, without blanks around them.

    Raises:
        InputError: it can't be read.
    """
    check_stores([path], "--flagfile: ")
    try:
        with files.open_file(os.path.expanduser(path), "rt", encoding="utf-8-sig") as file:
            return [line.strip() for line in file]
    except FileNotFoundError as error:
        raise InputError(f"--flagfile: there is no file {path or repr(path)}; check the "
                         "name.") from error
    except OSError as error:
        raise InputError(f"--flagfile: {path} can't be read ({error.strerror or error}); name a "
                         "file that you may read.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"--flagfile: {path} is not UTF-8; save it as UTF-8.") from error


def _fetch(value, flag):
    """The local copy of a model that a flag names on the Hub; other values as they are."""
    if not isinstance(value, str) or not files.is_hub_name(value):
        return value
    if "output" in flag:
        raise InputError(f"--{flag}: {value} can't be written; name a local folder, and upload it "
                         "with `hf upload`.")
    with naming(f"--{flag}"):
        return files.fetched(value, "vocab" not in flag and not flag.endswith("config_file"))


def given_in_flags(config_classes, flag_values):
    """{name: value} of the options that the command line gives."""
    # An alias counts as an occurrence of the flag itself, which still calls itself a default.
    return {name: getattr(flag_values, name) for name in given_in(config_classes)
            if flag_values[name].present}


def take_defaults(defaults, config_classes, flag_values):
    """Replaces the dataclasses' own defaults in `flag_values`; returns (source, the values now in
    effect).

    Args:
        defaults: function of the dict of given flags. It returns (source, values): a phrase that
            names where the defaults come from, and a dict by flag. Left out are names that are
            not flags of `config_classes`, and flags that a given flag makes idle.
    """
    names = given_in(config_classes)
    given = given_in_flags(config_classes, flag_values)
    source, values = defaults(given)
    taken = {name: value for name, value in without_idle(values, config_classes, given).items()
             if name in names and name not in given}
    for name, value in taken.items():
        flag_values.set_default(name, value)
    return source, taken

