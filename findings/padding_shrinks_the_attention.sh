#!/usr/bin/env bash
# performer-pytorch 1.1.4: the mask hides the values of padding but not its keys, so attention becomes the weaker the
# more padding a text has: beside a text of 512 tokens one of 32 gets a sixteenth of it.
#
# Performers replace the softmax by positive features, whose sums take the place of the matrix of weights. For each
# token the sum over all values is divided by the sum over all keys. With mask=... the values of padding are set to
# zero, so that it adds nothing above. Its keys stay, and count below, each with a weight like that of a real token.
# So each attention is the right one times the share of real tokens, about, and for a text of 32 tokens in a batch
# of 64 it is 0.5 times the right one, of 128 0.26 and of 512 0.06. The residual keeps the rest alive, so that vectors
# of a PerformerLM differ by 9%, 13% and 16% here, and nothing looks broken: a text has other vectors beside other
# texts, and short ones, which are padded most, are read word by word rather than as a whole. It stays hidden as long as
# all texts are padded to one length. The README passes mask=torch.ones_like(x).bool() and says no more; in issue 89 of
# lucidrains/performer-pytorch the mask "is just the same as the attention mask of BERT". No warning comes.
#
# Give each attention a fast_attention like Divided below, which is nearly right, or batch texts of one length. Seen in
# November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check performer-pytorch==1.1.4 local-attention==1.11.2 \
    axial_positional_embedding==0.3.12 hyper-connections==0.4.11 einops==0.8.2 torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
from importlib.metadata import version

import torch
from performer_pytorch import PerformerLM, SelfAttention

print("performer-pytorch", version("performer-pytorch"), "torch", torch.__version__)
torch.set_num_threads(1)
TOKENS = 32


class Divided(torch.nn.Module):
    """Divides by the sum over the keys whose values were not set to zero."""

    def __init__(self, attention):
        super().__init__()
        self.attention = attention

    def forward(self, q, k, v):
        real = (v != 0).any(-1, keepdim=True).to(v).expand_as(v)
        return self.attention(q, k, v) / self.attention(q, k, real)


def off(found, right):
    return ((found - right).norm() / right.norm()).item()


torch.manual_seed(0)
attention = SelfAttention(dim=64, heads=4, causal=False, attn_out_bias=False).eval()
model = PerformerLM(num_tokens=100, max_seq_len=512, dim=64, depth=2, heads=4, causal=False).eval()
vectors = torch.randn(2, TOKENS, 64)
texts = torch.randint(1, 100, (2, TOKENS))
for mended in (False, True):
    if mended:
        for layer in [attention] + [layer for layer in model.modules() if isinstance(layer, SelfAttention)]:
            if not isinstance(layer.fast_attention, Divided):
                layer.fast_attention = Divided(layer.fast_attention)
    for length, factor, seen in ((TOKENS, 1, 0), (64, 0.5, 0.086), (128, 0.255, 0.13), (512, 0.06, 0.16)):
        mask = torch.arange(length).expand(2, -1) < TOKENS
        rest = torch.randn(2, length - TOKENS, 64)
        ids = torch.cat([texts, torch.zeros(2, length - TOKENS, dtype=torch.long)], 1)
        with torch.no_grad():
            right = attention(vectors)
            found = attention(torch.cat([vectors, rest], 1), mask=mask)[:, :TOKENS]
            alone = model(texts, mask=texts != 0, return_encodings=True)
            beside = model(ids, mask=ids != 0, return_encodings=True)[:, :TOKENS]
        times = ((found * right).sum() / right.square().sum()).item()
        print(f"mended: {mended}, padded to {length}: attention times {times:.3f}, vectors off by "
              f"{off(beside, alone):.3f}")
        if mended:
            assert off(found, right) < 0.15 and off(beside, alone) < 0.02
        else:
            assert abs(times - factor) < 0.02
            assert abs(off(beside, alone) - seen) < 0.015
PYTHON
echo "as seen"
