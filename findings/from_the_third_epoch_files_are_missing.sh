#!/usr/bin/env bash
# grain 0.2.18: a repeated InterleaveIterDataset reads some of its files no more from the third epoch on, and others
# twice.
#
# InterleaveIterDataset reads many shards of a corpus, cycle_length of them at a time, and RepeatIterDataset repeats
# it for several epochs. At the end of an epoch the iterator is set back to its first state. set_state keeps the list
# of open files from the state that it is given, and reading on writes into that list. So the first state has changed
# by the end of the second epoch: it names the files that were open last. From the third epoch on these stand in the
# place of the first ones. Of 40 files with a cycle of 16, the files 0 to 15 are never read again, and 24 to 39 twice
# in each epoch. The number of examples stays the same, and nothing is said. It also hits whoever keeps a state in
# memory and goes back to it twice, as after a loss that is no number; get_state makes a copy. States that are
# written to disk and read anew each time are right, and so is a cycle as long as the list of files.
#
# Write the epochs as a list, InterleaveIterDataset(files * epochs, cycle_length), and give set_state a deep copy.
# Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check grain==0.2.18 numpy==2.4.6
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
import collections
import copy

import grain

print("grain", grain.__version__)


def interleaved(files, texts, cycle, epochs=1):
    """Reads `texts` examples of each file, numbered 100 * file + text, `cycle` files at a time."""
    parts = [grain.MapDataset.range(100 * file, 100 * file + texts).to_iter_dataset() for file in range(files)]
    return grain.experimental.InterleaveIterDataset(parts * epochs, cycle_length=cycle)


def counted(files, texts, cycle, epochs=4):
    """How often each epoch reads each file."""
    examples = list(grain.experimental.RepeatIterDataset(interleaved(files, texts, cycle), num_epochs=epochs))
    assert len(examples) == epochs * files * texts
    parts = [examples[epoch * files * texts:(epoch + 1) * files * texts] for epoch in range(epochs)]
    return [collections.Counter(example // 100 for example in part) for part in parts]


examples = list(grain.experimental.RepeatIterDataset(interleaved(5, 3, 2), num_epochs=4))
for epoch in range(4):
    print(f"5 files, 2 at a time, epoch {epoch + 1}:", examples[epoch * 15:(epoch + 1) * 15])
assert examples[:15] == examples[15:30] and sorted(examples[:15]) == sorted(interleaved(5, 3, 5)), "epochs 1 and 2"
assert examples[30:45] == examples[45:] and {0, 1, 2, 100, 101, 102}.isdisjoint(examples[30:]), "the third is right"

for files, cycle, lost, twice in ((40, 16, range(16), range(24, 40)), (40, 4, range(4), range(36, 40)), (6, 6, (), ())):
    for epoch, counts in enumerate(counted(files, 20, cycle)):
        missing = [file for file in range(files) if not counts[file]]
        doubled = [file for file in range(files) if counts[file] == 40]
        print(f"{files} files, {cycle} at a time, epoch {epoch + 1}: not read {missing}, read twice {doubled}")
        assert (missing, doubled) == ((list(lost), list(twice)) if epoch > 1 else ([], [])), "other files than seen"

iterator = iter(interleaved(5, 3, 2))
first = [next(iterator) for _ in range(2)]
state = iterator.get_state()
for kept, name in ((copy.deepcopy(state), "a copy"), (state, "the state")):
    rests = []
    for _ in range(2):
        iterator = iter(interleaved(5, 3, 2))
        iterator.set_state(copy.deepcopy(kept) if name == "a copy" else kept)
        rests.append(list(iterator))
    print(f"back to {name} twice:", *rests, sep="\n    ")
    assert first + rests[0] == examples[:15]
    assert (rests[0] == rests[1]) == (name == "a copy"), "going back twice is right"

assert collections.Counter(interleaved(40, 20, 16, epochs=3)) == {
    100 * file + text: 3 for file in range(40) for text in range(20)}, "the list of epochs loses examples too"
PYTHON
echo "as seen"
