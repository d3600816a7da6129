#!/usr/bin/env bash
# adapters 1.3.0: reset_adapter leaves a merged DoRA adapter in the weights, and merging makes another model.
#
# DoRA trains a low-rank change of a matrix and the length of each of its rows. merge_adapter writes the result into
# the encoder's weights, for speed or to compare, and reset_adapter takes it out again, as documented for LoRA. For
# DoRA it computes the old weights and drops them. The encoder keeps the merged matrix, and the adapter, which is
# active again, is applied to it once more: the output is neither that before merging nor that after it. Without an
# adapter the encoder is not the pretrained one either, and the next adapter is trained on it. The merged model differs
# from the unmerged one, too, in two ways. Unmerged, the factor of each row multiplies the bias of the layer, merged it
# does not. With alpha / r other than 1 the change is scaled in the output and not in the lengths, and merged nowhere.
# So the model that was evaluated is not the one that is served. LoRA is right in all of this. No warning comes.
#
# Keep a copy of the encoder's state_dict, and evaluate after merging. Seen in November 2026 with Python 3.11. The
# script fails if this changes.
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
from adapters import DoRAConfig, LoRAConfig
from transformers import BertConfig, BertModel

print("adapters", version("adapters"))
logging.disable(logging.WARNING)
torch.set_num_threads(1)
generator = torch.Generator().manual_seed(0)
ids = torch.randint(5, 100, (16, 10), generator=generator)
target = torch.randn(16, 32, generator=generator)


def encoder(biases):
    torch.manual_seed(0)
    model = BertModel(BertConfig(vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                                 intermediate_size=64, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("dense.bias") or name.endswith(("query.bias", "value.bias")):
                parameter.normal_(std=biases)
    adapters.init(model)
    return model.eval()


def run(model):
    with torch.no_grad():
        return model(ids).last_hidden_state


def distance(one, other):
    return float((one - other).abs().max())


seen = {}
for biases in (0.5, 0.0):
    for kind, config in (("LoRA", LoRAConfig), ("DoRA", DoRAConfig)):
        for alpha in (8, 32):
            model = encoder(biases)
            plain, weight = run(model), model.encoder.layer[0].attention.self.query.weight.detach().clone()
            model.add_adapter("a", config=config(r=8, alpha=alpha))
            model.train_adapter("a")
            optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], 0.01)
            for _ in range(40):                               # a short training
                loss = ((model(ids).last_hidden_state[:, 0] - target) ** 2).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            model.eval()
            unmerged = run(model)
            model.merge_adapter("a")
            merged = run(model)
            model.reset_adapter()
            reset = run(model)
            model.set_active_adapters(None)
            off = run(model)
            now = model.encoder.layer[0].attention.self.query.weight
            seen[kind, alpha, biases] = {
                "effect": distance(unmerged, plain), "merged from unmerged": distance(merged, unmerged),
                "reset from unmerged": distance(reset, unmerged), "reset from merged": distance(reset, merged),
                "without adapter from plain": distance(off, plain), "weight": distance(now, weight)}
            print(f"{kind}, alpha {alpha}, r 8, biases of {biases}:",
                  {text: round(value, 4) for text, value in seen[kind, alpha, biases].items()})
for (kind, alpha, biases), values in seen.items():
    assert values["effect"] > 0.05, "the adapter does nothing"
    rest = [value for text, value in values.items() if text not in ("effect", "reset from merged")]
    if kind == "LoRA":
        assert max(rest) < 1e-4, "LoRA is wrong too"
    else:
        assert min(values["reset from unmerged"], values["reset from merged"]) > 1e-3, "it is one of the two"
        assert min(values["without adapter from plain"], values["weight"]) > 1e-3, "the weights are as before"
        merged_is_right = biases == 0.0 and alpha == 8
        assert (values["merged from unmerged"] < 1e-4) == merged_is_right, "merging is otherwise"
PYTHON
echo "as seen"
