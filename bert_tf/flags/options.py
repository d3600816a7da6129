"""Options: fields of dataclasses that know their help, their values, and where they apply."""

import contextlib
import dataclasses
import functools
import math
import shlex
import typing
from collections.abc import Callable, Iterable, Mapping

from bert_tf.errors import InputError, choose_from

REQUIRED = dataclasses.MISSING
_BOUNDS = ("least", "above", "most", "below")
_KINDS = {None: "", int: "a whole number", float: "a number"}
_LARGEST = 2 ** 63 - 1      # a whole number of 64 bits


class When(typing.NamedTuple):
    """Where an option exists: with some values of another option, `flag`.

    Attributes:
        values: these values; empty: all but its default.
        is_without: whether the option exists with the default of `flag` alone.
    """

    flag: str
    values: tuple = ()
    is_without: bool = False

    def holds(self, values: Mapping[str, typing.Any], defaults: Mapping[str, typing.Any]) -> bool:
        """Returns whether the option exists with these values of options."""
        value, default = values.get(self.flag), defaults.get(self.flag)
        if self.values:
            return any(item in self.values for item in items_of(value))
        return (value in (default, None, "", [], 0)) is self.is_without

    def __str__(self):
        first = ", ".join(map(shown, self.values[:3]))
        if not first:
            return f"--{self.flag}"
        others = f" and {len(self.values) - 3} others" if len(self.values) > 3 else ""
        return f"--{self.flag}={first}{others}"

    def absence(self, name: str, value: typing.Any) -> str:
        """The sentence on an option `name` that does not exist, since `flag` has this value."""
        if self.is_without:
            return f"there is no --{name} with {self}."
        if not self.values:
            return f"there is no --{name} without {self}."
        where = "here" if value is None else f"with --{self.flag}={shown(value)}"
        return f"there is no --{name} {where}; it is for {self}."


