#!/usr/bin/env bash
# baal 2.1.0: BatchBALD ranks the texts that it chose in reverse and chooses one too many, so the text with the most
# information is never in the batch.
#
# Active learning asks for the labels of a batch of texts. BatchBALD (Kirsch and others, 2019) chooses them one after
# another: each next one is that with which the batch says most about the model, so that near copies don't fill it. The
# first one is the best text by BALD. num_samples is the "number of samples to select (also called query_size)". The
# heuristic stores a number for each text chosen and ranks the texts by it. For the first one it is its information, for
# all later ones the joint entropy of the batch less the noise of the newest text alone. That grows with each step, so
# the last text chosen is ranked first and the first one last. As num_samples texts are added to the first one, one more
# than asked for, the first num_samples of the ranking lack the first one: in all of 20 pools here, of 30 texts with 8
# passes, the batch of 4 is without the best text and says less about the model than the first 4, by the exact formula.
# Whoever takes fewer than num_samples gets the worst of the chosen: of 12 the first 4 here have 65% of what the first 4
# of the formula have. No warning comes.
#
# Pass num_samples one less than the texts you ask for, and take as many of the ranking. Seen in November 2026 with
# Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.4.6 scipy==1.17.1 \
    scikit-learn==1.9.1 torchmetrics==1.9.0 matplotlib==3.11.2 structlog==22.3.0 pillow==13.0.0 tqdm==4.70.1 \
    requests==2.34.2 h5py==3.16.0
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps baal==2.1.0    # without its notebooks
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import numpy as np
import torch
from baal.active.heuristics import BALD, BatchBALD

print("baal", version("baal"))


def entropy(probabilities):
    return -(probabilities * np.log(np.maximum(probabilities, 1e-300))).sum()


def information(batch, pool):
    """Of the labels of a batch about the model: the entropy of all labels together less that within each pass."""
    joint = np.ones((1, pool.shape[-1]))
    for text in batch:
        joint = (joint[:, None] * pool[text][None]).reshape(-1, pool.shape[-1])
    return entropy(joint.mean(1)) - sum(entropy(pool[text]) for text in batch) / pool.shape[-1]


def greedy(pool, count):
    batch = []
    for _ in range(count):
        rest = [text for text in range(len(pool)) if text not in batch]
        batch.append(max(rest, key=lambda text: information(batch + [text], pool)))
    return batch


rng = np.random.default_rng(0)
lost, remedied, part, reverse = [], [], [], 0
for seed in range(20):
    pool = np.exp(rng.normal(size=(30, 2, 8)) * rng.uniform(0.2, 3, (30, 1, 1)))
    pool /= pool.sum(1, keepdims=True)                       # texts, classes, passes with dropout
    best, chosen = BALD().compute_score(pool).argmax(), greedy(pool, 5)
    assert chosen[0] == best
    torch.manual_seed(seed)
    ranking = BatchBALD(num_samples=4, num_draw=5000)(pool)[:5].tolist()
    assert best == ranking[4], "the best text is not the last"
    reverse += ranking[1:] == chosen[3::-1]
    lost.append((information(ranking[:4], pool), information(chosen[:4], pool)))
    torch.manual_seed(seed)
    batch = BatchBALD(num_samples=3, num_draw=5000)(pool)[:4]
    assert best in batch, "the remedy does not help"
    remedied.append(information(batch, pool))
    torch.manual_seed(seed)
    part.append(information(BatchBALD(num_samples=12, num_draw=5000)(pool)[:4], pool))
    if seed < 3:
        print(f"best {best}, chosen by the formula {chosen}, ranking of baal {ranking}")
lost = np.array(lost)
print(f"the ranking is the reverse of the first 4 choices in {reverse} of 20")
assert reverse >= 15, "the ranking is not the reverse"
print("information of 4:", lost[:, 0].mean().round(3), "by the formula", lost[:, 1].mean().round(3),
      "with the remedy", np.mean(remedied).round(3), "the first 4 of 12", np.mean(part).round(3))
assert (lost[:, 0] < lost[:, 1]).all(), "the batch is not worse in each pool"
assert np.mean(remedied) > 0.99 * lost[:, 1].mean() and np.mean(part) < 0.7 * lost[:, 1].mean()
PYTHON
echo "as seen"
