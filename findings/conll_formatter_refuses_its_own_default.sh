#!/usr/bin/env bash
# spacy-conll 4.0.1 beside spaCy 3.8.18: add_pipe("conll_formatter") refuses its own default.
#
# The call is the first example of spacy-conll's page. The component declares field_names as a
# dictionary with the default None. spaCy 3.8.18 checks the settings strictly and reports that None
# is no dictionary, although the user set nothing; include_headers=True ends in the same error, which
# reads as a mistake in the user's configuration. pip check sees no conflict.
#
# Pass config={"field_names": {}}: the component then works, with the usual names of the columns.
# Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    spacy==3.8.18 spacy-conll==4.0.1 pydantic==2.14.4
"$folder/venv/bin/pip" check
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import spacy
import spacy_conll  # noqa: F401, registers the component

for package in ("spacy", "spacy-conll", "pydantic"):
    print(package, version(package))


def table(**config):
    """The CoNLL-U table of two words, or the error."""
    language = spacy.blank("en")
    language.add_pipe("sentencizer")
    try:
        language.add_pipe("conll_formatter", config=config, last=True)
    except ValueError as error:
        return f"{type(error).__name__}: " + " ".join(str(error).split())[:110]
    return language("He left")._.conll_str


for config in ({}, {"include_headers": True}):
    result = table(**config)
    print(config, "->", result)
    assert "field_names" in result and "None is not" in result, "the default is accepted now"
result = table(field_names={})
print({"field_names": {}}, "->")
print(result)
assert result.startswith("1\tHe\t"), "the empty dictionary does not help"
PYTHON
echo "as seen"
