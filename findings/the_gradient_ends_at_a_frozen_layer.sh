#!/usr/bin/env bash
# lora-pytorch 0.2.0: no gradient passes through a frozen weight, so in the beginning only the last layer with an
# adapter learns, and later all others learn by a wrong gradient.
#
# LoRA.forward of a layer computes y = module(x) under torch.set_grad_enabled(False) and adds lora_module(x). That
# saves the gradient of the frozen weight, which nobody needs, but loses the gradient of x too, which the layers below
# need: of dy/dx = W + B A only B A is left. The matrix B of an adapter begins with zeros, so B A is zero, and no layer
# below the last one gets any gradient. Where the output layer is an adapter, an encoder with LoRA in all its layers
# stands still in the first step. Afterwards a gradient comes through the adapters alone: it does not agree with finite
# differences, and its direction is another one. requires_grad_(False) for the frozen weights would have done. In the
# example, where the first of five layers is to change, training ends with a loss above that of the beginning, and the
# same adapters with the gradient of autograd come to a twentieth of it. No warning comes.
#
# Use peft, or a forward method without set_grad_enabled and frozen parameters. Seen in November 2026 with Python 3.11.
# The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check lora-pytorch==0.2.0 torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import torch
from lora_pytorch import LoRA
from torch import nn
from torch.func import functional_call

print("lora-pytorch", version("lora-pytorch"), "torch", torch.__version__)
torch.manual_seed(0)
torch.set_num_threads(1)


def network():
    torch.manual_seed(1)
    layers = [nn.Linear(16, 32), nn.Tanh()]
    for _ in range(3):
        layers += [nn.Linear(32, 32), nn.Tanh()]
    return nn.Sequential(*layers, nn.Linear(32, 4)).double()


def of_autograd(model, texts):
    """The same function by weights that are computed from the adapters, with nothing hidden from autograd."""
    state = {}
    for number in range(0, 9, 2):
        layer = model.module[number]
        adapter = layer.lora_module
        state[f"{number}.weight"] = layer.module.weight.detach() + (adapter.in_proj @ adapter.out_proj).T
        state[f"{number}.bias"] = layer.module.bias.detach()
    return functional_call(network(), state, (texts,))


def gradients(model, forward, texts, right):
    loss = ((forward(texts) - right) ** 2).mean()
    return torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)


teacher = LoRA.from_module(network(), rank=2)
with torch.no_grad():
    for parameter in list(teacher.parameters())[:2]:       # only the first layer is another one
        parameter.copy_(0.5 * torch.randn_like(parameter))
texts = torch.randn(512, 16, dtype=torch.float64)
with torch.no_grad():
    right = teacher(texts)

model = LoRA.from_module(network(), rank=2)
assert torch.allclose(model(texts), of_autograd(model, texts))
given = [gradient.norm().item() for gradient in gradients(model, model, texts, right)]
true = [gradient.norm().item() for gradient in gradients(model, lambda x: of_autograd(model, x), texts, right)]
print("norms of the gradients of B in five layers at the beginning:", [f"{norm:.4f}" for norm in given[1::2]])
print("by autograd:                                                ", [f"{norm:.4f}" for norm in true[1::2]])
assert set(given[:-1]) == {0.0} and min(true[1::2]) > 0.005, "the gradient reaches the layers below now"
assert abs(given[-1] - true[-1]) < 1e-9

later = LoRA.from_module(network(), rank=2)
with torch.no_grad():
    for parameter in later.parameters():
        parameter.add_(0.2 * torch.randn_like(parameter))
given = gradients(later, later, texts, right)
true = gradients(later, lambda x: of_autograd(later, x), texts, right)
cosines = [nn.functional.cosine_similarity(one.flatten(), other.flatten(), dim=0).item()
           for one, other in zip(given, true)]
parameter, step = list(later.parameters())[1], 1e-6
with torch.no_grad():
    losses = []
    for sign in (1, -1):
        parameter[0, 0] += sign * step
        losses.append(((later(texts) - right) ** 2).mean().item())
        parameter[0, 0] -= sign * step
difference = (losses[0] - losses[1]) / (2 * step)
print("later, cosines with the right gradients:", [f"{cosine:.2f}" for cosine in cosines])
print(f"one number: {given[1][0, 0]:.6f}, by autograd {true[1][0, 0]:.6f}, by finite differences {difference:.6f}")
assert min(cosines[:4]) < 0.8 and max(cosines[:4]) < 0.97 and min(cosines[8:]) > 0.9999
assert abs(true[1][0, 0] - difference) < 1e-7 and abs(given[1][0, 0] - difference) > 1e-3


def train(by_autograd):
    torch.manual_seed(2)
    model = LoRA.from_module(network(), rank=2)
    optimizer = torch.optim.Adam(list(model.parameters()), lr=0.01)
    for _ in range(300):
        optimizer.zero_grad()
        output = of_autograd(model, texts) if by_autograd else model(texts)
        loss = ((output - right) ** 2).mean()
        loss.backward()
        optimizer.step()
    return loss.item()


wrong, good = train(False), train(True)
start = ((network()(texts) - right) ** 2).mean().item()
print(f"loss at the beginning {start:.4f}, after 300 steps {wrong:.4f}, with the gradient of autograd {good:.4f}")
assert good < start / 10 and wrong > start
PYTHON
echo "as seen"
