#!/usr/bin/env bash
# h-transformer-1d 0.1.9: no token of the encoder sees the other half of its text, in any number of layers, and the
# attention that is left is no mean of the values.
#
# H-Transformer-1D (Zhu and Soricut, 2021) attends to near tokens one by one and to far ones in blocks, the larger the
# farther. At each level neighbouring blocks are joined to a larger one, and each block attends to its neighbour, until
# two are left. HAttention1D stops one level too early, at four: num_levels is log2(n // block_size) - 2, "until 2 x 2",
# and the causal variant has - 1. So the first and the second half never attend to each other: with 4 layers and 512
# tokens the outputs of the first 256 are the same to the last bit for any other second half, and token 255 doesn't
# react to token 256. [CLS] knows half of the text. Two sums are wrong besides, in CausalHAttention1D too. A block has
# the mean of its keys and the sum of its values, so that its weight counts for all its tokens, but counts once in the
# denominator: where all values are 1 the result is 3.3 for 512 tokens and 17 for 4,096, so a model is another one for
# each length. And each level subtracts its own largest score before the exponential, which cancels out in a row of a
# softmax, but not where levels are added afterwards: whether the far tokens fit a query by a score of 10 or by 0, they
# get the same share. No warning comes, and shapes are as expected.
#
# Use another attention for long texts. Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check h-transformer-1d==0.1.9 \
    rotary-embedding-torch==0.9.1 einops==0.8.2 torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
from importlib.metadata import version

import torch
from h_transformer_1d.h_transformer_1d import CausalHAttention1D, HAttention1D, HTransformer1D

print("h-transformer-1d", version("h-transformer-1d"), "torch", torch.__version__)
torch.set_num_threads(1)
SIZE = 16


class Given(torch.nn.Module):
    """Takes queries, keys and values from the input."""

    def forward(self, x):
        return x


def attend(layer, queries, keys, values, **options):
    layer = layer(SIZE, heads=1, dim_head=SIZE, block_size=16, **options)
    layer.to_qkv, layer.to_out = Given(), Given()
    return layer(torch.cat([queries, keys, values], -1))


def exact(queries, keys, values, causal=False):
    return torch.nn.functional.scaled_dot_product_attention(queries, keys, values, is_causal=causal)


torch.manual_seed(0)
for length in (64, 200, 512):
    half = 2 ** ((length - 1).bit_length() - 1)
    model = HTransformer1D(num_tokens=100, dim=32, depth=4, heads=2, dim_head=16, block_size=16, max_seq_len=512,
                           causal=False).eval()
    texts = torch.randint(1, 100, (10, length))
    others = texts.clone()
    others[:, half:] = torch.randint(1, 100, (10, length - half))
    with torch.no_grad():
        changes = (model(texts) - model(others)).abs().amax((0, 2))
    print(f"{length} tokens, 4 layers: with another second half the outputs of the first {half} change by "
          f"{changes[:half].max():.1f}, those of the second by {changes[half:].max():.1f}")
    assert changes[:half].max() == 0 and changes[half:].min() > 0.1

means, ends = {}, {}
for length in (64, 128, 512, 4096):
    queries, keys = 0.3 * torch.randn(2, 1, length, SIZE)
    ones = torch.ones(1, length, SIZE)
    found = attend(HAttention1D, queries, keys, ones)
    causal = attend(CausalHAttention1D, queries, keys, ones, max_seq_len=length)
    assert torch.allclose(exact(queries, keys, ones), ones, atol=1e-4)
    assert torch.allclose(exact(queries, keys, ones, True), ones, atol=1e-4)
    means[length], ends[length] = found.mean().item(), causal.max().item()
    print(f"{length} tokens, values of 1: {means[length]:.2f} on average, {ends[length]:.2f} at most where causal")
assert abs(means[64] - 1) < 1e-4 and abs(means[512] - 3.3) < 0.2 and abs(means[4096] - 17) < 1
assert abs(ends[4096] - 41) < 2

length = 512
even = (torch.arange(length) % 256 < 128).float()[None, :, None].expand(1, length, SIZE)
first = (torch.arange(length) < 256).float()[None, :, None].expand(1, length, SIZE)
for name, layer, far, options in (("HAttention1D", HAttention1D, even, {}),
                                  ("CausalHAttention1D", CausalHAttention1D, first, {"max_seq_len": length})):
    shares = {}
    for score, seen in ((0, 0.5), (10, 0.99995)):
        queries, keys = torch.zeros(2, 1, length, SIZE)
        queries[..., 0], keys[..., 0] = score * SIZE ** 0.5, far[..., 0]
        expected = exact(queries, keys, far, bool(options))[0, -1, 0].item()
        total = attend(layer, queries, keys, torch.ones_like(far), **options)
        shares[score] = (attend(layer, queries, keys, far, **options) / total)[0, -1, 0].item()
        print(f"{name}: far tokens of score {score} get {shares[score]:.5f} from the last one, softmax {expected:.5f}")
        assert abs(expected - seen) < 1e-4
    assert abs(shares[0] - shares[10]) < 1e-4 and 0.49 < shares[10] < 0.53
PYTHON
echo "as seen"
