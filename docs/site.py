"""Makes the pages of the site that are not written by hand: a hook of mkdocs, see mkdocs.yml.

The first page is README.md. The reference has a page for each command with all its flags, a page of
recipes, one of tasks, and one of what `import bert_tf` offers. None of them is kept in the
repository, so that none can differ from the code.
"""

import dataclasses
import inspect
import pathlib
import posixpath
import re
import textwrap

from mkdocs.structure.files import File, Files

import bert_tf
from bert_tf.flags.help import groups
from bert_tf.flags.options import default_of, is_required, shown
from bert_tf.recipes import RECIPES
from bert_tf.tasks.named import TASKS
from run_scripts import commands

_README = pathlib.Path(__file__).parents[1] / "README.md"
_WIDTH = 80         # columns of code that the theme shows beside both menus
_COMMAND = re.compile(r"^ {4,}bert-(?:.*\\\n)*.*", re.M)
_SECTION = re.compile(r"^(Args|Attributes|Raises|Example):\n((?: +\S.*(?:\n|$)|\n)+)", re.M)
# What makes the search show a page of the reference after the pages that people wrote.
_RANKED_LAST = "---\nsearch:\n  boost: 0.2\n---\n"


def on_config(config):
    """Adds the reference to the navigation."""
    for entry in config["nav"]:
        if "Reference" in entry:
            entry["Reference"] += [
                {"Flags": [{name: path} for name, path in command_pages().items()]},
                {"Recipes": "reference/recipes.md"}, {"Tasks": "reference/tasks.md"},
                {"Python": "reference/python.md"}]
    return config


def on_files(files: Files, config):
    """Adds the pages that are made."""
    pages = {"index.md": front_page(), "reference/recipes.md": recipes_page(),
             "reference/tasks.md": tasks_page(), "reference/python.md": python_page(),
             **{path: command_page(name) for name, path in command_pages().items()}}
    for path, text in pages.items():
        start = _RANKED_LAST if path.startswith("reference/") else ""
        files.append(File.generated(config, path, content=start + text))
    return files


def on_page_markdown(markdown, page, **_):
    """Names files of the repository that the site does not have, instead of linking to them, and
    wraps long commands."""
    def named(link):
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page.file.src_uri), link[2]))
        return f"{link[1]} (`{path.removeprefix('../')}`)" if path.startswith("../") else link[0]

    markdown = re.sub(r"\[([^]]+)\]\((\.\./[^)#]+)[^)]*\)", named, markdown)
    return _COMMAND.sub(lambda match: wrapped(match[0]), markdown)


def wrapped(command: str) -> str:
    """An indented command line, with at most `_WIDTH` columns where its flags allow it."""
    if "#" in command or max(map(len, command.split("\n"))) <= _WIDTH + 4:
        return command
    first, *others = re.split(r"\s*\\\n\s*|\s+(?=--)", command)
    lines = [first]
    for part in others:
        if len(lines[-1]) + len(part) + 3 > _WIDTH + 4:
            lines[-1] += " \\"
            lines.append(" " * 8 + part)
        else:
            lines[-1] += f" {part}"
    return "\n".join(lines)


def front_page() -> str:
    """README.md, with links as from docs/."""
    text = _README.read_text(encoding="utf-8")
    return re.sub(r"\]\((docs/)?(?!http)",
                  lambda found: "](" if found[1] else "](../", text)


def command_pages() -> dict[str, str]:
    """{program: path of its page}, of all commands."""
    return {name: f"reference/{name.replace(' ', '_').replace('--', '')}.md"
            for name in commands.program_names()}


def command_page(name: str) -> str:
    """A program's docstring, then a list for each group of its flags."""
    program = commands.describe(name)
    lines = [f"# {name}", "", prose(program.doc), ""]
    for kind, fields in groups(program.every_class()).items():
        title = " ".join((inspect.getdoc(kind) or "").partition("\n\n")[0].split())
        lines += [f"## {title.removesuffix('.')}", ""]
        for field, _ in sorted(fields, key=lambda pair: not is_required(pair[0])):
            lines += [f"`--{field.name}`{_default(field)}", f":   {_marked(_help(field))}", ""]
    return "\n".join(lines)


def _default(field):
    if is_required(field):
        return ", required"
    value = default_of(field)
    return "" if value in (None, "", []) else f", default `{shown(value)}`"


def _help(field):
    """The help of a flag, with its choices, its other name and where it applies."""
    data, text = field.metadata, field.metadata["help"].replace("\n", " ")
    if data["choices"]:
        text += f" One of {', '.join(map(str, data['choices']))}."
    if data["alias"]:
        text += f" Also `--{data['alias']}`."
    when = data["when"]
    return text + (f" {'Without' if when.is_without else 'With'} {when}." if when else "")


