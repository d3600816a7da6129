"""Makes a notebook of two sections: text becomes Markdown, Python and commands become code.

    python docs/make_notebooks.py

A badge opens the notebook in Colab. The first cell installs the package, from the clone that the
notebook is in or from the address in setup.cfg.
"""

import configparser
import json
import pathlib
import re

HERE = pathlib.Path(__file__).parent
SECTIONS = (("using_a_model.md", "In Python"), ("export.md", "SavedModel"))
PATH = HERE / "notebooks" / "python.ipynb"
# A block of Python, or of indented lines, of which the first begins with a command.
BLOCK = re.compile(r"```python\n((?:.*\n)*?)```\n|^(    (?:bert-|curl ).*\n(?:    .*\n)*)", re.M)
INSTALL = """import importlib.util, os

if importlib.util.find_spec("bert_tf") is None:     # from the clone, or from the repository
    source = "../.." if os.path.exists("../../setup.cfg") else "git+{address}"
    %pip install -q $source"""


def address() -> str:
    """Returns the repository's public address, which setup.cfg names."""
    config = configparser.ConfigParser()
    config.read(HERE.parent / "setup.cfg", encoding="utf-8")
    return config["metadata"]["url"]


def badge() -> str:
    """Returns the badge that opens the notebook in Colab, as Markdown."""
    repository = address().removeprefix("https://github.com/")
    return ("[![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)]"
            f"(https://colab.research.google.com/github/{repository}/blob/main/"
            f"{PATH.relative_to(HERE.parent)})")


def section(page: str, heading: str) -> str:
    """Returns a section of a page, with links as from the folder of the notebook."""
    text = (HERE / page).read_text(encoding="utf-8")
    body = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    links = re.sub(r"\]\(#", f"]({page}#", body)
    return f"## {heading}\n" + re.sub(r"\]\((?!https?:)", "](../", links)


def cells() -> list[tuple[str, str]]:
    """Returns (kind, content) of the cells: "markdown", or "code"."""
    made = [("markdown", badge()), ("code", INSTALL.format(address=address()))]
    text, start = "\n".join(section(*each) for each in SECTIONS), 0
    for block in BLOCK.finditer(text):
        made.append(("markdown", text[start:block.start()]))
        command = block[2] and re.sub(r"(?<!\\\n)^    ", "!", block[2], flags=re.M)
        made.append(("code", command or block[1]))
        start = block.end()
    made.append(("markdown", text[start:]))
    return [(kind, part.strip()) for kind, part in made if part.strip()]


def notebook() -> str:
    """Returns the notebook as JSON."""
    made = []
    for number, (kind, content) in enumerate(cells()):
        cell = {"cell_type": kind, "id": f"cell-{number}", "metadata": {},
                "source": content.splitlines(keepends=True)}
        made.append({**cell, "execution_count": None, "outputs": []} if kind == "code" else cell)
    return json.dumps({
        "cells": made, "metadata": {"kernelspec": {
            "display_name": "Python 3", "language": "python", "name": "python3"}},
        "nbformat": 4, "nbformat_minor": 5}, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PATH.write_text(notebook(), encoding="utf-8")
