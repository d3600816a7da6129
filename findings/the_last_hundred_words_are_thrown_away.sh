#!/usr/bin/env bash
# lexicalrichness 0.5.1: msttr throws the last segment away also when it is whole, so that of a text cut to 200 words
# only the first 100 count.
#
# MSTTR, the mean segmental type-token ratio, measures how rich the vocabulary of a text is: the share of different
# words in each segment of 100 words, averaged. What is left at the end and shorter than a segment is to be discarded:
# "for a text size of 105 and a segment_window of 100, the last 5 tokens will be discarded". msttr deletes the last
# segment of its list by default, whatever its length. In 105 words that are the 5. If the length is a multiple of the
# window nothing is left over, and a whole segment goes: half of 200 words, a tenth of 1,000. Texts are cut to such
# round numbers before they are compared, since all these measures depend on the length. A text that begins well and
# then repeats one word has 1.0, the best value, and a text that ends well and one that ends badly are equal. One word
# more at the end, in itself discarded, changes the value from 1.0 to 0.505. With discard=False, which is right here,
# the rest of a longer text counts as much as a whole segment.
#
# Give discard=len(words) % window > 0. Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check lexicalrichness==0.5.1 numpy==2.4.6 scipy==1.17.1 \
    pandas==3.1.1
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from lexicalrichness import LexicalRichness

print("lexicalrichness", version("lexicalrichness"))
rng = np.random.default_rng(0)


def measured(words, window=100, **options):
    return LexicalRichness(words, preprocessor=None, tokenizer=None).msttr(segment_window=window, **options)


def definition(words, window=100):
    """The mean share of different words in all whole segments."""
    starts = range(0, len(words) - window + 1, window)
    return float(np.mean([len(set(words[start:start + window])) / window for start in starts]))


rich, poor = [f"word{number}" for number in range(100)], ["again"] * 100
for name, words in (("rich, then poor", rich + poor), ("rich, then rich", rich + rich[::-1]),
                    ("poor, then rich", poor + rich), ("rich, then poor, and a word", rich + poor + ["end"])):
    print(f"{len(words)} words, {name}: {measured(words):.3f}, by the definition {definition(words):.3f}")
    if len(words) == 200:
        assert measured(words) == definition(words[:100]), "the last segment counts now"
        assert np.isclose(measured(words, discard=False), definition(words))
        assert np.isclose(measured(words, discard=len(words) % 100 > 0), definition(words))
    else:
        assert np.isclose(measured(words), definition(words)) and np.isclose(definition(words), 0.505)
assert measured(rich + poor) == measured(rich + rich[::-1]) == 1

texts = [rng.zipf(1.5, 1000).clip(max=5000).tolist() for _ in range(200)]
for length in (950, 1000):
    errors = [abs(measured([str(number) for number in text[:length]]) - definition(text[:length])) for text in texts]
    print(f"{length} words of Zipf's law: mean error {np.mean(errors):.4f}")
    assert max(errors) < 1e-12 if length == 950 else np.mean(errors) > 0.002
PYTHON
echo "as seen"
