"""Options as JSON: read from files, compared between two descriptions of a job, and settled."""

import dataclasses
import json
import os
from typing import Any

from bert_tf.errors import InputError


def read_json(path: str | os.PathLike) -> dict[str, Any]:
    """The JSON object in the file `path`, as a dict.

    Raises:
        InputError: the file is absent, isn't JSON (names the line), or holds no object.
    """
    try:
        with open(path, "rb") as file:
            return parse_json(file.read(), path)
    except OSError as error:
        raise InputError(f"{path}: can't be read ({error.strerror}).") from error


def parse_json(content: bytes, source: str | os.PathLike) -> dict[str, Any]:
    """The JSON object in `content`, as a dict; errors call it `source`.

    Raises:
        InputError: `content` isn't JSON (names the line), or holds no object.
    """
    try:
        value = json.loads(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise InputError(f"{source}: is not UTF-8 text.") from error
    except json.JSONDecodeError as error:
        raise InputError(
            f"{source}, line {error.lineno}: is not valid JSON ({error.msg}).") from error
    except (ValueError, RecursionError) as error:   # a number or a nesting without end
        raise InputError(f"{source}: is not valid JSON ({error}).") from error
    if not isinstance(value, dict):
        raise InputError(f"{source}: must hold a JSON object such as {{\"vocab_size\": 30522}}.")
    return value


def check_shape(value: Any, shape: Any, place: str = "it") -> None:
    """Raises ValueError if a JSON value has another shape.

    Args:
        value: the value.
        shape: a type or a tuple of types; a list of the shape that all elements have; or the shapes
            of an object's values by name, where names that end in "?" may be absent. `int` stands
            for a number from 0 to 2^40.
        place: how errors name the value.
    """
    inner = "" if place == "it" else f"{place}."
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            raise ValueError(f"{place} is no JSON object")
        for key, part in shape.items():
            name = key.removesuffix("?")
            if name in value:
                check_shape(value[name], part, inner + name)
            elif name == key:
                raise ValueError(f"{place} has no {name}")
    elif isinstance(shape, list):
        if not isinstance(value, list):
            raise ValueError(f"{place} is no list")
        for number, part in enumerate(value):
            check_shape(part, shape[0], f"{place}[{number}]")
    elif not isinstance(value, shape) or type(value) is bool is not shape or (
            type(value) is int and not 0 <= value < 1 << 40):
        raise ValueError(f"{place} is {str(value)[:40]}")


def differing_options(mine: dict, theirs: dict, defaults: dict) -> list[str]:
    """The names of the options in which two descriptions of a job differ.

    Jobs keep on disk what their results depend on, so that the next start can tell whether it goes
    on with the same work. A later version may know more options than the one that wrote the file,
    or fewer. An absent name therefore means its default, on either side.

    Args:
        mine: JSON values by name, those of this start.
        theirs: JSON values by name, those on disk.
        defaults: JSON values by name; a name that has no default means None where it is absent.

    Returns:
        Names, in the order of `mine`, then those only `theirs` has.
    """
    def value(options, name):
        return options[name] if name in options else defaults.get(name)

    # Through JSON, tuples become lists.
    mine, theirs, defaults = (json.loads(json.dumps(o)) for o in (mine, theirs, defaults))
    return [name for name in dict.fromkeys([*mine, *theirs])
            if value(mine, name) != value(theirs, name)]


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
    """Every option of `given` from the first dict that has it: the flags, then what was saved with
    a model, then the defaults. An option is None where a dict does not have it."""
    return {name: next((source[name] for source in (given, *others)
                        if source.get(name) is not None), None) for name in given}


def same_options(mine: dict, theirs: dict, defaults: dict) -> bool:
    """Whether two descriptions of a job have equal options; see `differing_options`."""
    return not differing_options(mine, theirs, defaults)
