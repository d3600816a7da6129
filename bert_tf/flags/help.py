"""Texts of `--help` and `--helpfull`: the options of dataclasses in titled groups."""

import inspect
import sys
import textwrap

from absl import flags as absl_flags

from bert_tf.errors import InputError
from bert_tf.flags.options import default_of, fields_of, group_of, is_required, shown_default
from bert_tf.flags.parsing import CommandLine, types_of

SHORT, FULL = ("--help", "-h", "-help", "--helpshort"), ("--helpfull", "-helpfull")
_LONGEST = 72       # characters of choices after the name of a flag
_FLAGFILE = ("--flagfile=FILE reads flags from a file, one per line; most commands "
             "write their own beside their output, as flags.txt.")


def print_help(doc, config_classes, defaults=None, adds=None) -> None:
    arguments = [argument for argument in sys.argv if argument not in (*SHORT, *FULL)]
    try:
        line = CommandLine.open(arguments, config_classes, defaults, adds)
    except (absl_flags.Error, InputError):      # no reason to withhold the help
        line = CommandLine.open(arguments[:1], config_classes, None, adds)
    print(help_text(doc, line, any(argument in FULL for argument in sys.argv)))


def help_text(doc, line, is_full=False):
    """Returns the script's docstring, then groups of the flags that exist with a `CommandLine`,
    required ones first; all if `is_full`, else the common ones."""
    lines, hidden = [doc.strip()], 0
    for kind, fields in groups(line.classes).items():
        existing = [pair for pair in fields if pair[0].name in line.names]
        shown_ones = [pair for pair in existing if is_full or not pair[0].metadata["rare"]]
        hidden += len(existing) - len(shown_ones)
        if shown_ones:
            title = (inspect.getdoc(kind) or kind.__name__).partition("\n\n")[0]
            lines += ["", *textwrap.wrap(" ".join(title.split()).removesuffix("."), 96)]
        for field, type_ in sorted(shown_ones, key=lambda pair: not is_required(pair[0])):
            lines += _lines(field, type_, line.defaults, line.source, is_full)
    lines += ["", *textwrap.wrap(_FLAGFILE, 96)]
    if more := line.choices():
        lines += textwrap.wrap(
            f"To see more flags, add one of these to --help: {'; '.join(more)}.", 96)
    return "\n".join(lines + [f"{hidden} more: --helpfull"] * (hidden > 0))


def groups(config_classes):
    """{class: [(field, its type)]} of the classes that declare options, then of their bases."""
    titled = {}
    for config_class in config_classes:
        types, own = types_of(config_class), {config_class: []}
        for field in fields_of(config_class):
            own.setdefault(group_of(config_class, field.name), []).append(
                (field, types[field.name]))
        titled |= {kind: fields for kind, fields in own.items() if fields}
    return titled


def _lines(field, type_, defaults, source, is_full):
    choices = field.metadata["choices"] or ()
    text, _, details = field.metadata["help"].partition("\n")
    if is_full:
        text = f"{text} {details}"
    if choices and type_ is str:
        value = "{" + ",".join(choices) + "}"
    else:
        value = {list: "a,b,..."}.get(type_, type_.__name__)
    if len(value) > _LONGEST:
        value = "NAME"
        if any(f"{choice}: " not in text for choice in choices):
            text += f" Names: {', '.join(choices)}."
    if details and not is_full:
        text += " --helpfull describes each."
    left = f"  --[no]{field.name}" if type_ is bool else f"  --{field.name}={value}"
    if note := "; ".join(_notes(field, defaults, source)):
        left += f"   ({note})"
    return [left, *textwrap.wrap(text, 88, initial_indent=" " * 8, subsequent_indent=" " * 8,
                                 break_on_hyphens=False)]


def _notes(field, defaults, source):
    """Yields the notes in brackets after a flag in the help."""
    if field.name in defaults:
        yield f"default: {shown_default(defaults[field.name])}, from {source}"
    elif is_required(field):
        yield "required"
    elif default_of(field) not in (None, "", []):
        yield f"default: {shown_default(default_of(field))}"
    if field.metadata["alias"]:
        yield f"also --{field.metadata['alias']}"
