#!/usr/bin/env bash
# py3langid 0.4.0: numbers, dates and short words are Afrikaans, the first of its classes.
#
# The model has a class "zxx" for what is no language, which its page says catches numbers. A line in
# which the model meets none of its features never gets that far: all classes have the same score,
# and classify answers the first of them, "af". If the languages are limited to English and German it
# is "de"; with norm_probs=True it is Serbian, which has two classes and so 2 in 142. langid 1.1.6,
# whose place it takes, answers "en" for such lines. In a multilingual corpus sorted by lines the
# Afrikaans part fills with dates, table cells and one-word answers, and an English filter drops "No".
#
# Lines with the smallest float32 as score have no language; or pass norm_probs=True and
# min_confidence. Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check py3langid==0.4.0 langid==1.1.6
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import langid
from py3langid.langid import MODEL_FILE, LanguageIdentifier

print("py3langid", version("py3langid"), "langid", version("langid"))
plain = LanguageIdentifier.from_model_file(MODEL_FILE)
share = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
two = LanguageIdentifier.from_model_file(MODEL_FILE)
two.set_languages(["en", "de"])
assert "zxx" in plain.labels
for text in ["123", "12.05.2020", "", "No", "Hi", "Ja", "A"]:
    language, score = plain.classify(text)
    print(f"{text!r:13}", language, score, share.classify(text), "of two:", two.classify(text)[0],
          "langid:", langid.classify(text)[0])
    assert language == "af" and score < -3e38, "another answer"
    assert share.classify(text)[0] == "sr", "another answer with norm_probs"
    assert two.classify(text)[0] == "de", "another answer of two languages"
    assert langid.classify(text)[0] == "en", "another answer of langid"
print("a sentence:", plain.classify("This is a sentence in English.")[0])
assert plain.classify("This is a sentence in English.")[0] == "en"
PYTHON
echo "as seen"
