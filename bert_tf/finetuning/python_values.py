"""Values of Python as settings, with the types that the command line would give them."""

import contextlib
import dataclasses
import functools
import os
import typing
from collections.abc import Callable, Mapping
from typing import Any

from bert_tf.errors import InputError
from bert_tf.flags import shown

_WANTED = {list: "a list", bool: "True or False", int: "a whole number", float: "a number",
           str: "a text"}
_OF_COLUMNS = ("label_column",)         # may be several names, between commas
_BOOLS = {"true": True, "1": True, "false": False, "0": False}


def plain(value: Any) -> Any:
    """Returns numbers and arrays of NumPy as Python's, paths as str, and others as they are."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def typed(config_class: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values of a dataclass's fields, by name; others are left out.

    Lists become lists of str, and a str is divided at its commas if the field is a list. Raises
    InputError if a value has another type; names the setting."""
    hints, read = typing.get_type_hints(config_class), {}
    for name in (field.name for field in dataclasses.fields(config_class) if field.name in values):
        value = plain(values[name])
        # `int` of `int | None`, `list` of `list[str]`.
        names = hints[name], typing.get_origin(hints[name]), *typing.get_args(hints[name])
        kind = next(kind for kind in _WANTED if kind in names)
        if name in _OF_COLUMNS and isinstance(value, (list, tuple)):
            value = shown(value)
        read[name] = value
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            read[name] = _READERS[kind](value)
        if read[name] is not None and (not isinstance(read[name], kind)
                                       or isinstance(read[name], bool) and kind is not bool):
            raise InputError(f"{name} is {value!r}; it must be {_WANTED[kind]}.")
    return read


def _number(kind, value):
    """A value as a number, if it is written as one, or is equal to one."""
    if value is None or isinstance(value, bool):
        return value
    number = kind(value)
    if isinstance(value, str) or number == value:
        return number
    return value


def items(value: Any) -> Any:
    """A list, or a str with commas, as a list of str; other values as they are."""
    if isinstance(value, str):
        return list(filter(None, value.split(",")))
    return list(map(shown, value)) if isinstance(value, (list, tuple)) else value


# By type: reads what stands for a value of the type; gives back or refuses what does not.
_READERS: dict[type, Callable] = {
    bool: lambda value: _BOOLS.get(str(value).lower(), value),
    int: functools.partial(_number, int), float: functools.partial(_number, float),
    str: lambda value: shown(value) if isinstance(value, (int, float)) else value,
    list: items}
