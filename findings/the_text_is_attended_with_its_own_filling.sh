#!/usr/bin/env bash
# nystrom-attention 0.0.14 and local-attention 1.11.2: without a mask a text is attended together with the zeros that
# the layer itself puts beside it, so that Nyström attention is 37% off for 100 tokens, and 4% with a mask of ones.
#
# Nyström attention takes means of neighbouring tokens, the landmarks, in the place of all queries and keys. For that
# the length has to be a multiple of num_landmarks, 256 by default, and the layer fills the text with zero vectors.
# mask=None, the default, means that there is no padding. The layer extends a mask that is given by its own filling, but
# makes none if there is none. So the zero vectors are keys and landmarks: a zero key has the score 0, which is an
# average weight, and the value 0. A text of 100 tokens gets 156 of them, and its attention is 0.64 of the softmax
# attention that it stands for. With a mask of ones, which says the same as none, it is 0.996. With 257 tokens there are
# 255 of them: 0.56 and 0.82. With 256 and 512 tokens both are equal. So the layer is another one for each length.
# LocalAttention(autopad=True) of the same author, which attends to the neighbouring windows, does it too unless causal:
# of 130 tokens with windows of 128 the last two attend to 126 zeros, and all of them are 36% off, where a mask of ones
# gives the attention by the formula. Nobody gives a mask where all texts have one length. No warning comes.
#
# Always pass a mask, torch.ones(x.shape[:2], dtype=torch.bool). Seen in November 2026 with Python 3.11. The script
# fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check nystrom-attention==0.0.14 local-attention==1.11.2 \
    hyper-connections==0.4.11 torch-einops-utils==0.2.0 einops==0.8.2 torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
from importlib.metadata import version

import torch
from local_attention import LocalAttention
from nystrom_attention import NystromAttention

print("nystrom-attention", version("nystrom-attention"), "torch", torch.__version__)
torch.set_num_threads(1)
seen = {100: (0.375, 0.045, 0.64, 0.996), 256: (0.061, 0.061, 0.99, 0.99), 257: (0.52, 0.41, 0.56, 0.82),
        512: (0.356, 0.356, 0.87, 0.87)}
for length, expected in seen.items():
    torch.manual_seed(0)
    layer = NystromAttention(dim=64, dim_head=16, heads=4, residual=False).eval()
    x = 2 * torch.randn(2, length, 64)
    with torch.no_grad():
        q, k, v = (t.view(2, length, 4, 16).transpose(1, 2) for t in layer.to_qkv(x).chunk(3, -1))
        exact = torch.nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        exact = layer.to_out(exact) - layer.to_out[0].bias
        found = [layer(x, mask=mask) - layer.to_out[0].bias
                 for mask in (None, torch.ones(2, length, dtype=torch.bool))]
    off = [((each - exact).norm() / exact.norm()).item() for each in found]
    times = [((each * exact).sum() / exact.square().sum()).item() for each in found]
    print(f"{length} tokens: off by {off[0]:.3f} without a mask, {off[1]:.3f} with ones; "
          f"{times[0]:.3f} and {times[1]:.3f} times the softmax attention")
    for value, wanted in zip((*off, *times), expected):
        assert abs(value - wanted) < 0.01, "another attention than seen"
    if length % 256 == 0:
        assert torch.allclose(*found, atol=1e-5)

for length in (100, 128, 130, 256):
    q, k, v = torch.randn(3, 2, 4, length, 16)
    place = torch.arange(length) // 128
    exact = torch.nn.functional.scaled_dot_product_attention(q, k, v, (place[:, None] - place).abs() <= 1)
    layer = LocalAttention(window_size=128, autopad=True, causal=False)
    off = [((layer(q, k, v, mask=mask) - exact).norm() / exact.norm()).item()
           for mask in (None, torch.ones(2, length, dtype=torch.bool))]
    print(f"{length} tokens, windows of 128: off by {off[0]:.3f} without a mask, {off[1]:.6f} with ones")
    assert off[1] < 1e-5 and (off[0] < 1e-5 if length % 128 == 0 else off[0] > 0.1)
    causal = LocalAttention(window_size=128, autopad=True, causal=True)
    assert torch.allclose(causal(q, k, v), causal(q, k, v, mask=torch.ones(2, length, dtype=torch.bool)), atol=1e-6)
PYTHON
echo "as seen"
