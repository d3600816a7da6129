#!/usr/bin/env bash
# tokenizers 0.23.3: of two added tokens whose normalised texts are equal, chance picks the winner.
#
# An uncased tokenizer gets the words "GPU" and "gpu" as added tokens, for example from a list of
# terms of a field. add_tokens answers that both were added, with ids 2 and 3, and both have a row in
# the embeddings. BertNormalizer makes the two equal, so only one can be met in a text. It is not
# always the first or always the last: each object, made anew or loaded from the same tokenizer.json,
# picks one of them by chance. A model trained with id 2 reads id 3 in the next process, a row that
# was never trained, and encode shows the same token "gpu" both times.
#
# A list of terms is lower-cased and freed of repeats before add_tokens. Seen in November 2026 with
# Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check tokenizers==0.23.3
"$folder/venv/bin/python" - <<'PYTHON'
import collections

import tokenizers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

print("tokenizers", tokenizers.__version__)
tokenizer = Tokenizer(models.WordPiece({"[UNK]": 0, "a": 1}, unk_token="[UNK]"))
tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
print("added", tokenizer.add_tokens(["GPU", "gpu"]))
saved = tokenizer.to_str()

counts = collections.Counter()
for _ in range(60):
    encoding = Tokenizer.from_str(saved).encode("a gpu")
    counts[str(encoding.tokens), tuple(encoding.ids)] += 1
print("one file, loaded 60 times, the text 'a gpu':")
for (tokens, ids), count in sorted(counts.items()):
    print(" ", tokens, list(ids), count, "times")
assert {ids for _, ids in counts} == {(1, 2), (1, 3)}, "one id wins every time now"
PYTHON
echo "as seen"
