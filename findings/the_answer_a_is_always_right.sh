#!/usr/bin/env bash
# qa-metrics 0.2.42: em_match finds the right answer in any text that holds its letters, so that "A" is always right,
# "no" is found in "unknown" and 3 in 1935; its precision is the recall and the other way round.
#
# The package is for answers to questions, and em_match is its "Normalized Exact Match", "True if there are any exact
# normalized matches". Both answers lose case, articles and punctuation, and then Python's "in" looks for the one in the
# other: not for equal texts, as SQuAD's exact match does, nor for equal words, as the example of its page would need,
# but for letters in a row. "No" is right for "I know that it is so", "art" for "a party", and of numbers below 100
# drawn by lot 2.8% are right where 1.0% are. A gold answer of articles alone is empty after the normalisation, and the
# empty text is in all: for questions with the choices A, B, C and D, whoever answers C to all gets 50% in place of 25%,
# and whoever answers by lot 42%. The same holds for the band "The The".
# f1_score_with_precision_recall calls the words of the right answer that are not in the given one false positives. So
# of the answer "paris is the capital of france" to the right one "paris" it says that its precision is 1 and its recall
# 0.17. It also counts each word once: "new new york" is as good as "new york". The F1 does not see the first.
#
# Take exact_match and f1 of torchmetrics' SQuAD or the lines below. Seen in November 2026 with Python 3.11. The script
# fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check contractions==0.1.73 nltk==3.10.4 \
    regex==2026.11.19 requests==2.34.2 tqdm==4.70.1
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps qa-metrics==0.2.42
NLTK_DATA="$folder/nltk" "$folder/venv/bin/python" - 2> "$folder/errors" <<'PYTHON' || { cat "$folder/errors"; exit 1; }
import random
import re
import string
from importlib.metadata import version

from qa_metrics.em import em_match
from qa_metrics.f1 import f1_score_with_precision_recall_normalized as f1_of

print("qa-metrics", version("qa-metrics"))


def normalised(text):
    """As SQuAD's script does it: lower case, no punctuation, no articles."""
    text = "".join(sign for sign in text.lower() if sign not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


for right, given in (("no", "unknown"), ("no", "yes, I know that it is so"), ("3", "1935"), ("art", "to a party"),
                     ("The The", "U2"), ("A", "C"), ("A", "none of these")):
    print(f"right: {right!r}, given: {given!r}, em_match: {em_match([right], given)}, "
          f"equal: {normalised(right) == normalised(given)}, "
          f"as words: {bool(re.search(rf'{chr(92)}b{re.escape(right.lower())}{chr(92)}b', given.lower()))}")
    assert em_match([right], given), "letters within words are no match now"
assert not em_match(["B"], "C") and em_match(["Paris"], "paris.")

random.seed(0)
choices = [random.choice("ABCD") for _ in range(4000)]
lot = [random.choice("ABCD") for _ in choices]
for name, answers, least, most in (("always C", ["C"] * 4000, 0.47, 0.53), ("by lot", lot, 0.42, 0.46)):
    found = sum(em_match([right], given) for right, given in zip(choices, answers)) / 4000
    equal = sum(right == given for right, given in zip(choices, answers)) / 4000
    print(f"four choices, {name}: em_match {found:.1%}, equal {equal:.1%}")
    assert least < found < most and 0.23 < equal < 0.27, "A is A alone now"
pairs = [(str(random.randrange(100)), str(random.randrange(100))) for _ in range(20000)]
found, equal = (sum(test(*pair) for pair in pairs) / 20000 for test in (em_match, str.__eq__))
print(f"numbers by lot: em_match {found:.1%}, equal {equal:.1%}")
assert found > 2.5 * equal, "digits within numbers are no match now"

seen = f1_of("paris", "paris is the capital of france")
print("right 'paris', given six words:", seen, "one of six given words is right: precision 0.17, recall 1")
assert seen["precision"] == 1 and abs(seen["recall"] - 1 / 6) < 1e-9, "precision is precision now"
assert f1_of("new york", "new new york")["f1"] == 1, "repeated words count now"
PYTHON
echo "as seen"
