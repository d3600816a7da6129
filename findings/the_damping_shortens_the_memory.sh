#!/usr/bin/env bash
# Mega-pytorch 0.1.0: the damping of its moving average is turned round, so that a layer remembers 1.4 tokens where the
# paper's remembers 7.
#
# Mega (Ma and others, 2022) runs a damped moving average over the text before attention: y_t = a x_t + (1 - a d) y_t-1,
# with a and d learnt, between 0 and 1. The damping d makes the past fade more slowly than in the plain average with the
# same a, for which d is 1. The authors were asked whether (1 - a) d was meant, and confirmed formula and code, at
# https://github.com/facebookresearch/mega/issues/4. MultiHeadedEMA of this package has (1 - a) d. So a token's weight
# shrinks faster than in the plain average: by 0.25 for each token in place of 0.75 where a and d are 0.5, the middle of
# the initial values. With those a head hears 1.4 tokens on average (the sum of its weights by that of the
# newest) in place of 7, and the smaller d gets, the shorter is the memory and not the longer. Weights of Mega's code
# give another model. Long distances are learnt late: where the target is an average of the last ten numbers or so, a
# layer has 25 to 50% of the variance still to learn after 100 steps, and 0.2 to 2% by the paper's formula. The shapes
# are right, and the loss goes down. No warning comes.
#
# Replace the module's forward, as below. Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check Mega-pytorch==0.1.0 einops==0.8.2 scipy==1.17.1 \
    torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
from importlib.metadata import version

import torch
from mega_pytorch.mega_pytorch import MultiHeadedEMA

print("Mega-pytorch", version("Mega-pytorch"), "torch", torch.__version__)
torch.set_num_threads(1)


class Paper(MultiHeadedEMA):
    """The same parameters by the paper's formula, as a matrix of weights."""

    def factors(self):
        a, d = self.alphas.sigmoid(), self.dampen_factors.sigmoid()
        return a, 1 - a * d

    def forward(self, x):
        a, factor = self.factors()
        past = (torch.arange(x.shape[1])[:, None] - torch.arange(x.shape[1])).clamp(min=0)
        weights = torch.tril(a[:, None, None] * factor[:, None, None] ** past)
        heads = torch.einsum("bnd,hd->bhnd", x, self.expansion)
        return torch.einsum("hnm,bhmd,hd->bnd", weights, heads, self.reduction)


class Turned(Paper):
    def factors(self):
        a, d = self.alphas.sigmoid(), self.dampen_factors.sigmoid()
        return a, (1 - a) * d


def build(cls, seed=0, **options):
    torch.manual_seed(seed)
    return cls(**{"dim": 4, "heads": 3, **options})


x = torch.randn(2, 50, 4, generator=torch.Generator().manual_seed(1))
with torch.no_grad():
    seen, paper, turned = (build(cls)(x) for cls in (MultiHeadedEMA, Paper, Turned))
    loop = torch.zeros_like(x)                                      # the paper's formula once more, token by token
    layer = build(Paper)
    a, factor = layer.factors()
    state = torch.zeros(2, 3, 4)
    for token in range(50):
        state = a[:, None] * x[:, token, None] * layer.expansion + factor[:, None] * state
        loop[:, token] = (state * layer.reduction).sum(1)
assert torch.allclose(paper, loop, atol=1e-5)
print(f"the package is off by {(seen - paper).abs().max():.2f} of the paper's formula, and by"
      f" {(seen - turned).abs().max():.1g} of (1 - a) d; outputs are up to {paper.abs().max():.1f}")
assert torch.allclose(seen, turned, atol=1e-5) and (seen - paper).abs().max() > 1

memory = {}
for cls in (Paper, Turned):
    heads = torch.cat([build(cls, seed, heads=16).factors()[1].detach() for seed in range(20)])
    memory[cls] = (1 / (1 - heads)).mean().item()
print(f"heads hear {memory[Turned]:.2f} tokens as they begin, and {memory[Paper]:.2f} by the paper")
assert memory[Turned] < 1.6 and memory[Paper] > 5


def train(cls, seed):
    """A layer of 8 heads learns an average with the factor 0.9; the share of the variance that is left."""
    layer = build(cls, seed, dim=1, heads=8)
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.01)
    past = (torch.arange(100)[:, None] - torch.arange(100)).clamp(min=0)
    target = torch.tril(0.9 ** past)
    target = target / target[-1].norm()
    generator = torch.Generator().manual_seed(2)
    for _ in range(101):
        texts = torch.randn(16, 100, 1, generator=generator)
        loss = (layer(texts) - target @ texts).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


for seed in (0, 1):
    here, turned, paper = (train(cls, seed) for cls in (MultiHeadedEMA, Turned, Paper))
    print(f"100 steps, seed {seed}: {here:.1%} of the variance is left, {paper:.1%} by the paper's formula")
    assert here > 0.2 and paper < 0.03 and abs(here - turned) < 0.01
PYTHON
echo "as seen"
