#!/usr/bin/env bash
# heavyball 3.2.1: the first step of Scion replaces all weights by new ones, so that a pretrained model is lost at any
# learning rate.
#
# Scion (Pethick and others, 2025) steps by matrices of a fixed norm. Its authors begin a training with weights of that
# norm, and their class has a method init for it, which the user calls or not. heavyball's Scion does it by itself in
# the first step: embeddings and kernels get random orthogonal matrices, and every tensor with one axis gets zeros,
# the scales of LayerNorm among them, after which a layer gives zeros. Here a classifier that is right for all of 1000
# texts gives all of them one answer after a step with the rate 1e-9. Fine-tuning is training from scratch, with a loss
# that begins at ln 2, and so is a run that goes on from a checkpoint of the model alone. The random numbers have the
# place of the tensor in its group as their seed, so runs with five seeds begin with one and the same model. Neither the
# page nor the README says it, and no warning comes.
#
# Set heavyball.utils.scion_auto_init_param_ to a function that does nothing, before the first step. Seen in November
# 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check heavyball==3.2.1 torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
import copy
from importlib.metadata import version

import heavyball
import torch

print("heavyball", version("heavyball"), "torch", torch.__version__)
torch.set_num_threads(1)
heavyball.utils.compile_mode = None


class Classifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(50, 32)
        self.layer = torch.nn.Linear(32, 32)
        self.norm = torch.nn.LayerNorm(32)
        self.head = torch.nn.Linear(32, 2)

    def forward(self, texts):
        return self.head(self.norm(torch.tanh(self.layer(self.words(texts).mean(1)))))


def accuracy(model):
    with torch.no_grad():
        return (model(TEXTS).argmax(-1) == LABELS).float().mean().item()


def loss_of(model):
    return torch.nn.functional.cross_entropy(model(TEXTS), LABELS)


def step(model, optimizer):
    model = copy.deepcopy(model)
    optimizer = optimizer(model.parameters(), lr=1e-9)
    loss_of(model).backward()
    optimizer.step()
    return model


def change(model, other):
    pairs = zip(model.parameters(), other.parameters())
    return max((a - b).abs().max().item() for a, b in pairs)


torch.manual_seed(0)
TEXTS = torch.randint(0, 50, (1000, 8))
LABELS = (TEXTS < 25).float().mean(1).gt(0.5).long()
pretrained = []
for seed in range(2):
    torch.manual_seed(seed)
    model = Classifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(100):
        optimizer.zero_grad()
        loss_of(model).backward()
        optimizer.step()
    pretrained.append(model)
    assert accuracy(model) > 0.99
    for other in (heavyball.AdamW, heavyball.Muon, heavyball.SOAP, heavyball.Scion):
        stepped = step(model, other)
        print(f"{other.__name__}: accuracy {accuracy(model):.3f} before a step of 1e-9, {accuracy(stepped):.3f} after, "
              f"a weight moved by {change(model, stepped):.1e}")
        if other is heavyball.Scion:
            assert len(set(stepped(TEXTS).argmax(-1).tolist())) == 1 and abs(loss_of(stepped).item() - 0.6931) < 1e-3
            assert max(p.abs().max() for p in stepped.parameters() if p.ndim == 1) < 1e-6
        else:
            assert accuracy(stepped) == accuracy(model) and change(model, stepped) < 1e-6

first, second = (step(model, heavyball.Scion) for model in pretrained)
print(f"two models of other seeds differ by {change(*pretrained):.2f} before, {change(first, second):.1e} after")
assert change(*pretrained) > 0.5 and change(first, second) < 1e-6

heavyball.utils.scion_auto_init_param_ = lambda *arguments, **options: None
stepped = step(pretrained[0], heavyball.Scion)
print(f"without the new weights: {accuracy(stepped):.3f}, moved by {change(pretrained[0], stepped):.1e}")
assert accuracy(stepped) == accuracy(pretrained[0]) and change(pretrained[0], stepped) < 1e-6
PYTHON
echo "as seen"
