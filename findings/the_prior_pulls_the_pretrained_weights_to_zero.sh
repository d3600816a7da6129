#!/usr/bin/env bash
# bayesian-torch 0.5.0: dnn_to_bnn with MOPED leaves the prior at zero, so the divergence pulls a pretrained model's
# weights to zero, and prior_variance of the layers is a standard deviation.
#
# MOPED (Krishnan and others, 2020) makes a Bayesian model of a pretrained one: the pretrained weights are the means of
# the prior, so that fine-tuning stays near them, and the posterior starts there. The README gives dnn_to_bnn with
# moped_enable=True for "setting the prior and initializing variational parameters from a pretrained deterministic
# model". It copies the weights to the posterior's means alone. The prior stays the normal distribution around
# prior_mu, 0, so that the divergence of a model which has not learnt yet is large, and its gradient is the decay of
# the pretrained weights: trained by get_kl_loss alone, where nothing should move, all weights go to 0 and the outputs
# with them. bayesian_torch.utils.util.MOPED, for models that are built of Bayesian layers by hand, does set the prior.
# The layers call the width of the prior prior_variance, "variance of the prior arbitrary distribution", and use it for
# the standard deviation: prior_variance=0.01 is a prior of variance 0.0001, which holds weights a hundred times harder.
# For one weight with 100 examples the mean of the posterior is then 0.007, where it is 0.37 by the formula for a
# variance of 0.01, and with prior_variance=0.1, the root, it is 0.37.
#
# After dnn_to_bnn copy each layer's mu_weight to prior_weight_mu and mu_bias to prior_bias_mu, and again after loading,
# as the state dict has no prior. Give the layers standard deviations. Seen in November 2026 with Python 3.11. The
# script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps bayesian-torch==0.5.0
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
import copy
from importlib.metadata import version

import torch
from bayesian_torch.layers import LinearFlipout, LinearReparameterization
from bayesian_torch.models.dnn_to_bnn import dnn_to_bnn, get_kl_loss
from torch.distributions import Normal, kl_divergence

print("bayesian-torch", version("bayesian-torch"), "torch", torch.__version__)
torch.set_num_threads(1)
torch.manual_seed(0)
pretrained = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 4))
texts = torch.randn(32, 64)


def convert(set_prior, kind):
    model = copy.deepcopy(pretrained)
    dnn_to_bnn(model, {"prior_mu": 0.0, "prior_sigma": 1.0, "posterior_mu_init": 0.0, "posterior_rho_init": -3.0,
                       "type": kind, "moped_enable": True, "moped_delta": 0.1})
    for layer, original in ((model[0], pretrained[0]), (model[2], pretrained[2])):
        assert torch.equal(layer.mu_weight, original.weight) and torch.equal(layer.mu_bias, original.bias)
        assert not layer.prior_weight_mu.any() and not layer.prior_bias_mu.any()
        assert not any("prior" in name for name in layer.state_dict())
        if set_prior:
            layer.prior_weight_mu.copy_(original.weight)
            layer.prior_bias_mu.copy_(original.bias)
    return model


def means(model):
    return torch.cat([p.detach().flatten() for name, p in model.named_parameters() if "rho" not in name])


start = means(pretrained)
for kind in ("Reparameterization", "Flipout"):
    for set_prior in (False, True):
        model = convert(set_prior, kind)
        assert torch.equal(means(model), start)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for _ in range(500):
            optimizer.zero_grad()
            get_kl_loss(model).backward()
            optimizer.step()
        left = (means(model).norm() / start.norm()).item()
        words = "set to the pretrained weights" if set_prior else "as dnn_to_bnn leaves it"
        print(f"{kind}, prior {words}: {left:.1%} of the length of the weights is left")
        assert torch.allclose(means(model), start, atol=1e-6) if set_prior else left < 1e-6

layer = LinearReparameterization(64, 64, prior_variance=0.01, bias=False)
posterior = Normal(layer.mu_weight, torch.nn.functional.softplus(layer.rho_weight))
for deviation, equal in ((0.01, True), (0.1, False)):
    by_formula = kl_divergence(posterior, Normal(0.0, deviation)).mean()
    print(f"prior_variance=0.01: divergence {layer.kl_loss():.2f}, for a deviation of {deviation} {by_formula:.2f}")
    assert torch.allclose(layer.kl_loss(), by_formula, rtol=1e-4) == equal

x = torch.randn(100, 1)
y = 0.7 * x + torch.randn(100, 1)
for kind in (LinearReparameterization, LinearFlipout):
    for given, meant in ((0.01, 0.01 ** 2), (0.1, 0.01)):
        torch.manual_seed(1)
        model = kind(1, 1, prior_variance=given, bias=False)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        found = []
        for step in range(1500):
            optimizer.zero_grad()
            outputs, divergence = model(x)
            ((outputs - y).square().sum() / 2 + divergence).backward()
            optimizer.step()
            found.append(model.mu_weight.item())
        found = sum(found[750:]) / 750
        by_formula = {v: ((x * y).sum() / (x.square().sum() + 1 / v)).item() for v in (meant, 0.01)}
        print(f"{kind.__name__}(prior_variance={given}): mean {found:.3f}, by the formula for a variance of {meant:g} "
              f"{by_formula[meant]:.3f}, for 0.01 {by_formula[0.01]:.3f}")
        assert abs(found - by_formula[meant]) < 0.02
PYTHON
echo "as seen"
