#!/usr/bin/env bash
# pysbd 0.3.4 drops whole sentences that hold one of its inner signs, as "B♭ major" or "10 M☉".
#
# pysbd marks what it must not split with rare signs (♭ for a colon, ♬, ☉, ☈, ∯ for a full stop and
# others) and turns them back afterwards. A text that holds such a sign by itself comes back altered:
# the sentences are looked for in the original text once more, are not there, and are left out
# without a word, with clean=False and with char_span=True too. The flat sign of musical keys, the
# solar mass and radius of astronomy and the closed surface integral are in many encyclopedia
# articles. Whoever cuts such a dump into sentences for pre-training loses them.
#
# Compare "".join(segments) with the text. Seen in November 2026 with Python 3.11. The script fails
# if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pysbd==0.3.4
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import pysbd

print("pysbd", version("pysbd"))
CASES = {
    "The symphony in B flat major is short. It was written in 1786.":
        ["The symphony in B flat major is short. ", "It was written in 1786."],
    "The symphony in B♭ major is short. It was written in 1786.": ["It was written in 1786."],
    "The sonata is in E♭ major.": [],
    "The star has 10 M☉ and 3 R☉. It is hot.": [". ", "It is hot."],
    "The integral ∯ is closed. The other is not.": ["The other is not."],
}
plain = pysbd.Segmenter(language="en", clean=False)
spans = pysbd.Segmenter(language="en", clean=False, char_span=True)
for text, seen in CASES.items():
    sentences = plain.segment(text)
    covered = sum(span.end - span.start for span in spans.segment(text))
    print(repr(text), "->", sentences, f"spans cover {covered} of {len(text)} characters")
    assert sentences == seen, f"not {seen}"
    assert covered == len("".join(seen)), "the spans hold something else"
PYTHON
echo "as seen"
