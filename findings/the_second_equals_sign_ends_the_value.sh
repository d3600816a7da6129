#!/usr/bin/env bash
# conllu 6.0.0 cuts a value of MISC or FEATS at its second equals sign, and writes it back so.
#
# The column MISC of CoNLL-U holds free pairs of name and value: a link with a query, the original
# spelling of a token, a gloss. Whatever follows a second "=" is dropped without a word, and
# serialize writes the shorter value, so a corpus that is only read, given other tags and written has
# lost part of its annotation. The token "=" itself, spelt "CorrectForm==", gets no value at all. The
# same value in a comment line is whole.
#
# Look the column up in the text of the file. Seen in November 2026 with Python 3.11. The script
# fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check conllu==6.0.0
"$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import conllu

print("conllu", version("conllu"))
LINK = "https://example.org/entry?id=12&view=full"
FIRST = ["1", "E", "E", "NOUN", "_", "Number=Sing", "0", "root", "_", f"Gloss=energy|Ref={LINK}"]
SECOND = ["2", "=", "=", "SYM", "_", "_", "1", "punct", "_", "CorrectForm==|SpaceAfter=No"]
text = f"# ref = {LINK}\n" + "\t".join(FIRST) + "\n" + "\t".join(SECOND) + "\n\n"

sentence = conllu.parse(text)[0]
print("comment:", sentence.metadata["ref"])
print("tokens: ", [token["misc"] for token in sentence])
written = sentence.serialize().splitlines()
for before, after in zip(text.splitlines(), written):
    print("same   " if before == after else "changed", after.split("\t")[-1])
assert sentence.metadata["ref"] == LINK, "the comment is cut too"
assert sentence[0]["misc"] == {"Gloss": "energy", "Ref": "https://example.org/entry?id"}, "another value"
assert not sentence[1]["misc"]["CorrectForm"], "the value '=' is read now"
assert written[1].endswith("Ref=https://example.org/entry?id"), "another value is written"
PYTHON
echo "as seen"
