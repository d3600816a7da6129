#!/usr/bin/env bash
# torchdistill 1.1.5: DISTPlusLoss adds the correlation of the student's features with the teacher's in place of 1 minus
# it, so that the student learns their mirror image.
#
# DIST (Huang and others, 2022) distils by the correlation of a student's outputs with a teacher's, and its loss is 1
# minus that. DIST+ (2025) does so for features too: DISTPlusLoss adds to the loss of the logits one for the relation of
# the channels and one for that of the places. inter_class_relation and spatial_relation give 1 minus the correlation,
# and channel_relation gives the correlation itself. It is 1 where the features are the teacher's and -1 where each is
# turned round about its mean. So a student that is the teacher has the loss 1, like a random one, and features that are
# trained by the loss end with a correlation of -1. For an encoder's hidden states, of shape texts, width, 1 and
# tokens, that is in each token. A student of one linear layer over the teacher's input learns weights that give the
# contrary of each difference between two hidden units. The term has the weight iota, 1 by default. The loss goes down
# as expected, and no warning comes.
#
# Pass iota=-1. The constant 1 that is missing then does not matter. Seen in November 2026 with Python 3.11. The script
# fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.4.6 PyYAML==6.0.4 \
    scipy==1.17.1
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps torchdistill==1.1.5
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
from importlib.metadata import version

import numpy as np
import torch
from torchdistill.losses.mid_level import DISTLoss, DISTPlusLoss

print("torchdistill", version("torchdistill"), "torch", torch.__version__)
torch.set_num_threads(1)
torch.manual_seed(0)
TEXTS, WIDTH, TOKENS, CLASSES = 16, 24, 10, 5
LOGITS = torch.randn(TEXTS, CLASSES)
TEACHER = torch.randn(TEXTS, WIDTH, 1, TOKENS)


def loss(features, logits=LOGITS, **options):
    criterion = DISTPlusLoss("head", "output", "head", "output", "body", "output", "body", "output", **options)
    return criterion({"head": {"output": logits}, "body": {"output": features}},
                     {"head": {"output": LOGITS}, "body": {"output": TEACHER}})


def correlation(features):
    """The mean over texts and tokens of the correlation over the hidden units, by NumPy."""
    rows = [x.movedim(1, -1).reshape(-1, WIDTH).numpy() for x in (features.detach(), TEACHER)]
    return np.mean([np.corrcoef(one, other)[0, 1] for one, other in zip(*rows)])


assert abs(DISTLoss("head", "output", "head", "output")({"head": {"output": LOGITS}},
                                                         {"head": {"output": LOGITS}})) < 1e-5
mean = TEACHER.mean(1, keepdim=True)
for name, features, low, high in (("the teacher's", TEACHER, 0.999, 1.001),
                                  ("random", torch.randn_like(TEACHER), 0.8, 1.2),
                                  ("turned round about the mean", 2 * mean - TEACHER, -1.001, -0.999)):
    found = loss(features).item()
    print(f"features {name}: correlation {correlation(features):.2f}, loss {found:.2f}")
    assert low < found < high

for iota, low, high in ((1.0, -1.0, -0.98), (-1.0, 0.98, 1.0)):
    torch.manual_seed(1)
    features = torch.randn_like(TEACHER).requires_grad_()
    optimizer = torch.optim.Adam([features], lr=0.05)
    for _ in range(400):
        optimizer.zero_grad()
        value = loss(features, iota=iota)
        value.backward()
        optimizer.step()
    spatial = loss(features, iota=0.0).item()
    print(f"iota={iota}: trained features have the correlation {correlation(features):.3f}, the other terms are "
          f"{spatial:.3f}")
    assert low <= correlation(features) <= high and spatial < 0.02

inputs = torch.randn(TEXTS, TOKENS, 12)
weights = torch.randn(12, WIDTH)
TEACHER = (inputs @ weights).transpose(1, 2).unsqueeze(2)
for iota, sign in ((1.0, -1), (-1.0, 1)):
    torch.manual_seed(1)
    student = torch.nn.Linear(12, WIDTH, bias=False)
    optimizer = torch.optim.Adam(student.parameters(), lr=0.02)
    for _ in range(400):
        optimizer.zero_grad()
        loss(student(inputs).transpose(1, 2).unsqueeze(2), iota=iota).backward()
        optimizer.step()
    learned = student.weight.detach().T
    pair = np.corrcoef((learned - learned.mean(1, keepdim=True)).flatten(),
                       (weights - weights.mean(1, keepdim=True)).flatten())[0, 1]
    print(f"iota={iota}: the weights of a linear student correlate by {pair:.3f} with the teacher's")
    assert sign * pair > 0.95
PYTHON
echo "as seen"
