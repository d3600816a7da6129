#!/usr/bin/env bash
# adapters 1.3.0: the average of an adapter with itself is half of it, as Average divides by the number of adapters
# twice.
#
# adapters joins trained adapters of one encoder, as of several fields or languages. Average("a", "b") runs both and
# takes their mean with weights, which it brings to the sum 1. The weighted outputs are then averaged, not added, and so
# are divided by their number once more. With two LoRA adapters each change of the weights is half of what it should be,
# with five a fifth, so the model returns to the plain encoder the more adapters are averaged. Bottleneck adapters carry
# the residual: the hidden states themselves are halved, and with the weights 1 and 0 it is not the first adapter.
# average_adapter, which averages weights, has the like for "lora_delta_w_svd": the new adapter has the same alpha and
# the new rank, so that the scale alpha / r changes. The average of two adapters of rank 8 at rank 16, which holds it
# without loss, is half of it, and at rank 4 twice. A stack of a trained LoRA adapter and a new one, as a language and
# a task, is the plain encoder: the second takes the output of the first, and B is zero. No warning comes.
#
# Take Average(..., weights=[1.0] * n, normalize_weights=False), and svd_rank equal to r. Seen in November 2026 with
# Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check adapters==1.3.0 transformers==4.57.6 torch==2.13.0 \
    numpy==2.4.6
HF_HUB_OFFLINE=1 "$folder/venv/bin/python" -W ignore - <<'PYTHON'
import logging
from importlib.metadata import version

import adapters
import torch
from adapters import LoRAConfig
from adapters.composition import Average, Stack
from transformers import BertConfig, BertModel

print("adapters", version("adapters"))
logging.disable(logging.WARNING)
torch.set_num_threads(1)
ids = torch.randint(5, 100, (3, 10), generator=torch.Generator().manual_seed(0))


def encoder(config, names):
    """A small encoder with adapters whose weights are not those of the beginning."""
    torch.manual_seed(0)
    model = BertModel(BertConfig(vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                                 intermediate_size=64))
    adapters.init(model)
    for name in names:
        model.add_adapter(name, config=config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if any(f".{adapter}." in name for adapter in names):
                parameter.add_(0.1 * torch.randn(parameter.shape))
    return model.eval()


def run(model, setup):
    model.set_active_adapters(setup)
    with torch.no_grad():
        return model(ids).last_hidden_state


def changes(model, name):
    """The change of the query matrix of the first layer by a LoRA adapter."""
    lora = model.encoder.layer[0].attention.self.query.loras[name]
    return lora.delta_w * lora.scaling


for config in ("lora", "seq_bn", "double_seq_bn", "par_bn", "ia3"):
    model = encoder(config, ["a", "b"])
    alone = run(model, "a")
    off = {text: float((run(model, setup) - alone).abs().max()) for text, setup in (
        ("a and a", Average("a", "a")), ("a and b, weights 1 and 0", Average("a", "b", weights=[1.0, 0.0])),
        ("a and a, weights 1 and 1 as they are", Average("a", "a", weights=[1.0, 1.0], normalize_weights=False)))}
    print(f"{config}: a changes the output by {float((alone - run(model, None)).abs().max()):.3f}; from a is off",
          {text: round(distance, 4) for text, distance in off.items()})
    assert off["a and a"] > 1e-3 and off["a and b, weights 1 and 0"] > 1e-3, "the average with itself is the adapter"
    assert off["a and a, weights 1 and 1 as they are"] < 1e-5, "the sum of weights is another one"

names = ["a", "b", "c", "d", "e"]
model = encoder("lora", names)
plain, alone = run(model, None), run(model, "a")
sizes = [float((run(model, Average(*["a"] * n)) - plain).norm() / (alone - plain).norm()) for n in range(1, 6)]
print("the effect of LoRA a in an average of n times a:", [round(size, 2) for size in sizes])
assert all(abs(size - 1 / n) < 0.05 for n, size in enumerate(sizes, 1)), "the effect does not shrink with the number"

model = encoder(LoRAConfig(r=8, alpha=8), ["a", "b"])
mean = (changes(model, "a") + changes(model, "b")) / 2
for rank in (4, 8, 16):
    model.average_adapter(f"rank {rank}", ["a", "b"], combine_strategy="lora_delta_w_svd", svd_rank=rank)
    change, (u, s, v) = changes(model, f"rank {rank}"), torch.linalg.svd(mean)
    best = u[:, :rank] * s[:rank] @ v[:rank]                  # the nearest matrix of this rank
    ratio = float((change * best).sum() / (best * best).sum())
    print(f"average of two LoRA adapters of rank 8, by SVD of rank {rank}: {ratio:.3f} times the nearest matrix")
    assert torch.allclose(change, 8 / rank * best, atol=1e-5), "the scale is otherwise"

model.add_adapter("new", config=LoRAConfig(r=8, alpha=8))
model.eval()
stacked, plain = run(model, Stack("a", "new")), run(model, None)
print(f"a stack of LoRA a and a new one is off the plain encoder by {float((stacked - plain).abs().max()):.4f}")
assert torch.allclose(stacked, plain, atol=1e-6), "the stack holds the first adapter"
PYTHON
echo "as seen"
