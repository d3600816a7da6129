"""Options as JSON: checked and settled."""

import collections.abc
import dataclasses
import json
import typing
from collections.abc import Callable
from typing import Any


class Values(typing.NamedTuple):
    """JSON values: in words for errors, and a check of one."""

    wanted: str
    fits: Callable[[Any], bool]


def check_shape(value: Any, shape: Any, place: str = "it") -> None:
    """Raises ValueError, with the name `place`, if a JSON value has another shape.

    A shape is a type or a tuple of types; `Values`; a list of the shape that all elements have; the
    shapes of an object's values by name, where names that end in "?" may be absent; or a dataclass,
    whose fields are all there and no others. A number of a type is from 0 to 2^40."""
    inner = "" if place == "it" else f"{place}."
    if isinstance(shape, Values):
        if not shape.fits(value):
            raise ValueError(f"{place} is {json.dumps(value)[:40]}; write {shape.wanted}")
    elif dataclasses.is_dataclass(shape):
        fields = {name: _shape_of(hint) for name, hint in typing.get_type_hints(shape).items()}
        check_shape(value, fields, place)
        if unknown := value.keys() - fields:
            raise ValueError(f"{place} has {', '.join(sorted(unknown))}")
    elif isinstance(shape, dict):
        if not isinstance(value, dict):
            raise ValueError(f"{place} is not a JSON object")
        for key, part in shape.items():
            name = key.removesuffix("?")
            if name in value:
                check_shape(value[name], part, inner + name)
            elif name == key:
                raise ValueError(f"{place} has no {name}")
    elif isinstance(shape, list):
        if not isinstance(value, list):
            raise ValueError(f"{place} is not a list")
        for number, part in enumerate(value):
            check_shape(part, shape[0], f"{place}[{number}]")
    elif not isinstance(value, shape) or type(value) is bool is not shape or (
            type(value) in (int, float) and not 0 <= value < 1 << 40):
        raise ValueError(f"{place} is {str(value)[:40]}")


def _shape_of(hint):
    if typing.get_origin(hint) is tuple:
        return [_shape_of(typing.get_args(hint)[0])]
    if typing.get_origin(hint) is collections.abc.Mapping:
        return {}
    return (int, float) if hint is float else hint


def defaults_of(dataclass: type) -> dict:
    """The defaults of a dataclass's fields by name; fields without one are left out."""
    defaults = {}
    for field in dataclasses.fields(dataclass):
        if field.default is not dataclasses.MISSING:
            defaults[field.name] = field.default
        elif field.default_factory is not dataclasses.MISSING:
            defaults[field.name] = field.default_factory()
    return defaults


def settle(flags: dict, *others: dict) -> dict:
    """Returns every option of `flags` from the first dict that has it, else None: the flags, then a
    model's saved options, then the defaults."""
    return {name: next((source[name] for source in (flags, *others)
                        if source.get(name) is not None), None) for name in flags}
