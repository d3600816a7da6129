#!/usr/bin/env bash
# grokadamw 0.1.2: a run that goes on from a checkpoint has lost all moments and the count of steps, so its first step
# is up to 6.5 times as long as it should be.
#
# GrokAdamW is one of the optimizers of transformers' Trainer (optim="grokadamw"). Its moments are not in the state of
# the optimizer, where PyTorch would find them, but in a dict of each parameter group, whose keys are the parameters
# themselves. Saving writes the parameters along as keys. Loading makes copies of them, load_state_dict too, and no copy
# is a parameter of the model. So no moment is found, and the next step makes new ones: the optimizer is that of
# the first step, to the last bit, while the moments of the checkpoint stay beside in memory and in each later
# checkpoint. A new start is not harmless here. The first beta shrinks from tensor to tensor, by a tenth each, and the
# correction of the bias, by the README's formula, does not: the first step moves the tenth tensor by 6.5 times the
# learning rate. Here the loss on all data rises, where the unbroken run lowers it. AdamW of PyTorch goes on to the bit.
# Nothing is said, load_state_dict succeeds.
#
# Give the loaded moments their parameters back, as restore below. Seen in November 2026 with Python 3.11. The script
# fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check grokadamw==0.1.2 torch==2.13.0 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
import copy
import io

import torch
from grokadamw import GrokAdamW
from torch import nn

torch.set_num_threads(1)
RATE, STEPS = 1e-3, 200
X = torch.randn(512, 16, generator=torch.Generator().manual_seed(1))
Y = X[:, :1] * X[:, 1:2]


def model():
    torch.manual_seed(0)
    return nn.Sequential(*[layer for _ in range(4) for layer in (nn.Linear(16, 16), nn.Tanh())], nn.Linear(16, 1))


def train(net, optimizer, begin, end):
    for step in range(begin, end):
        rows = torch.randint(0, 512, (64,), generator=torch.Generator().manual_seed(step))
        optimizer.zero_grad()
        (net(X[rows]) - Y[rows]).square().mean().backward()
        optimizer.step()


def loss(net):
    with torch.no_grad():
        return (net(X) - Y).square().mean().item()


def lengths(net, before):
    """The root mean square of each tensor's last step, in learning rates."""
    return [round((p.detach() - b).square().mean().sqrt().item() / RATE, 2) for p, b in zip(net.parameters(), before)]


def weights(net):
    return [p.detach().clone() for p in net.parameters()]


def equal(first, second):
    return all(torch.equal(a, b) for a, b in zip(weights(first), weights(second)))


def restore(optimizer):
    """Gives the loaded moments their parameters back, if all of them had a gradient from the first step on."""
    for group in optimizer.param_groups:
        group["state"] = dict(zip(group["params"], group["state"].values()))


first, begin = model(), weights(model())
train(first, GrokAdamW(first.parameters(), lr=RATE), 0, 1)
print("first step of all:", lengths(first, begin))
assert lengths(first, begin)[0] == 1.0 and 6.4 < lengths(first, begin)[-1] < 6.6

for kind in (torch.optim.AdamW, GrokAdamW):
    unbroken = model()
    optimizer = kind(unbroken.parameters(), lr=RATE)
    train(unbroken, optimizer, 0, STEPS)
    file = io.BytesIO()
    torch.save({"model": unbroken.state_dict(), "optimizer": optimizer.state_dict()}, file)
    before, loss_before = weights(unbroken), loss(unbroken)
    runs = {}
    for name in ("resumed", "mended", "new"):
        file.seek(0)
        saved = torch.load(file, weights_only=False)
        net = model()
        net.load_state_dict(saved["model"])
        other = kind(net.parameters(), lr=RATE)
        if name != "new":
            other.load_state_dict(saved["optimizer"])
        if name == "mended" and kind is GrokAdamW:
            restore(other)
        runs[name] = net, other
    for net, other in [(unbroken, optimizer), *runs.values()]:
        train(net, other, STEPS, STEPS + 1)
    same = {name: equal(net, unbroken) for name, (net, _) in runs.items()}
    print(f"{kind.__name__}: same weights as the unbroken run after one more step: {same}")
    if kind is torch.optim.AdamW:
        assert same == {"resumed": True, "mended": True, "new": False}
        continue
    assert same == {"resumed": False, "mended": True, "new": False}
    assert equal(runs["resumed"][0], runs["new"][0]), "some moments are found now"
    assert saved["optimizer"]["state"] == {}
    print("unbroken step:", lengths(unbroken, before), "\nresumed step: ", lengths(runs["resumed"][0], before))
    assert max(lengths(unbroken, before)) < 1 and lengths(runs["resumed"][0], before)[-1] > 6.4
    print(f"loss {loss_before:.4f}, one step later {loss(unbroken):.4f} and {loss(runs['resumed'][0]):.4f}")
    assert loss(unbroken) < loss_before < loss(runs["resumed"][0])
    states = runs["resumed"][1].param_groups[0]["state"]
    counts = sorted(state["step"] for state in states.values())
    print("moments in memory:", len(states), "for", len(before), "tensors, their steps:", counts)
    assert counts == [1] * 10 + [STEPS] * 10
    assert len(copy.deepcopy(runs["resumed"][1].state_dict())["param_groups"][0]["state"]) == 20
    train(*runs["mended"], STEPS + 1, STEPS + 50)
    train(unbroken, optimizer, STEPS + 1, STEPS + 50)
    assert equal(runs["mended"][0], unbroken), "restore is not enough"
PYTHON
echo "as seen"
