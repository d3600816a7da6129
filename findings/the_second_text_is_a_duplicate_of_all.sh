#!/usr/bin/env bash
# datatrove 0.10.1: SingleBloomFilter drops nearly all texts as duplicates when m_bytes is a round number: of 300 texts
# that share nothing one is left with a mebibyte, and two with a million bytes.
#
# The filter drops texts most of whose n-grams it has seen. get_indexes puts each hash through bitwise_and with
# m_bytes in place of a remainder. With m_bytes=2**20 only one bit of the hash is left, so that all n-grams share two
# places in the filter, and after the first text all that come are "seen". A million has seven ones in binary, which
# makes 128 places. Only 2**n - 1, which is what the library's own test takes, gives all places, and then they are
# counted in bytes and not in bits, an eighth of the filter. Yet the log names a "False probability" of 3e-14 at the
# end for a filter that takes everything for known. With expected_elements in place of k, k is eight times the best, as
# the size in bits is multiplied by eight again: 59 hashes in place of 7 for 800,000 n-grams in a mebibyte. The texts
# count as dropped duplicates in the statistics. No warning comes.
#
# Take m_bytes=2**n - 1, eight times as much as you need, and give k. Seen in November 2026 with Python 3.11. The
# script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check datatrove==0.10.1 spacy==3.8.18 xxhash==3.8.2 \
    nltk==3.10.4 tokenizers==0.23.3 regex numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" - 2> "$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
import random
from importlib.metadata import version

from datatrove.data import Document
from datatrove.pipeline.dedup.bloom_filter import BloomFilterConfig, SingleBloomFilter, get_false_positive_prob

print("datatrove", version("datatrove"))
syllables = [first + second for first in "bdfgklmnprstv" for second in "aeiou"]
chooser = random.Random(0)
words = ["".join(chooser.choices(syllables, k=3)) for _ in range(5000)]
texts = [" ".join(chooser.choices(words, k=60)) for _ in range(300)]
ngrams = [[tuple(text.split()[start:start + 13]) for start in range(48)] for text in texts]
assert len(set(sum(ngrams, []))) == 300 * 48, "the texts share something"


def filtered(m_bytes, texts, **options):
    config = BloomFilterConfig(m_bytes=m_bytes, **options)
    step = SingleBloomFilter("out", config)
    kept = [document.id for document in step.run([Document(text=text, id=str(i)) for i, text in enumerate(texts)])]
    places = sum(byte.bit_count() for byte in step.bit_vector)
    claim = get_false_positive_prob(m_bytes, n=48 * len(texts), k=config.k)
    print(f"m_bytes={m_bytes}, k={config.k}: {len(kept)} of {len(texts)} texts are left, {places} bits are set,"
          f" false probability by the library {claim:.0e}")
    return len(kept)


kept = {m_bytes: filtered(m_bytes, texts, k=7) for m_bytes in (2**20, 10**6, 2**20 - 1)}
assert kept[2**20] <= 2 and kept[10**6] <= 5 and kept[2**20 - 1] == 300, "all places of the filter are used now"
assert filtered(2**20 - 1, [*texts, *texts], k=7) == 300
best = round(8 * 2**20 / 800_000 * 0.693)
k = BloomFilterConfig(m_bytes=2**20 - 1, expected_elements=800_000).k
print(f"k for 800,000 n-grams in a mebibyte: {k}, best {best}")
assert 7 * best < k < 9 * best, "k is right now"
PYTHON
echo "as seen"
