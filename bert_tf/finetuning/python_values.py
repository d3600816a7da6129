"""Values of Python as settings, with the types that the command line would give them."""

import dataclasses
import os
import typing
from collections.abc import Mapping
from typing import Any

from bert_tf.errors import InputError

_WANTED = {bool: "True or False", int: "a whole number", float: "a number", str: "a text",
           list: "a list"}
_BOOLS = {"true": True, "1": True, "false": False, "0": False}


def plain(value: Any) -> Any:
    """Returns numbers and arrays of NumPy as Python's, paths as str, and others as they are."""
    return value.tolist() if hasattr(value, "tolist") else (
        os.fspath(value) if isinstance(value, os.PathLike) else value)


def written(value: Any) -> str:
    """Returns a value as it is written on the command line."""
    if isinstance(value, (list, tuple)):
        return ",".join(map(written, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def typed(config_class: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values of a dataclass's fields, by name; others are left out.

    Lists become lists of str, and a str is divided at its commas if the field is a list.

    Raises:
        InputError: a value has another type; names the setting.
    """
    hints = typing.get_type_hints(config_class)
    return {field.name: _typed(field.name, plain(values[field.name]), _kind(hints[field.name]))
            for field in dataclasses.fields(config_class) if field.name in values}


def _kind(hint):
    """The plain type: `int` for `int | None`, `list` for `list[str]`."""
    names = (hint, typing.get_origin(hint)) if typing.get_origin(hint) is list else (
        hint, *typing.get_args(hint))
    return next(kind for kind in _WANTED if kind in names)


def _typed(name, value, kind):
    found = value
    try:
        if kind in (int, float) and value is not None and not isinstance(value, bool):
            found = kind(value)
            found = found if isinstance(value, str) or found == value else value
        elif kind is bool:
            found = _BOOLS.get(str(value).lower(), value)
        elif kind is str and isinstance(value, (bool, int, float)):
            found = written(value)
        elif kind is list and isinstance(value, (str, list, tuple)):
            items = filter(None, value.split(",")) if isinstance(value, str) else value
            found = [written(item) for item in items]
    except (TypeError, ValueError, OverflowError):
        pass
    if found is not None and (not isinstance(found, kind)
                              or isinstance(found, bool) and kind is not bool):
        raise InputError(f"{name} is {value!r}; it must be {_WANTED[kind]}.")
    return found
