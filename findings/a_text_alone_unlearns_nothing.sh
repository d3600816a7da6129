#!/usr/bin/env bash
# pytorch-partial-crf 0.2.1: PartialCRF writes -100 into the scores of a text that is alone in its batch, so that its
# loss forgets the wrong tags, and a tagger that is trained text by text gets 60% of the tags right in place of 100%.
#
# A partial CRF learns from texts of which only some tokens are labelled: the loss is the log of the sum over all
# sequences of tags minus the log of the sum over those that agree with the labels. For the second sum the code sets
# the scores of the tags that are ruled out to -100, in what it takes for a copy: the emissions, transposed and made
# contiguous. With one text a transposed tensor is contiguous already, and no copy is made. The -100 go into the
# caller's emissions, and the first sum, which is computed after it, runs over nearly the same sequences as the second.
# The loss is 0.37 for 2.49, and a wrong tag costs nothing but at the first token. Two texts in a batch, or the same
# one twice, have the right loss, as the sum over all sequences shows. Batches of one text are usual with long
# documents, with accumulated gradients and at the end of an epoch.
# restricted_viterbi_decode changes the emissions of a text alone in the same way, so viterbi_decode after it returns
# the restricted tags.
#
# With 70% of the tokens labelled, training text by text finds 60% of the tags of new texts, with each text twice 100%.
# (The package asks for torch below 2; it is run here with 2.13.)
#
# Give the text twice and halve the loss, or give emissions.expand(2, -1, -1).clone(). Seen in November 2026 with
# Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps pytorch-partial-crf==0.2.1
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version
from itertools import product

import torch
from pytorch_partial_crf import PartialCRF

print("pytorch-partial-crf", version("pytorch-partial-crf"), "torch", torch.__version__)
torch.manual_seed(0)
TAGS, UNKNOWN = 3, -1


def by_definition(crf, emissions, tags):
    scores, fits = [], []
    for path in product(range(TAGS), repeat=len(tags)):
        score = crf.start_transitions[path[0]] + crf.end_transitions[path[-1]]
        score = score + sum(emissions[place, tag] for place, tag in enumerate(path))
        scores.append(score + sum(crf.transitions[pair] for pair in zip(path, path[1:])))
        fits.append(all(label in (UNKNOWN, tag) for label, tag in zip(tags.tolist(), path)))
    scores, fits = torch.stack(scores), torch.tensor(fits)
    return float(scores.logsumexp(0) - scores[fits].logsumexp(0))


crf = PartialCRF(TAGS)
emissions = 2 * torch.randn(2, 5, TAGS)
tags = torch.tensor([[0, -1, 1, 2, -1], [1, 1, -1, 0, 2]])
with torch.no_grad():
    right = [by_definition(crf, *text) for text in zip(emissions, tags)]
    together = float(crf(emissions.clone(), tags))
    alone, changed = [], []
    for text in range(2):
        own = emissions[text:text + 1].clone()
        alone.append(float(crf(own, tags[text:text + 1])))
        changed.append(int((own == -100).sum()))
print(f"loss by definition {right[0]:.2f} and {right[1]:.2f}, together {together:.2f}")
print(f"in batches of one {alone[0]:.2f} and {alone[1]:.2f}, with {changed} scores of the caller at -100")
assert abs(together - sum(right)) < 1e-3
assert changed == [4, 6] and all(own < 0.5 * true for own, true in zip(alone, right))

first, second = (crf(text.clone(), tags[:1].repeat(times, 1)) / times
                 for times, text in ((1, emissions[:1]), (2, emissions[:1].repeat(2, 1, 1))))
assert abs(float(second) - right[0]) < 1e-3 and float(first) < 0.5

torch.set_num_threads(1)
WORDS = 40
tag_of = torch.randint(TAGS, (WORDS,))
texts = torch.randint(WORDS, (100, 16))
labels = torch.where(torch.rand(texts.shape) < 0.7, tag_of[texts], UNKNOWN)
unseen = torch.randint(WORDS, (200, 16))


def accuracy(copies):
    torch.manual_seed(1)
    table, crf = torch.nn.Embedding(WORDS, TAGS), PartialCRF(TAGS)
    optimizer = torch.optim.Adam([*table.parameters(), *crf.parameters()], 0.1)
    for text, label in zip(texts, labels):
        loss = crf(table(text.repeat(copies, 1)), label.repeat(copies, 1)) / copies
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    mask = torch.ones_like(unseen, dtype=torch.bool)
    with torch.no_grad():
        found = torch.tensor(crf.viterbi_decode(table(unseen), mask))
    return float((found == tag_of[unseen]).float().mean())


single, double = accuracy(1), accuracy(2)
print(f"tags right after training text by text: {single:.2f}, with each text twice: {double:.2f}")
assert single < 0.75 and double > 0.95

own, mask = emissions[:1].clone(), torch.ones(1, 5, dtype=torch.bool)
with torch.no_grad():
    free = crf.viterbi_decode(own, mask)
    possible = torch.ones(1, 5, TAGS, dtype=torch.uint8)
    possible[0, 2, free[0][2]] = 0
    restricted = crf.restricted_viterbi_decode(own, possible, mask)
    after = crf.viterbi_decode(own, mask)
print(f"best tags {free}, with one forbidden {restricted}, and then without {after}")
assert free != restricted and after == restricted
PYTHON
echo "as seen"
