#!/usr/bin/env bash
# nervaluate 1.2.1: with lists of spans, an entity that only touches the right one counts as overlap.
#
# nervaluate takes Prodigy's spans, whose "start" and "end" are characters and whose end is the first
# character after the entity, as in spaCy and Label Studio. It reads the end as the last one inside.
# Two neighbours without a character in common then overlap: the Type score calls the wrong one
# correct, the Partial score gives half a point and nothing is missed or spurious. It is
# common where entities have no blank between them, as in Chinese and Japanese or around a hyphen.
# min_overlap_percentage is measured with one character too many as well, so an entity of which a
# quarter was found passes 40. Tags of the same entities as lists of BIO give the right counts.
#
# Take 1 from each end before. Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check nervaluate==1.2.1
"$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

from nervaluate import Evaluator

print("nervaluate", version("nervaluate"))


def counts(gold, predicted, loader, **options):
    """Correct, partial, missed, spurious of the Type and the Partial score."""
    overall = Evaluator([gold], [predicted], tags=["LOC"], loader=loader, **options).evaluate()["overall"]
    return {name: (overall[name].correct, overall[name].partial, overall[name].missed, overall[name].spurious)
            for name in ("ent_type", "partial")}


def span(start, end):
    return [{"label": "LOC", "start": start, "end": end}]


text = "東京大阪"
print("gold", text[0:2], "predicted", text[2:4])
spans = counts(span(0, 2), span(2, 4), "dict")
tags = counts(["B-LOC", "I-LOC", "O", "O"], ["O", "O", "B-LOC", "I-LOC"], "list")
print("spans:", spans)
print("tags: ", tags)
assert spans == {"ent_type": (1, 0, 0, 0), "partial": (0, 1, 0, 0)}, "the spans are counted otherwise"
assert tags == {"ent_type": (0, 0, 1, 1), "partial": (0, 0, 1, 1)}, "the tags are counted otherwise"
assert counts(span(0, 1), span(2, 3), "dict")["ent_type"] == (0, 0, 1, 1), "a gap counts as overlap"
quarter = counts(span(0, 4), span(0, 1), "dict", min_overlap_percentage=40)
print("1 of 4 characters, at least 40 %:", quarter)
assert quarter["ent_type"][0] == 1, "a quarter is below 40 % now"
PYTHON
echo "as seen"
