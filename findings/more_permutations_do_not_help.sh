#!/usr/bin/env bash
# datasketch 2.0.0: bBitMinHash of a default MinHash errs by up to 1 for short texts, however many permutations there
# are, as all of them give a word the same last bits: two different words are equal or opposites by lot.
#
# A MinHash keeps the smallest of the permuted hashes of a text's words, for each permutation, and texts are alike as
# often as these are equal. bBitMinHash keeps the last b bits of each only, and corrects for those that are equal by
# chance, which is right if chance is drawn anew for each permutation. Version 2.0.0 has a new default scheme, affine32
# (pull request 323): a * hash + b modulo 2 ** 32 with an odd a. The last bit of that is that of the hash, turned or
# not for all words at once, and the last b bits depend on the last b bits of the hash alone. So a word has one last
# bit for good. With b=1, two texts of one word each, with nothing in common, have the similarity 1 or -1. For pairs of
# 3 words the standard error is 0.3, with 128 permutations as with 4,096; with the old scheme it is 0.09 and 0.013. Of
# unrelated pairs of 3 words about 2% have a similarity of 1. For 10 words the error doesn't fall below 0.09. With b=2
# and b=4 it is two thirds and a third of that, still ten times that of the old scheme. Titles, queries and short
# messages are concerned; texts of hundreds of words are not. affine64 is no better. The plain MinHash is right.
#
# Take MinHash(scheme="legacy") for b-bit, or the plain MinHash. Seen in November 2026 with Python 3.11. The script
# fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check datasketch==2.0.0 numpy==2.4.6 scipy==1.17.1
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import hashlib
from importlib.metadata import version

import numpy as np
from datasketch import MinHash, bBitMinHash

print("datasketch", version("datasketch"), "numpy", np.__version__)


def words(pair, side, count):
    return [f"pair {pair} text {side} word {number}".encode() for number in range(count)]


def estimates(count, bits, permutations, scheme, pairs=100):
    """The similarity of pairs of texts with nothing in common; it should be 0."""
    result = []
    for pair in range(pairs):
        sketches = []
        for side in (0, 1):
            sketch = MinHash(permutations, **({"scheme": scheme} if scheme else {}))
            sketch.update_batch(words(pair, side, count))
            sketches.append(sketch)
        assert sketches[0].jaccard(sketches[1]) == 0, "the plain MinHash is wrong, too"
        result.append(bBitMinHash(sketches[0], bits).jaccard(bBitMinHash(sketches[1], bits)))
    return np.array(result)


def last_bits(texts):
    """The share of words whose hash ends in 1, less those that end in 0: SHA-1, mixed as in MurmurHash3."""
    ends = []
    for word in texts:
        value = int.from_bytes(hashlib.sha1(word).digest()[:4], "little")
        for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
            value = (value ^ value >> shift) * factor % 2 ** 32
        ends.append(1 - 2 * ((value ^ value >> 16) & 1))
    return np.mean(ends)


def error(values):
    return np.sqrt((values ** 2).mean())


one = estimates(1, 1, 128, None)
print("two texts of one word, the default scheme:", sorted(set(one.tolist())), f"of them 1: {(one == 1).mean():.0%}")
assert set(one.tolist()) == {-1.0, 1.0} and 0.3 < (one == 1).mean() < 0.7, "single words differ now"
for count in (3, 10):
    for permutations in (128, 4096):
        should, seen = 1 / np.sqrt(permutations), {}
        for scheme in (None, "affine64", "legacy"):
            pairs = 400 if permutations == 128 else 60
            values = estimates(count, 1, permutations, scheme, pairs)
            seen[scheme] = error(values)
            print(f"{count:>2} words, {permutations:>4} permutations, {scheme or 'default':<7} standard error "
                  f"{seen[scheme]:.3f}, should be {should:.3f}; pairs at 1: {(values == 1).mean():.1%}")
            if scheme != "legacy" and count == 3:
                assert seen[scheme] > 0.22, "short texts are right now"
                assert permutations != 128 or (values > 0.9).mean() > 0.01, "unrelated texts differ now"
            if scheme is None and permutations == 4096:
                limit = [last_bits(words(pair, 0, count)) * last_bits(words(pair, 1, count)) for pair in range(pairs)]
                print(f"   furthest from what the last bits of the words say: {np.abs(values - limit).max():.3f}")
                assert np.abs(values - limit).max() < 0.1, "the last bits don't tell it"
        assert seen["legacy"] < 1.4 * should, "the old scheme is wrong, too"
        assert count != 10 or seen[None] > 1.25 * seen["legacy"], "ten words are right now"
for bits in (2, 4):
    values, old = error(estimates(3, bits, 1024, None)), error(estimates(3, bits, 1024, "legacy"))
    print(f" 3 words, 1024 permutations, b={bits}: standard error {values:.3f}, the old scheme {old:.3f}")
    assert values > 5 * old, "more bits are right now"
long, old = error(estimates(300, 1, 1024, None, 40)), error(estimates(300, 1, 1024, "legacy", 40))
print(f"300 words, 1024 permutations: standard error {long:.3f}, the old scheme {old:.3f}")
assert long < 1.5 * old, "long texts are wrong, too"
PYTHON
echo "as seen"