def prose(doc: str) -> str:
    """A docstring as Markdown: its lists of arguments are lists, its example is code."""
    def section(match):
        title, body = match[1], textwrap.dedent(match[2]).strip("\n")
        if title == "Example":
            return f"**{title}**\n\n{textwrap.indent(body, ' ' * 4)}\n"
        entries = [entry.partition(":") for entry in re.split(r"\n(?=\S)", body)]
        lines = [f"`{name}`\n:   {_marked(' '.join(text.split()))}\n" for name, _, text in entries]
        return "\n".join([f"**{title}**\n", *lines])

    parts = [part if part.startswith(("    ", "Example:")) else _marked(part)
             for part in doc.split("\n\n")]
    return _SECTION.sub(section, "\n\n".join(parts))


def _marked(text):
    """A text with its flags as code, and without HTML."""
    parts = re.sub(r"(?<!`)--\w[\w=]*", r"`\g<0>`", text).split("`")
    return "`".join(part if number % 2 else part.replace("<", "&lt;")
                    for number, part in enumerate(parts))


def _cell(text):
    """A text in a cell of a table."""
    return _marked(text).replace("|", "\\|")


def recipes_page() -> str:
    """A table of the recipes, and what each changes."""
    lines = ["# Recipes", "", "Kinds of pre-training: the values of `--recipe` of "
             "`bert-create-pretraining-data` and `bert-run-pretraining`.", "",
             "| recipe | source | tokenizer | network | objectives |", "|---|---|---|---|---|"]
    for recipe in RECIPES.values():
        terms = ", ".join(term.objective for term in recipe.terms)
        lines.append(f"| [{recipe.name}](#{recipe.name}) | {recipe.source} | {recipe.tokenizer} | "
                     f"{recipe.network} | {terms} |")
    for recipe in RECIPES.values():
        lines += ["", f"## {recipe.name}", "", "| setting | value |", "|---|---|"]
        for heading, values in (
                ("segments", dataclasses.asdict(recipe.segments)),
                ("default of", {f"--{name}": value for name, value in recipe.defaults.items()}),
                ("configuration", recipe.sizes)):
            lines += [f"| {heading} `{name}` | {_cell(str(value))} |"
                      for name, value in values.items() if value not in (None, "", False)]
        lines += [f"| size `{name}` | {_cell(', '.join(f'{k}={v}' for k, v in values.items()))} |"
                  for name, values in recipe.presets.items()]
    return "\n".join(lines)


def tasks_page() -> str:
    """A table of the named tasks."""
    lines = ["# Tasks", "", "Names of `--task` of `bert-finetune`, in their official files.", "",
             "| task | kind | labels | metrics, the headline first | files |",
             "|---|---|---|---|---|"]
    for task in TASKS.values():
        labels = ", ".join(map(str, task.labels)) if len(task.labels) < 12 else (
            f"{len(task.labels)} labels")
        files = ", ".join(f"`{file}`" for file in _files(task))
        lines.append(f"| {task.name} | {task.kind.name} | {labels} | {', '.join(task.metrics)} | "
                     f"{files} |")
    return "\n".join(lines)


def _files(task):
    """The official names of a task's files."""
    return {split.files[0]: None for split in task.splits.values() if split.files}


def python_page() -> str:
    """The docstrings of the names that people import."""
    lines = ["# Python", "", "What `import bert_tf` offers."]
    for name in sorted(bert_tf._HOMES):
        thing = getattr(bert_tf, name)
        lines += ["", f"## {name}", "", textwrap.indent(_call(name, thing), " " * 4), "",
                  prose(inspect.getdoc(thing) or "")]
    return "\n".join(lines)


def _call(name, thing):
    """The call of a class or a function with its parameters, on several lines if it is long."""
    try:
        signature = inspect.signature(thing)
    except ValueError:
        return f"bert_tf.{name}(...)"
    start, end = f"bert_tf.{name}(", re.sub(r"^.*\)", ")", str(signature))
    modules = re.compile(r"\b(?:collections\.abc|bert_tf|typing)(?:\.[a-z_]+)*\.")
    parameters = [modules.sub("", str(each)) for each in signature.parameters.values()]
    line = start + ", ".join(parameters) + end
    if len(line) <= _WIDTH:
        return line
    rows = [row if len(row) < _WIDTH - 5 else f"{row.partition(' = ')[0]} = ..."
            for row in parameters]
    return "\n".join([start, *(f"    {row}," for row in rows), end])
