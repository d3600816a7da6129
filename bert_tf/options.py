"""Options as JSON: checked, compared between two descriptions of a job, and settled."""

import dataclasses
import json
from typing import Any


def check_shape(value: Any, shape: Any, place: str = "it") -> None:
    """Raises ValueError, with the name `place`, if a JSON value has another shape.

    Args:
        shape: a type or a tuple of types; a list of the shape that all elements have; or the shapes
            of an object's values by name, where names that end in "?" may be absent. `int` means a
            number from 0 to 2^40.
    """
    inner = "" if place == "it" else f"{place}."
    if isinstance(shape, dict):
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
            type(value) is int and not 0 <= value < 1 << 40):
        raise ValueError(f"{place} is {str(value)[:40]}")


def as_json(value: Any) -> Any:
    """Returns a value as it is after it was written and read: tuples are lists.

    Jobs keep on disk all options that decide their results, so that the next start knows whether it
    continues the same work: where what is on disk equals `as_json` of its own.
    """
    return json.loads(json.dumps(value))


def differing_options(mine: dict, other: dict) -> list[str]:
    """Returns the names of the options that differ between two descriptions of a job, in the order
    of `mine`. None means the same as an absent name."""
    mine, other = as_json(mine), as_json(other)
    return [name for name in dict.fromkeys([*mine, *other]) if mine.get(name) != other.get(name)]


def defaults_of(dataclass: type) -> dict:
    """The defaults of a dataclass's fields by name; fields without one are left out."""
    found = {}
    for field in dataclasses.fields(dataclass):
        if field.default is not dataclasses.MISSING:
            found[field.name] = field.default
        elif field.default_factory is not dataclasses.MISSING:
            found[field.name] = field.default_factory()
    return found


def settle(given: dict, *others: dict) -> dict:
    """Returns every option of `given` from the first dict that has it, else None: the flags, then a
    model's saved options, then the defaults."""
    return {name: next((source[name] for source in (given, *others)
                        if source.get(name) is not None), None) for name in given}
