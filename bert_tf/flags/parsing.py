"""absl's flags for the options of dataclasses, and dataclass instances from parsed flags."""

import collections
import contextlib
import dataclasses
import itertools
import os
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from absl import flags as absl_flags

from bert_tf import files
from bert_tf.errors import InputError, choose_from, naming, nearest_flag
from bert_tf.files import PATH_FLAGS, check_decodable, check_stores
from bert_tf.flags.options import (
    When,
    applicable,
    check,
    default_of,
    fields_of,
    is_required,
    items_of,
    options_of,
)

_FLAGFILE = ("--flagfile", "-flagfile")
_SIMILAR = 0.65     # below, flags have only a word such as size in common
Given = Mapping[str, typing.Any]
Adds = Callable[[Given], Sequence[type]]


class _Choice(absl_flags.ArgumentParser):
    """Takes one of some strings, and names the nearest where it is given another."""

    def __init__(self, choices):
        super().__init__()
        self._choices = list(choices)

    def parse(self, argument):
        if argument not in self._choices:
            raise ValueError(choose_from(argument, self._choices))
        return argument


class _Plain(absl_flags.ArgumentParser):
    """Takes what another parser takes, and says what that must be, not which function refused it.
    """

    _NAMES = {bool: "true or false", int: "a whole number", float: "a number"}

    def __init__(self, parser, kind):
        super().__init__()
        self._parser, self._name = parser, self._NAMES[kind]
        self.syntactic_help = parser.syntactic_help

    def parse(self, argument):
        try:
            return self._parser.parse(argument)
        except (TypeError, ValueError):
            raise ValueError(f"it must be {self._name}") from None

    def flag_type(self):
        return self._parser.flag_type()


def types_of(config_class) -> dict[str, type]:
    """The type of each option's flag: `int` for `int | None`; `list` for `list[str]`."""
    hints = typing.get_type_hints(config_class)
    return {field.name: _plain_type(hints[field.name]) for field in fields_of(config_class)}


def _plain_type(annotation):
    if typing.get_origin(annotation) in (list, tuple):
        return list
    return next((t for t in typing.get_args(annotation) if t is not type(None)), annotation)


def define(config_class, flag_values, names=None):
    """Defines one absl flag for each `option` of `config_class` in `flag_values`; those of these
    names alone, if not None."""
    types = types_of(config_class)
    for field in fields_of(config_class):
        name, kind, metadata = field.name, types[field.name], field.metadata
        if names is not None and name not in names:
            continue
        default = default_of(field)
        arguments = {"name": name, "default": list(default) if type(default) is tuple else default,
                     "help": metadata["help"], "flag_values": flag_values}
        if metadata["choices"] and kind is str:
            absl_flags.DEFINE(_Choice(metadata["choices"]), **arguments,
                              serializer=absl_flags.ArgumentSerializer())
        else:
            {bool: absl_flags.DEFINE_bool, int: absl_flags.DEFINE_integer,
             float: absl_flags.DEFINE_float, str: absl_flags.DEFINE_string,
             list: absl_flags.DEFINE_list}[kind](**arguments)
        if kind in (bool, int, float):
            flag_values[name].parser = _Plain(flag_values[name].parser, kind)
        if metadata["alias"]:
            absl_flags.DEFINE_alias(metadata["alias"], name, flag_values=flag_values)


def read(config_class, flag_values):
    """Returns a `config_class` filled from parsed flags; required ones must be given. An option
    without a flag has its default."""
    values = {}
    for field in fields_of(config_class):
        if field.name not in flag_values:
            continue
        value = getattr(flag_values, field.name)
        if is_required(field) and value in (None, "", []):
            raise InputError(f"--{field.name} must be given: {field.metadata['help']}")
        parts = items_of(value)
        check_decodable(parts, f"--{field.name}")
        if PATH_FLAGS.fullmatch(field.name):
            if "" in parts and (isinstance(value, list) or default_of(field)):
                raise InputError(f"--{field.name}: the name of a file or folder is empty; write "
                                 "the name, or leave it out.")
            check_stores(parts, f"--{field.name}")
            parts = [_fetch(part, field.name) for part in parts]
            if files.READ_FLAGS.fullmatch(field.name):
                parts = [files.as_file(part, default_of(field)) for part in parts]
        if not isinstance(value, list):
            parts, = parts
        elif isinstance(default_of(field), tuple):
            parts = tuple(parts)
        values[field.name] = parts
    config = config_class(**values)
    check(config)
    return config


