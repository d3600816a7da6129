#!/usr/bin/env bash
# allRank 1.4.3: neuralNDCG with stochastic=True and lists of several lengths gives most samples the padding of another
# list, so that passages are left out and padding is ranked.
#
# NeuralNDCG (arXiv:2102.07831) trains a ranker by a soft sort of the passages of each query. The stochastic one sorts
# n_samples copies of each list with noise. The copies lie one batch after another, that is list 1, list 2, list 1, list
# 2 and so on. The masks of the padding are repeated in the other order, list 1, list 1, list 2, list 2
# (repeat_interleave). So a copy gets the mask of its own list by chance only, in a batch of n lists once in n copies.
# Where a long list gets the mask of a short one, its last passages are no part of the loss; where a short one gets that
# of a long one, its padding is sorted among the passages and has a gradient. Two lists whose NDCG is 0.83 and 1 have
# the mean loss -0.86 in place of -0.92 with next to no noise, and -0.61 if the model happens to give the padding a high
# score. In a batch of 16 lists 94% of the copies have the mask of another list. Nothing is said. stochastic=False is
# right, and so are lists of one length and n_samples=1.
#
# Take batches of one length, or stochastic=False. The package pins versions of torch of 2021 and is installed without
# them here; the code is its own. Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps allRank==1.4.3
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import sys
import types
from importlib.metadata import version

import torch

# The readers of files need Google's cloud; of them only the label of the padding is used.
sys.modules["allrank.data.dataset_loading"] = types.SimpleNamespace(PADDED_Y_VALUE=-1)
sys.modules["allrank.utils.file_utils"] = types.SimpleNamespace(is_gs_path=None, copy_file_to_local=None)
from allrank.models.losses import loss_utils, neuralNDCG
from allrank.models.metrics import ndcg

print("allRank", version("allRank"), "torch", torch.__version__)
long, long_labels = [3.0, 2, 1, 0, -1, -2], [1.0, 0, 0, 0, 0, 1]
short, short_labels = [1.0, 0, 0, 0, 0, 0], [1.0, 0, -1, -1, -1, -1]               # two passages and padding
little = {"temperature": 0.01, "beta": 1e-6, "log_scores": False}                  # next to no noise


def loss(scores, labels, samples, **settings):
    torch.manual_seed(0)
    values = torch.tensor(scores, requires_grad=True)
    value = neuralNDCG(values, torch.tensor(labels), stochastic=samples > 0, n_samples=max(samples, 1), **settings)
    value.backward()
    return round(value.item(), 4), values.grad


exact = ndcg(torch.tensor([long, short]), torch.tensor([long_labels, short_labels])).flatten()
single = [loss([long], [long_labels], 32, **little)[0], loss([short], [short_labels], 32, **little)[0]]
print("NDCG", exact.tolist(), "loss of each list by itself", single)
assert abs(single[0] + exact[0]) < 1e-3 and abs(single[1] + exact[1]) < 1e-3
both = {samples: loss([long, short], [long_labels, short_labels], samples, **little)[0] for samples in (0, 1, 32)}
print("loss of both together: not stochastic", both[0], "one sample", both[1], "32 samples", both[32])
assert abs(both[0] - sum(single) / 2) < 1e-3 and abs(both[1] - sum(single) / 2) < 1e-3, "the others are wrong, too"
assert both[32] > sum(single) / 2 + 0.05, "32 samples are right now"

padded = {}
for padding in (0.0, 0.5, 5.0):
    scores = [long, short[:2] + [padding] * 4]
    padded[padding] = [loss(scores, [long_labels, short_labels], samples, **little)[0] for samples in (0, 32)]
    print(f"padding with the score {padding}: not stochastic {padded[padding][0]}, stochastic {padded[padding][1]}")
assert len({row[0] for row in padded.values()}) == 1 and padded[5.0][1] > padded[0.0][1] + 0.2, "equal now"

real = torch.tensor([long_labels, short_labels]) >= 0
for samples in (0, 1, 32):
    gradient = loss([long, short], [long_labels, short_labels], samples, temperature=1.0, log_scores=False)[1]
    print(f"{samples} samples: largest gradient of the padding {gradient[~real].abs().max().item():.5f}, "
          f"of the passages {gradient[real].abs().max().item():.5f}")
    assert (gradient[~real].abs().max() > 0.005) == (samples == 32), "the padding has another gradient"
same = loss([long, long[::-1]], [long_labels, long_labels], 32, **little)[0]
halves = [loss([scores], [long_labels], 32, **little)[0] for scores in (long, long[::-1])]
assert abs(same - sum(halves) / 2) < 1e-3, "lists of one length are wrong, too"

seen, own = [], loss_utils.deterministic_neural_sort
loss_utils.deterministic_neural_sort = lambda scores, tau, mask: seen.append(mask) or own(scores, tau, mask)
labels = torch.zeros(16, 20)
for row in range(16):
    labels[row, row + 3:] = -1                                                     # 16 lengths, 3 to 18
neuralNDCG(torch.randn(16, 20), labels + (torch.arange(20) == 0), stochastic=True, n_samples=32)
wrong = (seen[0].view(32, 16, 20) != (labels == -1)).any(2).float().mean().item()
print(f"copies with the mask of another list in a batch of 16: {wrong:.1%}")
assert 0.92 < wrong < 0.95, "the masks are in order now"
PYTHON
echo "as seen"
