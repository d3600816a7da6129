#!/usr/bin/env bash
# grain 0.2.18: after shuffle, a slice and repeat, the training part holds the texts of the validation part from the
# second epoch on.
#
# A corpus is shuffled once and cut into a validation part, shuffled[:100], and a training part, shuffled[100:], which
# is repeated for some epochs. In the first epoch the two are apart. repeat gives the elements before it higher indices
# in each further epoch, and shuffle draws a new order for each epoch. The slice lies between them, and takes the same
# places of another order. So each further epoch trains on about 90 of the 100 held-out texts among 1,000, and after
# three epochs on all of them or all but one. About 90 texts of the training part are left out of the epoch instead.
# The validation loss looks better than it is, and early stopping and the choice of a model follow it. A shard,
# shuffled[rank::count], has other texts in each epoch, too, but stays apart from the other shards. repeat documents
# reseed_each_epoch=True for random operations; that it reaches through a slice is open as google/grain issue 1200, of
# version 0.2.15. No warning comes.
#
# Repeat with reseed_each_epoch=False, which fixes the order too, or cut an unshuffled or materialised list. Seen in
# November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check grain==0.2.18 numpy==2.4.6
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
import grain

print("grain", grain.__version__)
TEXTS, HELD_OUT, EPOCHS = 1000, 100, 3


def parts(dataset, **settings):
    """The held-out texts, and those of each epoch of training."""
    training = list(dataset[HELD_OUT:].repeat(EPOCHS, **settings))
    size = TEXTS - HELD_OUT
    assert len(training) == EPOCHS * size
    return set(dataset[:HELD_OUT]), [set(training[epoch * size:(epoch + 1) * size]) for epoch in range(EPOCHS)]


for seed in range(3):
    dataset = grain.MapDataset.range(TEXTS).shuffle(seed=seed)
    held_out, epochs = parts(dataset)
    leaked = [len(held_out & epoch) for epoch in epochs]
    print(f"seed {seed}: {len(held_out)} texts are held out; epochs train on {leaked} of them, together on "
          f"{len(held_out & set().union(*epochs))}, and leave out {[len(set(dataset) - held_out - e) for e in epochs]}")
    assert leaked[0] == 0 and min(leaked[1:]) > 75, "the parts stay apart"
    held_out, epochs = parts(dataset, reseed_each_epoch=False)
    assert not held_out & set().union(*epochs)

both = parts(grain.MapDataset.range(TEXTS).seed(42).shuffle().map(lambda text: text))
print("seed(42).shuffle().map(...):", [len(both[0] & epoch) for epoch in both[1]])
assert len(both[0] & both[1][1]) > 75
cut_first = grain.MapDataset.range(TEXTS)
training = list(cut_first[HELD_OUT:].shuffle(seed=0).repeat(EPOCHS))
assert set(training) == set(cut_first[HELD_OUT:]), "a cut before the shuffle leaks, too"

shards = [list(grain.MapDataset.range(TEXTS).shuffle(seed=0)[rank::2].repeat(2)) for rank in range(2)]
first, second = ([set(shard[start:start + 500]) for shard in shards] for start in (0, 500))
print("2 shards: texts that change the shard in the second epoch:", len(first[0] & second[1]))
assert not first[0] & first[1] and not second[0] & second[1] and len(first[0] & second[1]) > 200
PYTHON
echo "as seen"
