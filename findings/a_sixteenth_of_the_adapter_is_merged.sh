#!/usr/bin/env bash
# lycoris-lora 4.1.3: merging a LoHa or LoKr adapter scales it by alpha / rank twice, so that with alpha 1 and rank 16
# a sixteenth of what was trained is left.
#
# LyCORIS trains adapters of several kinds for any PyTorch model. The change of a weight is scaled by alpha / rank.
# LoHa's and LoKr's get_weight does this, and forward uses it. Merging goes through get_diff_weight, which takes
# get_weight and multiplies by the scale once more. It also leaves out the factor that use_scalar=True learns. So the
# merged model is not the one that was trained and evaluated: here a LoHa of rank 16 with alpha 1 brings the loss
# from 1.0 to 0.01, and the merged model has 0.91. With alpha 8 it is 0.34, and with alpha 32 twice the change and
# 1.8, more than without an adapter. With use_scalar the merged loss is above 50. Only alpha equal to the rank is
# right, or LoKr with full matrices, which are not scaled. merge_to does this, with precise=True too, and onfly_merge.
# LoRA, full, OFT, BOFT, IA3 and GLoRA of the package merge rightly. No warning comes.
#
# Replace get_diff_weight before merging, as mend below. Seen in November 2026 with Python 3.11. The script fails if
# this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check lycoris-lora==4.1.3 torch==2.13.0 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
import copy
from importlib.metadata import version

import torch
from lycoris import LycorisNetwork, create_lycoris
from torch import nn

print("lycoris-lora", version("lycoris-lora"))
torch.set_num_threads(1)
X = torch.randn(128, 64, generator=torch.Generator().manual_seed(1))


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(64, 64), nn.Linear(64, 64)

    def forward(self, x):
        return self.second(torch.tanh(self.first(x)))


def base(seed=0):
    torch.manual_seed(seed)
    return Layers()


with torch.no_grad():
    Y = base(7)(X)
    Y = base()(X) + (Y - base()(X)) / (Y - base()(X)).square().mean().sqrt()  # the loss of the base model is 1


def mend(network):
    for module in network.loras:
        def diff(multiplier=1, shape=None, device=None, module=module):
            return (module.get_weight(shape) * module.scalar * multiplier).to(device), None

        module.get_diff_weight = diff


def loss(model):
    with torch.no_grad():
        return (model(X) - Y).square().mean().item()


def trained(alpha, rank, **settings):
    model = base()
    LycorisNetwork.apply_preset({"target_module": ["Layers"]})
    network = create_lycoris(model, 1.0, linear_dim=rank, linear_alpha=alpha, **settings)
    network.apply_to()
    optimizer = torch.optim.Adam(network.parameters(), 0.02)
    for _ in range(150):
        optimizer.zero_grad()
        (model(X) - Y).square().mean().backward()
        optimizer.step()
    return model.eval(), network.eval()


def merge(way, rank, alpha, **settings):
    """The losses of the model with its adapter and after merging, and how much of the change was merged."""
    model, network = trained(alpha, rank, **settings)
    before, weight, module = loss(model), base().first.weight, network.loras[0]
    with torch.no_grad():
        outputs = module.org_module[0].forward(X)  # what forward adds to the layer's own outputs
        change = (outputs - nn.functional.linear(X, weight, base().first.bias))
    if "mended" in way:
        mend(network)
    if "fly" in way:
        network.onfly_merge()
        current = module.org_weight
    else:
        network.restore()
        network.merge_to(1.0, precise="precise" in way)
        current = model.first.weight
    moved = X @ (current - weight).detach().T
    part = ((moved * change).sum() / change.square().sum()).item()
    if "fly" in way:
        return before, None, part
    return before, loss(model), part


LOHA, LOKR = {"rank": 16, "algo": "loha"}, {"rank": 6, "algo": "lokr", "factor": 4}
for settings in (LOHA, LOKR):
    rank = settings["rank"]
    for alpha in (1, rank // 2, rank, 2 * rank):
        before, after, part = merge("plain", alpha=alpha, **settings)
        print(settings["algo"], f"rank {rank}, alpha {alpha}: loss {before:.4f}, merged {after:.4f};",
              f"{part:.4f} of the change is merged")
        assert abs(part - alpha / rank) < 1e-3
        if alpha == 1 and settings is LOHA:
            assert before < 0.03 and 0.85 < after < 1
        assert (abs(after - before) < 1e-4) == (alpha == rank)
        assert settings is LOKR or alpha < 32 or after > 1.5
    for way in ("precise", "on the fly", "mended", "mended precise"):
        before, after, part = merge(way, alpha=rank // 2, **settings)
        print(settings["algo"], f"rank {rank}, alpha {rank // 2}, {way}: {part:.4f} of the change is merged")
        assert abs(part - (1 if "mended" in way else 0.5)) < 1e-3
        assert "mended" not in way or abs(after - before) < 1e-4
for algo in ("lora", "full", "diag-oft", "boft", "ia3", "glora", "lokr"):
    before, after, part = merge("plain", rank=4, alpha=2, algo=algo, full_matrix=True)
    print(algo, f"loss {before:.4f}, merged {after:.4f}")
    assert abs(after - before) < 1e-4
for mended in ("", "mended"):
    before, after, part = merge(mended, alpha=16, use_scalar=True, **LOHA)
    print(f"loha with use_scalar, alpha 16 {mended}: loss {before:.4f}, merged {after:.4f}, part {part:.4f}")
    assert (abs(after - before) < 1e-4) if mended else after > 50
PYTHON
echo "as seen"
