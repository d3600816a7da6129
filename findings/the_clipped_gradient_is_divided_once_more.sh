#!/usr/bin/env bash
# poutyne 1.19.0: with batches_per_step, ClipNorm and ClipValue clip a gradient that is not divided by the number of
# texts yet, so that a limit of 1 is one of 1/64 at 64 texts for each step.
#
# With batches_per_step=n, fit adds up the gradients of n batches, for a large batch in little memory. It multiplies the
# loss of each batch by its number of texts, and divides the sum by the number of all texts just before the step. The
# callbacks for clipping run after each backward pass, so they clip a sum that is as many times too large as there are
# texts, and the division comes on top. ClipNorm(parameters, 1.0) with 2 batches of 32, 4 of 16 or 8 of 8 lets pass a
# gradient of length 1/64, where one batch of 64 has 1: the same texts, the same limit, and 64 times smaller steps. Here
# SGD has an error of 6.5 after 20 epochs in place of one below 0.01. Adam hides it, as it divides by the size, but
# every gradient is clipped then, to one length, and in each sum the first batches are clipped again and again, so that
# the last one has most to say: of two batches in opposite directions, 3 against 1, the sum points to the weaker one.
# Without the callback all ways to cut 64 texts give one training. The page of the callback refers to PyTorch's
# clip_grad_norm_, and that of batches_per_step speaks of "the mean of the batches_per_step batch losses". No warning
# comes.
#
# Clip in a hook of the optimizer, as below. Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check poutyne==1.19.0 torchmetrics==1.9.0 \
    lightning-utilities==0.15.3 torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/python" -W ignore - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
from importlib.metadata import version

import torch
from poutyne import ClipNorm, Model
from torch.utils.data import DataLoader, TensorDataset

print("poutyne", version("poutyne"), "torch", torch.__version__)
torch.set_num_threads(1)
torch.manual_seed(0)
TEXTS = torch.randn(256, 8)
TARGETS = TEXTS @ torch.randn(8, 1)


def gradient(net):
    return torch.cat([p.grad.flatten() for p in net.parameters()])


def train(batch, per_step, clip, texts=TEXTS, targets=TARGETS, epochs=20, bias=True):
    """The gradients of all steps, as the optimizer meets them, and the error at the end."""
    torch.manual_seed(1)
    net = torch.nn.Linear(texts.shape[1], 1, bias=bias)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    if clip == "hook":
        def clip_now(*_):
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.register_step_pre_hook(clip_now)
    steps = []
    optimizer.register_step_pre_hook(lambda *_: steps.append(gradient(net)))
    callbacks = []
    if clip == "callback":
        callbacks = [ClipNorm(net.parameters(), 1.0)]
    Model(net, optimizer, "mse").fit_generator(
        DataLoader(TensorDataset(texts, targets), batch_size=batch), epochs=epochs, batches_per_step=per_step,
        callbacks=callbacks, verbose=False)
    with torch.no_grad():
        return torch.stack(steps), (net(texts) - targets).square().mean().item()


whole, whole_error = train(64, 1, "callback")
print(f"one batch of 64: {whole[0].norm():.4f} is the length of the first gradient, error {whole_error:.4f}")
assert abs(whole[0].norm() - 1) < 1e-4 and whole_error < 0.01
free, _ = train(64, 1, "no")
for batch, per_step in ((32, 2), (16, 4), (8, 8)):
    steps, error = train(batch, per_step, "callback")
    print(f"{per_step} batches of {batch}: {steps[0].norm():.4f}, error {error:.2f}")
    assert (steps.norm(dim=1) < 1 / 64 + 1e-6).all() and abs(steps[0].norm() - 1 / 64) < 1e-4 and error > 6
    steps, _ = train(batch, per_step, "no")
    assert torch.allclose(steps[:4], free[:4], atol=1e-4)              # without clipping the cut does not matter
    steps, error = train(batch, per_step, "hook")
    assert torch.allclose(steps[:4], whole[:4], atol=1e-4) and error < 0.01

# One weight; the first batch of 4 texts pulls it up three times as strongly as the second pulls it down.
texts = torch.ones(8, 1)
torch.manual_seed(1)
weight = torch.nn.Linear(1, 1, bias=False).weight.item()
targets = torch.tensor([[weight + 30.0]] * 4 + [[weight - 10.0]] * 4)
for clip, sign in (("no", -1), ("hook", -1), ("callback", 1)):
    steps, _ = train(4, 2, clip, texts, targets, epochs=1, bias=False)
    print(f"3 against 1, clipping {clip}: gradient {steps.item():+.3f}")
    assert sign * steps.item() > 0
PYTHON
echo "as seen"
