#!/usr/bin/env bash
# torch 2.13.0: under no_grad TransformerEncoder takes a bias of the attention for a mask. With ALiBi's each token looks
# at nothing but itself.
#
# The mask of TransformerEncoder may be of floats, which are added to the scores: so a bias by distance can be given, as
# ALiBi's, with which MosaicBERT and jina-embeddings-v2 do without position embeddings. eval() together with no_grad()
# or inference_mode() turns on a fast path, which makes a mask of truths of it: each number but 0 hides its place.
# ALiBi's bias is 0 at the distance 0 alone. Here an encoder learns whether a text has a certain token; it answers all
# of 1,000 texts rightly with eval(), and 50% of them with eval() and no_grad(), as by chance. The vector of the first
# token then does not change by a bit when all others do. A bias that is never 0 gives NaN, and floats for the tokens in
# src_key_padding_mask are taken for a mask too. A mask of 0 and -inf is right. The page of TransformerEncoderLayer
# tells when the fast path is taken, and not that it reads masks in another way. No warning comes.
#
# The NaN are known, https://github.com/pytorch/pytorch/issues/118628, and MultiheadAttention alone was mended in 2023,
# issue 107084. Call torch.backends.mha.set_fastpath_enabled(False). Seen in November 2026 with Python 3.11. The script
# fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import warnings

import torch
from torch import nn

print("torch", torch.__version__)
torch.manual_seed(0)
LENGTH, HEADS, SIZE, WORDS = 16, 4, 32, 24
distance = (torch.arange(LENGTH)[:, None] - torch.arange(LENGTH)).abs()
ALIBI = -distance * 2.0 ** -torch.arange(2, 2 * HEADS + 1, 2)[:, None, None]


class Model(nn.Module):
    """Says whether a text has the token 1."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, SIZE)
        layer = nn.TransformerEncoderLayer(SIZE, HEADS, 2 * SIZE, dropout=0.0, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(SIZE, 2)

    def vectors(self, texts, bias=ALIBI, **masks):
        bias = bias.repeat(len(texts), 1, 1) if bias is not None and bias.dim() == 3 else bias
        return self.encoder(self.words(texts), mask=bias, **masks)

    def forward(self, texts):
        return self.head(self.vectors(texts)[:, 0])


def make(number):
    """Texts that begin with the token 0, and whether the token 1 is in them, as in every second one."""
    texts = torch.randint(2, WORDS, (number, LENGTH))
    texts[:, 0] = 0
    labels = torch.arange(number) % 2
    texts[labels == 1, torch.randint(1, LENGTH, (number // 2,))] = 1
    return texts, labels


model = Model()
optimizer = torch.optim.Adam(model.parameters(), 3e-3)
for _ in range(200):
    texts, labels = make(64)
    loss = nn.functional.cross_entropy(model(texts), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
model.eval()
texts, labels = make(1000)


def right():
    return (model(texts).argmax(-1) == labels).double().mean().item()


slow = right()
with torch.no_grad(), warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    fast = right()
with torch.inference_mode():
    inference = right()
with torch.no_grad():
    torch.backends.mha.set_fastpath_enabled(False)
    mended = right()
    torch.backends.mha.set_fastpath_enabled(True)
print(f"right with eval(): {slow:.3f}, and no_grad(): {fast:.3f}, inference_mode(): {inference:.3f},",
      f"without the fast path: {mended:.3f}; warnings: {len(caught)}")
assert slow == mended == 1.0 and abs(fast - 0.5) < 0.05 and inference == fast and not caught

others = torch.randint(2, WORDS, texts.shape)
others[:, 0] = texts[:, 0]
changed = (model.vectors(texts) - model.vectors(others))[:, 0].norm(dim=-1).mean().item()
with torch.no_grad():
    same = torch.equal(model.vectors(texts)[:, 0], model.vectors(others)[:, 0])
print(f"other tokens change the first vector by {changed:.2f}; with no_grad() it is the same: {same}")
assert changed > 1 and same

hidden = torch.arange(LENGTH).expand(1000, -1) >= torch.randint(4, LENGTH, (1000, 1))
minus = torch.zeros(1000, LENGTH).masked_fill(hidden, float("-inf"))
never = torch.randn(LENGTH, LENGTH)
weights = torch.rand(1000, LENGTH)
weights[:, 0] = 0
for name, masks in (("a mask of -inf", {"bias": None, "src_key_padding_mask": minus}),
                    ("a bias that is never 0", {"bias": never}),
                    ("a bias of tokens", {"bias": None, "src_key_padding_mask": weights})):
    want = model.vectors(texts, **masks)
    with torch.no_grad():
        got = model.vectors(texts, **masks)
    off = ((got - want).norm(dim=-1) / want.norm(dim=-1))[~hidden].mean().item()
    print(f"{name}: off by {off:.6f}")
    if "-inf" in name:
        assert off < 1e-5
    elif "never" in name:
        assert got.isnan().all() and not want.isnan().any()
    else:
        assert off > 0.1
PYTHON
echo "as seen"
