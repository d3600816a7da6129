#!/usr/bin/env bash
# st-moe-pytorch 0.1.8: the balance loss counts a token only if its expert has room for it, so it is smaller for a
# router that sends all tokens to one expert than for a balanced one, and its gradient is up to 13 times too small.
#
# A mixture of experts needs a loss against a router that prefers a few experts: for each expert the share of tokens
# whose first choice it is, times its mean probability, summed and scaled so that an even router has 1 (Switch
# Transformer and ST-MoE, by Mesh TensorFlow's code). TopNGating keeps a view of the mask of first choices for that,
# and then takes out of the mask in place the tokens that are beyond the capacity of their expert. The share is
# computed afterwards, so that it can't be larger than capacity_factor / num_experts, 1.25 / 16 by default: an expert
# that is the first choice of all 256 tokens of a text has a share of 8%, while 69% of the tokens, or more, get no
# expert at all. Where the loss should rise from 1 to 2.6 and 7.5, the surer the router is, it is 0.20 and 0.59, and
# 0.94 where all is even. The gradient shrinks by the same 12.8. By gradient descent on this loss alone a collapsed
# router takes 238 steps until no expert has more than a quarter of the tokens, and 25 by the formula. In a training
# the coefficient of 0.01 is one of 0.0008 just when it is needed, and a loss that goes down can mean that all tokens
# go to one place. mixture-of-experts 0.2.3, an older package of the same author, computes the share first and is
# right; he sends its users to the newer one at https://github.com/lucidrains/mixture-of-experts/issues/10. No warning
# comes.
#
# Compute the loss from the gate's own probabilities, as below. Seen in November 2026 with Python 3.11. The script fails
# if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check st-moe-pytorch==0.1.8 mixture-of-experts==0.2.3 \
    colt5-attention==0.11.2 beartype==0.23.1 einops==0.8.2 torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
from importlib.metadata import version

import torch
from mixture_of_experts import MoE as Older
from st_moe_pytorch import MoE

print("st-moe-pytorch", version("st-moe-pytorch"), "torch", torch.__version__)
torch.set_num_threads(1)
EXPERTS, WIDTH = 16, 32


def formula(weight, texts):
    """The loss by the paper, and the largest share of an expert."""
    probabilities = (texts @ weight).softmax(-1)
    shares = torch.nn.functional.one_hot(probabilities.argmax(-1), EXPERTS).float().mean(1)
    return EXPERTS * (shares * probabilities.mean(1)).sum(-1).mean(), shares.max().item()


torch.manual_seed(0)
model = MoE(dim=WIDTH, num_experts=EXPERTS).train()
router = model.gate.to_gates.weight
older = Older(dim=WIDTH, num_experts=EXPERTS).train()
older.gate.w_gating.data.copy_(router.T)
noise = torch.randn(4, 256, WIDTH)
found = {}
for push, low, high in ((0.0, 0.5, 1), (2.0, 0.0775, 0.0785), (5.0, 0.0775, 0.0785)):
    texts = 0.3 * noise + push * router[0].detach() / router[0].detach().norm()
    model.zero_grad()
    output = model(texts)
    output.balance_loss.backward()
    gradient = router.grad.clone()
    weight = router.detach().T.clone().requires_grad_()
    expected, share = formula(weight, texts)
    expected.backward()
    ratio = (gradient.norm() / weight.grad.norm()).item()
    found[push] = output.balance_loss.item()
    dropped = 1 - (output.outputs.detach().abs().sum(-1) > 0).float().mean().item()
    print(f"one expert is the first choice of {share:.0%}: loss {found[push]:.2f}, by the formula {expected:.2f}, "
          f"gradient {ratio:.3f} of the right one, {dropped:.0%} of the tokens get nothing")
    assert torch.allclose(older(texts)[1] / older.loss_coef, expected, rtol=1e-4)
    assert low < ratio < high and (share > 0.99) == (push > 0)
    assert push == 0 or abs(expected.item() / found[push] - 12.8) < 0.01 and dropped > 0.65
assert 0.9 < found[0.0] < 1 and found[2.0] < 0.25 and found[5.0] < 0.7

texts = 0.3 * noise + 2 * router[0].detach() / router[0].detach().norm()
steps = {}
for name in ("the package", "the formula"):
    model.gate.to_gates.weight.data.copy_(older.gate.w_gating.detach().T)
    optimizer = torch.optim.SGD([router], lr=0.01)
    for step in range(4000):
        expected, share = formula(router.T, texts)
        if share < 0.25:
            break
        loss = expected if name == "the formula" else model(texts).balance_loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    steps[name] = step
    print(f"by {name} a router without an expert of more than a quarter takes {step} steps of gradient descent")
assert steps["the package"] > 5 * steps["the formula"] > 0
PYTHON
echo "as seen"
