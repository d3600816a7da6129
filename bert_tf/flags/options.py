"""Options: fields of dataclasses that know their help, their values, and where they apply."""

import dataclasses
import shlex
import typing
from collections.abc import Callable, Iterable, Mapping

from bert_tf.errors import InputError, choose_from

REQUIRED = dataclasses.MISSING
_BOUNDS = ("least", "above", "most", "below")
_LARGEST = 2 ** 63 - 1      # a whole number of 64 bits


class Scope(typing.NamedTuple):
    """The cases where an option applies.

    Attributes:
        what: completes "--name is for ...".
        holds: function of the recipe; with `flag`, of that field's value.
        off: a value that may be given in all other cases too, since it changes nothing there.
    """

    what: str
    holds: Callable[[typing.Any], bool]
    flag: str = ""
    off: typing.Any = None


def option(default, help, *, choices=None, alias=None, rare=False, for_=None, items=None, **bounds):
    """Returns a dataclass field that is also a flag.

    Args:
        default: the value when the flag is not given; `REQUIRED` makes the flag mandatory.
        choices: the allowed strings.
        alias: an older name of the same flag.
        rare: whether only `--helpfull` shows it.
        for_: the `Scope` where it may be given; None for all.
        items: number type of a list's strings, int or float.
        bounds: of the number, or of each item of a list: `least` or `above`, `most` or `below`.
    """
    assert set(bounds) <= set(_BOUNDS), bounds
    metadata = {"help": help, "choices": choices, "alias": alias, "rare": rare, "for": for_,
                "items": items, "bounds": bounds}
    if default is REQUIRED:
        return dataclasses.field(metadata=metadata)
    if isinstance(default, (list, tuple)):
        return dataclasses.field(default_factory=lambda: list(default), metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def fields_of(config_class) -> list[dataclasses.Field]:
    """The fields of a dataclass, or of an instance, that are options."""
    return [field for field in dataclasses.fields(config_class) if "help" in field.metadata]


def is_required(field) -> bool:
    """Returns whether an option must be given."""
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def default_of(field):
    """The default of an option, None for one that must be given."""
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return None if field.default is dataclasses.MISSING else field.default


def changed(settings) -> dict[str, typing.Any]:
    """The options of a dataclass that differ from their defaults, by name."""
    return {field.name: value for field in fields_of(settings)
            if (value := getattr(settings, field.name)) != default_of(field)}


def shown(value) -> str:
    """A value as it is written on the command line."""
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def command_line(program: str, *jobs) -> str:
    """Returns the command that gives the options of dataclasses their values, one per line."""
    return " \\\n    ".join([program, *(
        shlex.quote(f"--{name}={shown(value)}") for job in jobs
        for name, value in changed(job).items())])


def check(settings, recipe=None) -> None:
    """Raises InputError for the first option whose value is refused, or that does not apply.

    Args:
        recipe: decides on options without a `flag` in their `Scope`; None: they are not checked.
    """
    for field in fields_of(settings):
        value = getattr(settings, field.name)
        if value is not None:
            _check_value(field, value)
    check_scope(settings, recipe)


def check_scope(settings, recipe=None) -> None:
    """Raises InputError for the first option that is given where it does not apply; see `check`."""
    for field in fields_of(settings):
        scope, value = field.metadata["for"], getattr(settings, field.name)
        if not scope or not (scope.flag or recipe) or _says_nothing(field, value, recipe):
            continue
        if value != scope.off and not scope.holds(
                getattr(settings, scope.flag) if scope.flag else recipe):
            missing = f"add {scope.what}, or " * scope.what.startswith("--")
            raise InputError(f"--{field.name}={shown(value)} is for {scope.what}; {missing}leave "
                             "the flag out" + (
                                 "." if scope.flag else f" with --recipe={recipe.name}."))


def check_used(settings, *uses: tuple[str, typing.Any, str],
               defaults: Mapping[str, typing.Any] | None = None) -> None:
    """Raises InputError for the first option that is given although nothing uses it: for options
    whose `Scope` depends on more than one flag.

    Args:
        uses: (option, whether something uses it, what uses it) each.
        defaults: values by option that count as not given; None: the dataclass's own.
    """
    if defaults is None:
        defaults = {field.name: default_of(field) for field in fields_of(settings)}
    for name, is_used, what in uses:
        if not is_used and getattr(settings, name) not in (None, defaults[name]):
            raise InputError(f"--{name} is for {what}; leave the flag out.")


def without_idle(values: Mapping[str, typing.Any], config_classes: Iterable[type],
                 given: Mapping[str, typing.Any]) -> dict[str, typing.Any]:
    """Returns the values by option without options that do not apply with the given ones."""
    scopes = {field.name: field.metadata["for"] for kind in config_classes
              for field in fields_of(kind)}
    return {name: value for name, value in values.items()
            if not (scope := scopes.get(name)) or scope.flag not in given
            or scope.holds(given[scope.flag])}


def _says_nothing(field, value, recipe):
    """Returns whether a value is the option's default, is the recipe's default, or switches the
    option off."""
    default = default_of(field)
    return (value in (default, None, "", [], ()) or (value is False and default is None)
            or value == getattr(recipe, "defaults", {}).get(field.name, default))


def _check_value(field, value):
    metadata = field.metadata
    several = isinstance(value, (list, tuple))
    for item in value if several else (value,):
        if metadata["choices"] and item not in metadata["choices"]:
            raise InputError(f"--{field.name} is {shown(value)}; " + (
                f"there is no {item}: " if several else "") + choose_from(
                    item, metadata["choices"]))
        if item != item:
            raise InputError(f"--{field.name} is {shown(value)}; it must be "
                             f"{_range(**metadata['bounds']) or 'a number'}.")
        if not (metadata["bounds"] or metadata["items"]):
            continue
        try:
            number = metadata["items"](item) if metadata["items"] else item
        except ValueError:
            number = float("nan")
        if not is_within(number, **metadata["bounds"]):
            must = "each must be" if several else "it must be"
            raise InputError(f"--{field.name} is {shown(value)}; {must} {_kind(metadata)}"
                             f"{_range(**metadata['bounds'])}.")
    if type(value) is int and abs(value) > _LARGEST and not field.name.endswith("seed"):
        raise InputError(f"--{field.name} is {value}; give at most {_LARGEST}.")


def is_within(number, least=None, above=None, most=None, below=None) -> bool:
    """Returns whether a number is within bounds; NaN is not."""
    return (number == number and (least is None or number >= least)
            and (above is None or number > above)
            and (most is None or number <= most) and (below is None or number < below))


def _kind(metadata):
    if not metadata["items"]:
        return ""
    return ("a whole number " if metadata["items"] is int else "a number ")[
        :None if metadata["bounds"] else -1]


def _range(least=None, above=None, most=None, below=None):
    """Completes "it must be ..."."""
    upper = ([f"at most {most}"] if most is not None else
             ["finite"] if below == float("inf") else
             [f"below {below}"] if below is not None else [])
    if least is not None and upper and upper != ["finite"]:
        return f"from {least} to {upper[0].removeprefix('at most ')}"
    lower = ([f"at least {least}"] if least is not None else
             [f"above {above}"] if above is not None else [])
    return " and ".join(lower + upper)


def group_of(config_class, name) -> type:
    """The class that declares a field."""
    return next(kind for kind in config_class.__mro__
                if name in vars(kind).get("__annotations__", {}))


def given_in(config_classes: Iterable[type]) -> list[str]:
    """The names of all options of some dataclasses."""
    return [field.name for kind in config_classes for field in fields_of(kind)]
