#!/usr/bin/env bash
# peft-singlora 0.2.0: after merge_adapter the adapter counts twice, once in the weights and once beside them.
#
# merge_adapter of peft puts adapters into the weights of their layers, so that a model answers without them. A layer
# of peft then leaves its adapters out: its forward method looks at self.merged. That of peft-singlora does not. It
# adds the adapter to a result that holds it already. So the model that is merged for an evaluation or for speed is one
# with twice the adapter in each layer, and nothing tells of it. With disable_adapter, which gives the model without the
# adapter in peft, it keeps what was merged. merge_and_unload, which takes the layers out, and unmerge_adapter are
# right. The README promises "Fully compatible with PEFT".
#
# Use merge_and_unload, or don't merge. Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check peft-singlora==0.2.0 peft==0.21.2 \
    transformers==5.24.0 torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/python" -W ignore - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
import copy
from importlib.metadata import version

import torch
from peft import LoraConfig, get_peft_model
from transformers import BertConfig, BertForSequenceClassification

print("peft-singlora", version("peft-singlora"), "peft", version("peft"), "torch", torch.__version__)
torch.set_num_threads(1)
torch.manual_seed(0)
config = BertConfig(vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64)
base = BertForSequenceClassification(config).double().eval()
words = torch.randint(0, 50, (4, 7))


def logits(model):
    with torch.no_grad():
        return model(words).logits


def adapted(single):
    """A model with an adapter that does something, of peft-singlora or of peft."""
    options = dict(r=4, lora_alpha=8, target_modules=["query", "value"], init_lora_weights=single)
    model = get_peft_model(copy.deepcopy(base), LoraConfig(**options)).double().eval()
    if single:
        update_singlora_global_step(model, 1000)    # the end of the ramp, where the adapter counts in full
    return model


def by_hand(model, times):
    """The base model with `times` the change of each weight."""
    changed = copy.deepcopy(base)
    for name, layer in model.named_modules():
        if hasattr(layer, "lora_A"):
            weight = changed.get_submodule(name.removeprefix("base_model.model.")).weight
            weight.data += times * change(layer)
    return logits(changed)


def change(layer):
    if hasattr(layer, "_get_update_weight"):
        return layer._get_update_weight("default").detach()
    return layer.get_delta_weight("default").detach()


def check(name, model):
    """The error of the model after each step, against weights that are changed by hand."""
    before = copy.deepcopy(model)
    once, twice, none = (by_hand(before, times) for times in (1, 2, 0))
    assert torch.allclose(logits(model), once) and not torch.allclose(once, none)
    model.merge_adapter()
    merged = logits(model)
    with model.disable_adapter():
        disabled = logits(model)
    again = copy.deepcopy(before)
    again.merge_adapter()
    again.unmerge_adapter()
    assert torch.allclose(logits(again), once)
    assert torch.allclose(logits(copy.deepcopy(before).merge_and_unload()), once)
    counts = [torch.allclose(merged, once), torch.allclose(merged, twice)]
    first, second = ([round(number, 4) for number in found[0].tolist()] for found in (once, merged))
    times = "once" if counts[0] else "twice" if counts[1] else "otherwise"
    print(f"{name}: merged, the adapter counts {times}; logits",
          f"{first} become {second}; disabled, the model is",
          "that of before" if torch.allclose(disabled, none) else "another one")
    return counts, torch.allclose(disabled, none)


plain = adapted(False)
assert check("peft", plain) == ([True, False], True)
from peft_singlora import setup_singlora, update_singlora_global_step  # noqa: E402

setup_singlora()
counts, disabled = check("peft-singlora", adapted(True))
assert counts == [False, True], "the merged adapter counts once now"
assert not disabled
PYTHON
echo "as seen"
