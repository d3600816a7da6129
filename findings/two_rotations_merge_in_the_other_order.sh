#!/usr/bin/env bash
# peft 0.21.2: merging two active OFT adapters gives another model than the one that ran before.
#
# OFT trains a rotation of the input of each layer. Several adapters may be active at once, as one for a field and
# one for a task, and the unmerged model applies them to the input in the order of set_adapter. Rotations do not
# commute. merge_adapter and merge_and_unload multiply the weights by them in that order too, which applies
# them to the input in the reverse order. The merged model is exactly the one of the reversed list. Each adapter
# by itself is merged rightly, and so are two of HRA or LoRA. merge_adapter followed by unmerge_adapter gives
# the right numbers again, so a check of the round trip sees nothing. Whoever merges for export or for speed
# serves a model that was never evaluated. No warning comes.
#
# Activate the adapters in the reverse order just before merging. Seen in November 2026 with Python 3.11. The script
# fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    peft==0.21.2 transformers==5.23.0 torch==2.13.0 numpy==2.4.6
HF_HUB_OFFLINE=1 "$folder/venv/bin/python" - <<'PYTHON'
import copy

import peft
import torch
from transformers import BertConfig, BertForSequenceClassification

print("peft", peft.__version__)
SIZES = {"vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
         "intermediate_size": 64, "num_labels": 3, "initializer_range": 0.3}
IDS = torch.randint(5, 100, (4, 11), generator=torch.Generator().manual_seed(1))


def two_adapters(config):
    """A small BERT with adapters "field" and "task" whose parameters differ from each other."""
    torch.manual_seed(0)
    model = peft.get_peft_model(BertForSequenceClassification(BertConfig(**SIZES)), config, adapter_name="field")
    model.add_adapter("task", config)
    for number, name in enumerate(("field", "task")):
        noise = torch.Generator().manual_seed(number)
        for parameter_name, parameter in model.named_parameters():
            if f".{name}." in parameter_name or parameter_name.endswith(f".{name}"):
                parameter.data += 0.1 * torch.randn(parameter.shape, generator=noise)
    return model.eval()


def logits(model):
    with torch.no_grad():
        return model(IDS).logits


def difference(model, names):
    """How far merging moves the logits with these adapters active, and the logits before and after."""
    model = copy.deepcopy(model)
    model.base_model.set_adapter(names)
    before = logits(model)
    model.merge_adapter()
    after = logits(model)
    model.unmerge_adapter()
    assert torch.allclose(logits(model), before, atol=1e-4), "the round trip is not exact"
    assert torch.allclose(logits(model.merge_and_unload()), after, atol=1e-4), "merge_and_unload is another merge"
    return float((before - after).abs().max()), before, after


targets = {"target_modules": ["query", "value"]}
oft = two_adapters(peft.OFTConfig(r=0, oft_block_size=8, **targets))
for name in ("field", "task"):
    moved, before, _ = difference(oft, [name])
    print(f"OFT, {name} alone: merging moves the logits by {moved:.6f} of {float(before.abs().max()):.3f}")
    assert moved < 1e-4, "one adapter is merged wrongly"
moved, before, after = difference(oft, ["field", "task"])
_, reverse, _ = difference(oft, ["task", "field"])
print(f"OFT, field then task: moved by {moved:.3f}, from classes {before.argmax(-1).tolist()} to",
      f"{after.argmax(-1).tolist()}; distance to task then field {float((reverse - after).abs().max()):.6f}")
assert moved > 0.1 and torch.allclose(after, reverse, atol=1e-4), "two adapters are merged rightly now"

for config in (peft.HRAConfig(r=4, **targets), peft.LoraConfig(r=4, **targets)):
    moved, _, _ = difference(two_adapters(config), ["field", "task"])
    print(f"{type(config).__name__}, field then task: moved by {moved:.6f}")
    assert moved < 1e-4, "other methods are merged wrongly too"
PYTHON
echo "as seen"