def expand_flagfiles(arguments: Iterable[str], above: tuple[str, ...] = ()) -> list[str]:
    """Returns a command line with the flags of its flagfiles in their places, and the user's folder
    in place of ~; InputError if one can't be read. A flagfile may be in a store, and may name
    others; `above` are those that name the one with these lines, which are not read again."""
    expanded: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        name, _, path = argument.partition("=")
        if argument in _FLAGFILE:
            path = next(rest, "")
        if name not in _FLAGFILE:
            expanded.append(_without_tilde(argument))
        elif path not in above:
            expanded += expand_flagfiles([line for line in flagfile_lines(path) if line and not (
                line.startswith(("#", "//")))], (*above, path))
        if argument == "--":
            break
    return [*expanded, *rest]


def _without_tilde(argument):
    """--name=~/file with the user's folder in place of ~, where shells leave it."""
    name, is_given, value = argument.partition("=")
    if not is_given or not PATH_FLAGS.fullmatch(name.lstrip("-")):
        return argument
    return f"{name}=" + ",".join(map(os.path.expanduser, value.split(",")))


def given_flags(arguments: Sequence[str]) -> dict[str, str]:
    """{name: value} of the flags of a command line, without those in flagfiles."""
    values = {}
    for argument, following in itertools.zip_longest(arguments, arguments[1:], fillvalue=""):
        if argument.startswith("-"):
            name, is_given, value = argument.lstrip("-").partition("=")
            if not is_given:
                value = "true"
                if following and not following.startswith("-"):
                    value = following
            values[name] = value
    return values


def flagfile_lines(path: str) -> list[str]:
    """Returns all lines of a flagfile, without blanks around them; InputError if it can't be read.
    """
    check_stores([path], "--flagfile")
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
    if not isinstance(value, str) or not files.is_hub_name(value):
        return value
    if "output" in flag:
        raise InputError(f"--{flag}: {value} can't be written; name a local folder, and upload it "
                         "with `hf upload`.")
    with naming(f"--{flag}"):
        return files.fetched(value, "vocab" not in flag and not flag.endswith("config_file"))


