#!/usr/bin/env bash
# reformer-pytorch 1.4.4: by default a ReformerLM with full attention knows no positions, so an encoder reads a text
# below full_attn_thres as a bag of words.
#
# Unless asked for other ones, ReformerLM has rotary positions: it hands each attention an argument pos_emb, by which
# LSHAttention turns queries and keys. With use_full_attn=True, "for comparison" in the README, and for texts that are
# not longer than full_attn_thres, 1024 in the README's examples, FullQKAttention takes the place of LSHAttention. It
# swallows pos_emb among its **kwargs and turns nothing. So an encoder gives each token the same output wherever it
# stands, here to within 0.00001, and can't tell "A before B" from "B before A": trained to do so for texts of 16 tokens
# it is right half of the time, where the same model with absolute_position_emb=True is right always. With
# full_attn_thres=128 a text of 128 tokens has no positions, and one of 256 has them, in a model with the same weights.
# The comparison of hashed with full attention is one of positions with none, and a model that is trained on long texts
# meets short ones without the positions that it learned. With causal=True the mask alone gives some order.
# post_attn_dropout of ReformerLM is dropped besides: it passes 0 on whatever is asked for, so that the model in
# training gives the same output twice. No warning comes.
#
# Ask for absolute_position_emb, axial_position_emb or fixed_position_emb wherever full attention may run. Seen in
# November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check reformer-pytorch==1.4.4 product-key-memory==0.3.0 \
    colt5-attention==0.11.2 local-attention==1.11.2 axial-positional-embedding==0.3.12 einops==0.8.2 torch==2.13.0 \
    numpy==2.4.6
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
from importlib.metadata import version

import torch
from reformer_pytorch import Reformer, ReformerLM

print("reformer-pytorch", version("reformer-pytorch"), "torch", torch.__version__)
torch.set_num_threads(1)


def build(**options):
    torch.manual_seed(0)
    return ReformerLM(num_tokens=100, dim=32, depth=2, max_seq_len=512, heads=4, dim_head=16, ff_chunks=1, **options)


def moves(model, length):
    """How far outputs are from those that move along with their tokens."""
    torch.manual_seed(1)
    texts, order = torch.randint(1, 100, (2, length)), torch.randperm(length)
    with torch.no_grad():
        torch.manual_seed(2)
        one = model.eval()(texts)[:, order]
        torch.manual_seed(2)
        return (one - model(texts[:, order])).abs().max().item()


class Nothing(torch.nn.Module):
    def forward(self, x):
        return None


def without_positions(model, length):
    """How far outputs are from those of the model that gets no positions."""
    torch.manual_seed(1)
    texts = torch.randint(1, 100, (2, length))
    with torch.no_grad():
        torch.manual_seed(2)
        one = model.eval()(texts)
        model.layer_pos_emb = Nothing()
        torch.manual_seed(2)
        return (one - model(texts)).abs().max().item()


for options, length, positions in (({}, 128, True), ({"full_attn_thres": 128}, 256, True),
                                   ({"full_attn_thres": 128}, 128, False), ({"use_full_attn": True}, 512, False)):
    change = without_positions(build(**options), length)
    print(f"{options}, {length} tokens: the rotary positions change outputs by {change:.4f}")
    assert change > 0.01 if positions else change == 0

for options, length, ordered in (({"use_full_attn": True}, 64, False), ({"use_full_attn": True}, 512, False),
                                 ({"full_attn_thres": 128}, 128, False),
                                 ({"use_full_attn": True, "absolute_position_emb": True}, 64, True),
                                 ({"use_full_attn": True, "fixed_position_emb": True}, 64, True),
                                 ({"use_full_attn": True, "axial_position_emb": True}, 64, True),
                                 ({"use_full_attn": True, "causal": True}, 64, True)):
    change = moves(build(**options), length)
    print(f"{options}, {length} tokens: another order changes outputs by {change:.6f}")
    assert change > 0.01 if ordered else change < 1e-5

generator = torch.Generator().manual_seed(3)


def examples(count, length=16):
    """Texts with the words 1 and 2 somewhere, and whether 1 comes first. All begin with 3."""
    texts = torch.randint(4, 100, (count, length), generator=generator)
    texts[:, 0] = 3
    places = torch.stack([torch.randperm(length - 1, generator=generator)[:2] + 1 for _ in range(count)])
    rows = torch.arange(count)
    texts[rows, places[:, 0]], texts[rows, places[:, 1]] = 1, 2
    return texts, (places[:, 0] < places[:, 1]).long()


for options, low, high in (({}, 0.45, 0.55), ({"absolute_position_emb": True}, 0.97, 1)):
    model = build(use_full_attn=True, **options).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.002)
    for _ in range(400):
        texts, labels = examples(128)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(texts)[:, 0, :2], labels).backward()
        optimizer.step()
    texts, labels = examples(2000)
    with torch.no_grad():
        right = (model.eval()(texts)[:, 0, :2].argmax(-1) == labels).float().mean().item()
    print(f"{options or 'default positions'}: {right:.1%} of the orders are right")
    assert low <= right <= high

model = build(use_full_attn=True, post_attn_dropout=0.9).train()
texts = examples(4)[0]
assert torch.equal(model(texts), model(texts))
inner = Reformer(32, 2, heads=4, use_full_attn=True, post_attn_dropout=0.9, ff_chunks=1).train()
vectors = torch.randn(2, 16, 32)
assert not torch.equal(inner(vectors), inner(vectors))
print("post_attn_dropout=0.9: ReformerLM in training gives the same output twice, Reformer does not")
PYTHON
echo "as seen"
