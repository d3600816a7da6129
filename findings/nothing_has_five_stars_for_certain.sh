#!/usr/bin/env bash
# dlordinal 2.7.0: StickBreakingLayer gives the last of five classes 35% at most, and never predicts the last of eleven.
#
# The layer is an output for ordered classes, as stars of reviews, after Liu and others (2020): from a stick of length 1
# class 1 breaks off a fraction x1, class 2 the fraction x2 of the rest, and so on. A class has the probability
# x_k * (1 - x_1) ... (1 - x_(k-1)), what was left for it. The layer takes the product up to k, what it leaves: each
# probability has the factor 1 - x_k too much, so class 1 has x(1 - x), which is the same for 0.1 and 0.9. Fractions
# are held between 0.1 and 0.9. Versions of the layer for TensorFlow do so too, and shift the product by one place with
# tf.pad; this line is missing here. The logits go through softmax, so that the probabilities have the sum 1 and
# look usual. But the last class has 1/4 of what was left at most: of 5 classes 35% at best, where the right product
# gives 63%, and of 11 classes 13%, while class 1 then has more. A model of five classes that are told apart without
# any doubt ends its training at a cross-entropy of 0.65 in place of 0.25. With eleven classes the last is never
# predicted. No warning comes.
#
# Override get_stick_logits, as Mended below. Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps dlordinal==2.7.0
cd "$folder"
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
import itertools
from importlib.metadata import version

import torch
from dlordinal.output_layers import StickBreakingLayer
from torch.distributions import StickBreakingTransform
from torch.nn.functional import cross_entropy

print("dlordinal", version("dlordinal"))
torch.set_num_threads(1)


class Mended(StickBreakingLayer):
    def get_stick_logits(self, x):
        x = torch.clamp(x, 0.1, 0.9)
        left = torch.cumprod(1 - x, dim=1)
        return torch.log(x) + torch.log(torch.cat([torch.ones_like(x[:, :1]), left[:, :-1]], 1))


def sticks(x):
    """PyTorch's own stick breaking with these fractions, for all classes but the last, which takes the rest there."""
    places = torch.arange(x.shape[1], 0, -1)
    return StickBreakingTransform()(torch.logit(x) + places.log())[:, :-1]


x = torch.rand(100, 6, generator=torch.Generator().manual_seed(0)) * 0.8 + 0.1
found, mended = (kind(2, 6).get_stick_logits(x).exp() for kind in (StickBreakingLayer, Mended))
print("first class for the fractions 0.1 and 0.9:",
      StickBreakingLayer(2, 6).get_stick_logits(torch.tensor([[0.1] * 6, [0.9] * 6])).exp()[:, 0].tolist())
assert torch.allclose(mended, sticks(x), atol=1e-5)
assert torch.allclose(found, mended * (1 - x), atol=1e-5), "the product is another one"

for classes in (5, 10, 11):
    best = {}
    for kind in (StickBreakingLayer, Mended):
        fractions = torch.full((1001, classes), 0.1)  # what favours the last class most, but for its own fraction
        fractions[:, -1] = torch.linspace(0.1, 0.9, 1001)
        shares = torch.softmax(kind(2, classes).get_stick_logits(fractions), 1)
        best[kind.__name__] = round(shares[:, -1].max().item(), 3), bool((shares[:, -1] > shares[:, 0]).any())
        if classes == 5:
            grid = torch.tensor(list(itertools.product((0.1, 0.3, 0.5, 0.7, 0.9), repeat=5)))
            other = torch.softmax(kind(2, classes).get_stick_logits(grid), 1)[:, -1].max()
            assert other <= shares[:, -1].max() + 1e-4
    print(f"{classes} classes: the last one's largest share, and whether it can beat the first:", best)
    if classes == 5:
        assert best["StickBreakingLayer"][0] == 0.346 and 0.62 < best["Mended"][0] < 0.64
    assert best["StickBreakingLayer"][1] == (classes < 11) and best["Mended"][1]

for classes in (5, 11):
    results = {}
    for kind in (StickBreakingLayer, Mended):
        torch.manual_seed(0)
        layer = kind(classes, classes)
        texts, labels = torch.eye(classes), torch.arange(classes)  # an input of its own for each class
        optimizer = torch.optim.Adam(layer.parameters(), 0.05)
        for _ in range(500):
            optimizer.zero_grad()
            loss = cross_entropy(layer(texts), labels)
            loss.backward()
            optimizer.step()
        wrong = (layer(texts).argmax(1) != labels).nonzero().flatten().tolist()
        results[kind.__name__] = round(loss.item(), 3), wrong
    print(f"{classes} classes, trained: loss and classes that are predicted wrongly {results}")
    assert results["StickBreakingLayer"][1] == ([] if classes == 5 else [10]) and results["Mended"][1] == []
    assert results["StickBreakingLayer"][0] > 2 * results["Mended"][0]
    if classes == 5:
        assert 0.6 < results["StickBreakingLayer"][0] < 0.7 and 0.2 < results["Mended"][0] < 0.3
PYTHON
echo "as seen"
