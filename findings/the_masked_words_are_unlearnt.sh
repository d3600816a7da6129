#!/usr/bin/env bash
# x-transformers 2.31.10: by default NonAutoregressiveWrapper trains an encoder to give masked words as little
# probability as it can, as the weights of its loss are negative.
#
# The wrapper masks a share of the words of each text, from none to all, and has the encoder restore them, as MaskGIT
# and masked diffusion models do. use_simple_mdlm_loss_weight=True, the default, weighs each text by the masked share,
# as Sahoo and others (2024, equation 10) do: by a'/(1 - a), where a is the share of words that are left. It falls with
# time, so a' is negative, and so is the logarithm of the probability that it multiplies. With the linear schedule this
# is the cross-entropy divided by the masked share. The code takes the masked share for what is left, and the
# cross-entropy, which is positive, for the logarithm. Its weights are -1 divided by the share that is left, and they
# are negative for schedule="cosine" as well. So the loss is below zero from the first step and falls without end as
# the model gets worse: here to -50, while the encoder, which is to find a digit in a row like 5 6 7 8, finds a tenth,
# as by chance. With False, the plain mean, it finds all. No warning comes.
#
# Pass use_simple_mdlm_loss_weight=False, or set loss_weight_fn as below. Seen in November 2026 with Python 3.11. The
# script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check x-transformers==2.31.10 torch-einops-utils==0.2.0 \
    einops==0.8.2 einx==0.4.3 torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
import random
from importlib.metadata import version

import torch
from x_transformers import Encoder, NonAutoregressiveWrapper, TransformerWrapper

print("x-transformers", version("x-transformers"), "torch", torch.__version__)
torch.set_num_threads(1)
MASK, LENGTH = 10, 8


def texts(number):
    return (torch.randint(0, 10, (number, 1)) + torch.arange(LENGTH)) % 10


def train(weight=None, **options):
    torch.manual_seed(0)
    random.seed(0)
    encoder = TransformerWrapper(num_tokens=11, max_seq_len=LENGTH, attn_layers=Encoder(
        dim=32, depth=1, heads=2, attn_dim_head=16, rotary_pos_emb=True, verbose=False))
    model = NonAutoregressiveWrapper(encoder, mask_id=MASK, **options)
    if weight is not None:
        model.loss_weight_fn = weight
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    for _ in range(250):
        loss = model(texts(32)).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    right = texts(1000)
    masked = right.clone()
    masked[:, 3] = MASK
    with torch.no_grad():
        logits = encoder(masked)[:, 3]
    found = (logits.argmax(-1) == right[:, 3]).float().mean().item()
    entropy = torch.nn.functional.cross_entropy(logits, right[:, 3]).item()
    print(f"{options}: loss {losses[0]:.2f}, then {losses[-1]:.2f}; {found:.3f} found, cross-entropy {entropy:.2f}")
    return model, losses, found, entropy


model, losses, found, entropy = train()
assert max(losses) < 0 and losses[-1] < -40 and found < 0.3 and entropy > 5
times = torch.linspace(0.1, 0.9, 9)
share = model.schedule_fn(times)
assert torch.allclose(model.loss_weight_fn(times), -1 / (1 - share))

cosine = NonAutoregressiveWrapper(model.net, mask_id=MASK, schedule="cosine")
assert (cosine.loss_weight_fn(times) < 0).all() and cosine(texts(32)).loss < 0

_, losses, found, _ = train(use_simple_mdlm_loss_weight=False)
assert min(losses) > 0 and found > 0.99

_, losses, found, _ = train(weight=lambda times: 1 / (1 - times).clamp(min=1 / LENGTH))
assert min(losses) > 0 and found > 0.99
PYTHON
echo "as seen"
