"""Texts of `--help` and `--helpfull`: the options of dataclasses in titled groups."""

import contextlib
import inspect
import sys
import textwrap

from absl import flags as absl_flags

from bert_tf.errors import InputError
from bert_tf.flags.options import default_of, fields_of, group_of, is_required, shown
from bert_tf.flags.parsing import define, expand_flagfiles, given_in_flags, take_defaults, types_of

SHORT, FULL = ("--help", "-h", "-help", "--helpshort"), ("--helpfull", "-helpfull")
_LONGEST = 72       # characters of choices after the name of a flag
_FLAGFILE = ("--flagfile=FILE reads flags from a file, one per line; most commands "
             "write their own beside their output, as flags.txt.")


def print_help(doc, config_classes, defaults=None, recipe=None) -> None:
    """Prints the help that the command line asks for; see `help_text`. `recipe` is a function of
    the given flags."""
    source, taken, given, found = "", {}, {}, None
    flag_values = absl_flags.FlagValues()
    for config_class in config_classes:
        define(config_class, flag_values)
    # A flag that can't be read is no reason to withhold the help.
    with contextlib.suppress(absl_flags.Error, InputError):
        flag_values(expand_flagfiles(arg for arg in sys.argv if arg not in (*SHORT, *FULL)))
        given = given_in_flags(config_classes, flag_values)
        found = recipe(given) if recipe else None
        if defaults:
            source, taken = take_defaults(defaults, config_classes, flag_values)
    is_full = any(argument in FULL for argument in sys.argv)
    print(help_text(doc, config_classes, taken, source, given, found, is_full))


def help_text(doc, config_classes, defaults=(), source="", given=(), recipe=None, is_full=False):
    """Returns the script's docstring, then groups of flags, required ones first.

    Args:
        defaults: dict of the defaults that differ from the dataclasses' own.
        source: a phrase that names the source of these defaults.
        given: dict of the flags on the command line.
        recipe: decides on options without a flag in their `Scope`, or None.
        is_full: whether all options are shown, not only common ones that apply.
    """
    known = {field.name: default_of(field) for kind in config_classes for field in fields_of(kind)}
    known |= {**dict(defaults), **dict(given)}
    lines, hidden = [doc.strip()], 0
    for kind, fields in groups(config_classes).items():
        found = [pair for pair in fields if is_full or _is_shown(pair[0], known, recipe)]
        hidden += len(fields) - len(found)
        if found:
            lines += ["", *textwrap.wrap(_title(kind), 96)]
        for field, type_ in sorted(found, key=lambda pair: not is_required(pair[0])):
            lines += _lines(field, type_, defaults, source)
    lines += ["", *textwrap.wrap(_FLAGFILE, 96)]
    return "\n".join(lines + [f"{hidden} more: --helpfull"] * (hidden > 0))


def groups(config_classes):
    """Returns {class: [(field, its type)]} of the classes that declare the options: each class,
    then its bases."""
    found = {}
    for config_class in config_classes:
        types, own = types_of(config_class), {config_class: []}
        for field in fields_of(config_class):
            own.setdefault(group_of(config_class, field.name), []).append(
                (field, types[field.name]))
        found |= {kind: fields for kind, fields in own.items() if fields}
    return found


def _title(kind):
    """The first line or sentence of a class's docstring."""
    text = (inspect.getdoc(kind) or kind.__name__).partition("\n\n")[0]
    return " ".join(text.split()).removesuffix(".")


def _is_shown(field, known, recipe):
    if field.metadata["rare"]:
        return False
    scope = field.metadata["for"]
    if scope is None:
        return True
    value = known[scope.flag] if scope.flag else recipe
    return value is not None and scope.holds(value)


def _lines(field, type_, defaults, source):
    choices, text = ",".join(field.metadata["choices"] or ()), field.metadata["help"]
    value = "{" + choices + "}" if choices and type_ is str else {
        list: "a,b,..."}.get(type_, type_.__name__)
    if len(value) > _LONGEST:
        value, text = "NAME", f"{text} Names: {choices.replace(',', ', ')}."
    left = f"  --[no]{field.name}" if type_ is bool else f"  --{field.name}={value}"
    note = "; ".join(_notes(field, defaults, source))
    return [left + (f"   ({note})" if note else ""),
            *textwrap.wrap(text, 88, initial_indent=" " * 8, subsequent_indent=" " * 8)]


def _notes(field, defaults, source):
    """Yields the notes in brackets after a flag in the help."""
    if field.name in defaults:
        yield f"default: {_value(defaults[field.name])}, from {source}"
    elif is_required(field):
        yield "required"
    elif default_of(field) not in (None, "", []):
        yield f"default: {_value(default_of(field))}"
    if field.metadata["for"]:
        yield f"for {field.metadata['for'].what}"
    if field.metadata["alias"]:
        yield f"also --{field.metadata['alias']}"


def _value(value):
    return value if isinstance(value, bool) else shown(value)
