#!/usr/bin/env bash
# sentencex 1.0.32: no Chinese or Japanese sentence ends before a digit.
#
# The ideographic full stop "。" ends a sentence whatever follows; unlike "." it is no decimal point.
# sentencex does not split where a digit follows directly, and Chinese and Japanese put no blank
# between sentences. So two sentences stay one where the second begins with a year, a date or a count,
# which is common in encyclopedias and news. Sentence pairs for next-sentence prediction then hold
# several sentences as one, and long ones are cut at the maximum length. The same text with a Chinese
# numeral is split, and so is Hindi, with its blank, before a digit. pysbd 0.3.4 splits all of them.
#
# Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check sentencex==1.0.32 pysbd==0.3.4
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import pysbd
from sentencex import segment

print("sentencex", version("sentencex"), "pysbd", version("pysbd"))
CASES = [
    ("zh", "教堂是宝藏之一。2007年，完成了工程。", 1),
    ("zh", "教堂是宝藏之一。二〇〇七年，完成了工程。", 2),
    ("zh", "他来了！3天以后走了。", 1),
    ("ja", "これは教会です。2007年に完成した。", 1),
    ("ja", "これは教会です。昨年に完成した。", 2),
    ("hi", "यह है। 2007 में।", 2),
]
for language, text, seen in CASES:
    ours = list(segment(language, text))
    other = pysbd.Segmenter(language=language, clean=False).segment(text)
    print(language, len(ours), ours, "pysbd:", len(other))
    assert len(ours) == seen, f"{len(ours)} sentences, not {seen}"
    assert len(other) == 2, f"pysbd finds {len(other)} sentences"
PYTHON
echo "as seen"
