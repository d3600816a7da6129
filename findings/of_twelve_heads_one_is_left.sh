#!/usr/bin/env bash
# torch-pruning 1.6.1: with iterative_steps=5 and head_pruning_ratio=0.5 a layer of 12 attention heads keeps one, and
# with pruning_ratio=0 all heads stay.
#
# Torch-Pruning removes the least important parts of a model, in several steps with training in between if asked for.
# "If iterative_steps=5, pruning_ratio=0.5, the pruning ratio of each step will be [0.1, 0.2, 0.3, 0.4, 0.5]", says a
# comment: each is the share of what was there at first. For channels this is done so, and for heads if global_pruning
# ranks them over all layers. Otherwise the share is taken of the heads that are still there, and rounded up. 12 heads
# become 10, 8, 5, 3 and 1 where they should be 6 in the end, as they are in one step. Each step is said to be mild, and
# the training between them hides what is lost, so the method is blamed. Heads are removed inside of the loop that
# removes channels. A scope with no channels to remove is passed over, so prune_num_heads=True, head_pruning_ratio=0.5
# with pruning_ratio=0, for heads alone, removes nothing, and says nothing. The library's example for BERT takes one
# step, and 0.5 for both.
#
# Take iterative_steps=1 for each step with a ratio of what is there, or global_pruning=True. Seen in November 2026 with
# Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch-pruning==1.6.1 torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
from importlib.metadata import version

import torch
import torch_pruning

print("torch-pruning", version("torch-pruning"), "torch", torch.__version__)
HEADS, SIZE = 12, 96


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value = (torch.nn.Linear(SIZE, SIZE) for _ in range(3))
        self.output = torch.nn.Linear(SIZE, SIZE)

    def forward(self, x):
        query, key, value = (part(x).unflatten(-1, (-1, SIZE // HEADS)).transpose(1, 2)
                             for part in (self.query, self.key, self.value))
        attended = torch.nn.functional.scaled_dot_product_attention(query, key, value)
        return self.output(attended.transpose(1, 2).flatten(2))


class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = torch.nn.ModuleList(Attention() for _ in range(2))
        self.up = torch.nn.ModuleList(torch.nn.Linear(SIZE, 4 * SIZE) for _ in range(2))
        self.down = torch.nn.ModuleList(torch.nn.Linear(4 * SIZE, SIZE) for _ in range(2))

    def forward(self, x):
        for attention, up, down in zip(self.attention, self.up, self.down):
            x = x + attention(x)
            x = x + down(up(x).relu())
        return x


def prune(steps, pruning_ratio=0.5, **kwargs):
    """The heads of the layers and the size of their inner layers after each step."""
    torch.manual_seed(0)
    model = Encoder()
    heads = {part: HEADS for layer in model.attention for part in (layer.query, layer.key, layer.value)}
    pruner = torch_pruning.pruner.BasePruner(
        model, torch.randn(2, 5, SIZE), importance=torch_pruning.importance.MagnitudeImportance(),
        pruning_ratio=pruning_ratio, num_heads=heads, prune_num_heads=True, prune_head_dims=False,
        head_pruning_ratio=0.5, iterative_steps=steps, **kwargs)
    sizes = []
    for _ in range(steps):
        pruner.step()
        assert all(layer.query.out_features == pruner.num_heads[layer.query] * SIZE // HEADS
                   for layer in model.attention)
        left = [pruner.num_heads[layer.query] for layer in model.attention]
        sizes.append((left, [up.out_features for up in model.up]))
    print(f"steps={steps}, pruning_ratio={pruning_ratio} {kwargs}: heads", [heads for heads, _ in sizes],
          "inner size", [inner for _, inner in sizes])
    return sizes


assert prune(1)[-1] == ([6, 6], [192, 192]), "one step is wrong"
sizes = prune(5)
assert [heads for heads, _ in sizes] == [[left] * 2 for left in (10, 8, 5, 3, 1)], "other heads than seen"
assert [inner for _, inner in sizes][-1] == [192, 192], "the channels are wrong too"
assert abs(sum(prune(5, global_pruning=True)[-1][0]) - 12) <= 1, "with global pruning it is wrong too"
for steps in (1, 5):
    assert prune(steps, pruning_ratio=0.0)[-1] == ([12, 12], [384, 384]), "heads are removed alone"
PYTHON
echo "as seen"