@dataclasses.dataclass
class CommandLine:
    """A command line and its flags: the options of dataclasses that exist with it.

    Attributes:
        classes: the dataclasses, with those that the flags add.
        adds: function of the given flags that returns further dataclasses, or None.
        values: of all options.
        names: of the options that exist.
        defaults: {name: default} where it is not the dataclass's own.
        source: a phrase that names where these defaults come from.
    """

    arguments: list[str]
    classes: list[type]
    adds: Adds | None
    given: dict[str, typing.Any]
    values: dict[str, typing.Any]
    names: list[str]
    defaults: dict[str, typing.Any]
    source: str

    @classmethod
    def open(cls, arguments: Sequence[str], config_classes: Sequence[type],
             defaults: Callable[[Given], tuple[str, Given]] | None = None,
             adds: Adds | None = None) -> "CommandLine":
        """Reads a command line, of which the first word is the program. InputError if a flagfile
        can't be read, a flag of several files comes twice, or `defaults` or `adds` refuses a value;
        absl's Error if a value can't be read.

        Args:
            defaults: function of the dict of given flags. It returns (source, values): a phrase
                that names where the defaults come from, and a dict by flag. Left out are names
                that are not flags of the command line, and flags that are given.
        """
        written = collections.Counter(argument.lstrip("-").partition("=")[0]
                                      for argument in arguments if argument.startswith("-"))
        arguments = expand_flagfiles(arguments)
        typed = _scan(arguments, config_classes)
        classes = [*config_classes, *(adds(typed) if adds else ())]
        for name, kind in itertools.chain(*(types_of(group).items() for group in classes)):
            if kind is list and written[name] > 1 and PATH_FLAGS.fullmatch(name):
                raise InputError(f"--{name} is given {written[name]} times, of which only the last "
                                 "would count; give all names in one, with commas between them.")
        typed = _scan(arguments, classes)
        source, others = defaults(typed) if defaults else ("", {})
        own = {name: default_of(field) for name, field in options_of(classes).items()}
        values = {**own, **others, **typed}
        names = applicable(classes, values)
        return cls(arguments, classes, adds, typed, values, names, {
            name: value for name, value in others.items() if name in names and name not in typed},
            source)

    def parse(self, flag_values: absl_flags.FlagValues) -> list[str]:
        """Defines the flags in `flag_values`, and sets them; returns what is no flag. InputError if
        there is no such flag, absl's Error if a value can't be read."""
        for kind in self.classes:
            define(kind, flag_values, self.names)
        for name, value in self.defaults.items():
            flag_values.set_default(name, value)
        try:
            return flag_values(self.arguments)
        except absl_flags.UnrecognizedFlagError as error:
            raise InputError(self._unknown(error.flagname)) from error

    def choices(self) -> list[str]:
        """What gives the command line more flags, such as "--grid"."""
        return list(dict.fromkeys(str(when) for when in self._absent().values()
                                  if when.flag in self.names and not when.is_without))

    def _absent(self):
        """{name or other name: `When`} of the options that exist with other values."""
        return {name: field.metadata["when"] for field in options_of(self.classes).values()
                if field.name not in self.names
                for name in (field.name, field.metadata["alias"])}

    def _unknown(self, name):
        """The sentence on a flag that does not exist."""
        asked = (name, name.removeprefix("no"))
        for each in asked:
            if when := self._absent().get(each) or self._elsewhere(each):
                return when.absence(each, self.values.get(when.flag))
        aliases = [field.metadata["alias"] for field in options_of(self.classes).values()]
        names = [*self.names, *filter(None, aliases), "flagfile", "help", "helpfull"]
        meant = next(filter(None, (nearest_flag(each, names, _SIMILAR) for each in asked)), "")
        absent = [f"--{field.name}" for field in options_of(self.classes).values()
                  if is_required(field) and field.name not in self.given]
        advice = ""
        if meant:
            advice = f"did you mean --{meant}? "
        elif absent:
            advice = f"{', '.join(absent)} must be given; "
        return f"there is no flag --{name}; {advice}--helpfull lists all."

    def _elsewhere(self, name):
        """The `When` of an option that a value of another flag adds, or None. If that flag is not
        given, `adds` gets it as None, and may say in an InputError why nothing gives its value."""
        pairs = [(flag, value) for flag, value, kind in additions(
            self.classes, self.adds, self.given) if name in options_of([kind])]
        if not pairs:
            return None
        flag = pairs[0][0]
        if flag not in self.given:
            self.adds({**self.given, flag: None})
        return When(flag, tuple(value for _, value in pairs))


def additions(config_classes: Iterable[type], adds: Adds | None, typed: Given
              ) -> Iterator[tuple[str, str, type]]:
    """Yields (flag, value, dataclass that the value adds)."""
    for name, field in options_of(config_classes if adds else ()).items():
        for value in field.metadata["choices"] or ():
            with contextlib.suppress(InputError):
                yield from ((name, value, kind) for kind in adds({**typed, name: value}))


def _scan(arguments, config_classes):
    """{name: value} of the options that a command line gives, whether they exist with it or not."""
    flag_values = absl_flags.FlagValues()
    flag_values.set_gnu_getopt()
    for kind in config_classes:
        define(kind, flag_values)
    flag_values(arguments, known_only=True)
    # An alias counts as an occurrence of the flag itself, which still calls itself a default.
    return {name: getattr(flag_values, name) for name in options_of(config_classes)
            if flag_values[name].present}