def option(default, help, *, choices=None, alias=None, rare=False, when=None, items=None, **bounds):
    """Returns a dataclass field that is also a flag.

    Args:
        default: the value when the flag is not given; `REQUIRED` makes the flag mandatory.
        help: sentences; those after a line break describe all choices, in `--helpfull` alone.
        choices: the allowed strings.
        alias: an older name of the same flag.
        rare: whether only `--helpfull` shows it.
        when: the `When` of an option that does not always exist; see `only` and `without`.
        items: number type of a list's strings, int or float.
        bounds: of the number, or of each item of a list: `least` or `above`, `most` or `below`.
    """
    assert set(bounds) <= set(_BOUNDS), bounds
    metadata = {"help": help, "choices": choices, "alias": alias, "rare": rare, "when": when,
                "items": items, "bounds": bounds}
    if default is REQUIRED:
        return dataclasses.field(metadata=metadata)
    if isinstance(default, list):
        return dataclasses.field(default_factory=lambda: list(default), metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def only(flag: str, *values: typing.Any) -> Callable[..., typing.Any]:
    """An `option` for fields that exist only with these values of another, or if it is given."""
    return functools.partial(option, when=When(flag, values))


def without(flag: str) -> Callable[..., typing.Any]:
    """Returns an `option` for fields that exist only where another is not given."""
    return functools.partial(option, when=When(flag, is_without=True))


def fields_of(config_class) -> list[dataclasses.Field]:
    """The fields of a dataclass, or of an instance, that are options."""
    return [field for field in dataclasses.fields(config_class) if "help" in field.metadata]


def options_of(config_classes: Iterable[type]) -> dict[str, dataclasses.Field]:
    return {field.name: field for kind in config_classes for field in fields_of(kind)}


def is_required(field) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def default_of(field):
    """The default of an option, None for one that must be given."""
    if is_required(field):
        return None
    if field.default is dataclasses.MISSING:
        return field.default_factory()
    return field.default


def defaults_of(dataclass: type) -> dict:
    """The defaults of a dataclass's fields by name; fields without one are left out."""
    return {field.name: default_of(field) for field in dataclasses.fields(dataclass)
            if not is_required(field)}


def changed(settings) -> dict[str, typing.Any]:
    return {field.name: value for field in fields_of(settings)
            if (value := getattr(settings, field.name)) != default_of(field)}


def items_of(value) -> list | tuple:
    """The items of a list; another value alone."""
    return value if isinstance(value, (list, tuple)) else [value]


def shown(value) -> str:
    """A value as it is written on the command line."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, items_of(value)))


def shown_default(value) -> str:
    """A value as in Python, a list as on the command line."""
    return ",".join(map(str, items_of(value)))


def command_line(program: str, *jobs) -> str:
    """Returns the command that gives the options of dataclasses their values, one per line."""
    return " \\\n    ".join([program, *(
        shlex.quote(f"--{name}={shown(value)}") for job in jobs
        for name, value in changed(job).items())])


def applicable(config_classes: Iterable[type], values: Mapping[str, typing.Any]) -> list[str]:
    """Returns the names of the options that exist with these values of options; an option without
    a value has its default."""
    fields = options_of(config_classes)
    defaults = {name: default_of(field) for name, field in fields.items()}
    known = {**defaults, **values}
    conditions = {name: field.metadata["when"] for name, field in fields.items()}

    def exists(name):
        when = conditions.get(name)
        return not when or (exists(when.flag) or when.is_without) and when.holds(known, defaults)

    return list(filter(exists, fields))


def check(settings) -> None:
    """Raises InputError for the first option that is refused, or that others' values rule out."""
    values = {field.name: getattr(settings, field.name) for field in fields_of(settings)}
    existing = applicable([type(settings)], values)
    for field in fields_of(settings):
        value, when = values[field.name], field.metadata["when"]
        if value is not None:
            _check_value(field, value)
        default = default_of(field)
        is_given = value not in (default, None, "", []) and not (value is False and default is None)
        if not is_given or field.name in existing or when.flag not in values:
            continue
        if values[when.flag] is not None or not when.values:    # else it is not settled yet
            raise InputError(when.absence(field.name, values[when.flag]))


def check_used(settings, *uses: tuple[str, typing.Any, str]) -> None:
    """Raises InputError for the first option that is given although nothing uses it: for what no
    flag tells, such as the kind of a task. `uses` are (option, whether something uses it, what)."""
    defaults = {field.name: default_of(field) for field in fields_of(settings)}
    for name, is_used, what in uses:
        if not is_used and getattr(settings, name) not in (None, defaults[name]):
            raise InputError(f"--{name} is for {what}; leave the flag out.")


def _check_value(field, value):
    metadata, bounds = field.metadata, _range(**field.metadata["bounds"])
    begin = f"--{field.name} is {shown(value)};"
    several = isinstance(value, (list, tuple))
    must = f"{begin} {'each' if several else 'it'} must be"
    for item in items_of(value):
        if metadata["choices"] and item not in metadata["choices"]:
            which = f" there is no {item}:" if several else ""
            raise InputError(f"{begin}{which} {choose_from(item, metadata['choices'])}")
        number = item
        if metadata["items"]:
            with contextlib.suppress(ValueError):
                number = metadata["items"](item)
        if number != number or metadata["bounds"] and number in (math.inf, -math.inf):
            raise InputError(f"{must} a finite number.")
        if not (metadata["bounds"] or metadata["items"]):
            continue
        if isinstance(number, str) or not is_within(number, **metadata["bounds"]):
            kind = " ".join(filter(None, (_KINDS[metadata["items"]], bounds)))
            raise InputError(f"{must} {kind}.")
    if type(value) is int and abs(value) > _LARGEST and not field.name.endswith("seed"):
        raise InputError(f"--{field.name} is {value}; give at most {_LARGEST}.")


def is_within(number, least=None, above=None, most=None, below=None) -> bool:
    """Returns whether a finite number is within bounds."""
    return (number - number == 0 and (least is None or number >= least)
            and (above is None or number > above)
            and (most is None or number <= most) and (below is None or number < below))


def _range(least=None, above=None, most=None, below=None):
    bounds = []
    if least is not None:
        bounds.append(f"at least {least}")
    elif above is not None:
        bounds.append(f"above {above}")
    if most is not None:
        bounds.append(f"at most {most}")
    elif below is not None:
        bounds.append(f"below {below}")
    if least is not None and len(bounds) > 1:
        return f"from {least} to {bounds[1].removeprefix('at most ')}"
    return " and ".join(bounds)


def group_of(config_class, name) -> type:
    return next(kind for kind in config_class.__mro__
                if name in vars(kind).get("__annotations__", {}))
