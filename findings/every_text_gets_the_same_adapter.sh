#!/usr/bin/env bash
# peft 0.21.2: adapter_names, which gives each text of a batch its own adapter, is dropped for most methods, so all
# texts get the active one.
#
# A server keeps one encoder with an adapter for each customer, language or field, and answers their texts in one batch:
# model(ids, adapter_names=["field", "task", ...]), one name for each row. The page describes it for LoRA. The model
# takes the argument for each method, removes it, and goes on. LoRA, RoAd and GLoRA read it before. LoHa, LoKr, IA3,
# OFT, BOFT, HRA, VeRA, FourierFT and LN Tuning do not: each row has the logits of the active adapter, to the
# last bit. Names that don't exist pass as well, and so does "__base__", the model without an adapter. LoRA refuses
# unknown names since pull request 2090 of huggingface/peft, as they "can easily lead to errors", and refuses
# adapter_names with DoRA, which it can't do. With modules_to_save the rows share the active head too.
# Shapes and numbers look usual, and no warning comes.
#
# Sort the texts by adapter, and call set_adapter before each group. Seen in November 2026 with Python 3.11. The script
# fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    peft==0.21.2 transformers==5.23.0 torch==2.13.0 numpy==2.4.6
HF_HUB_OFFLINE=1 "$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
import copy
import warnings

import peft
import torch
from transformers import BertConfig, BertForSequenceClassification

print("peft", peft.__version__)
SIZES = {"vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
         "intermediate_size": 64, "num_labels": 3, "initializer_range": 0.3}
IDS = torch.randint(5, 100, (4, 11), generator=torch.Generator().manual_seed(1))
NAMES = ["field", "task", "field", "__base__"]
TARGETS = {"target_modules": ["query", "value"]}
HEARS = {"LoRA": peft.LoraConfig(r=4, **TARGETS), "RoAd": peft.RoadConfig(group_size=16, **TARGETS),
         "LoRA and head": peft.LoraConfig(r=4, modules_to_save=["classifier"], **TARGETS)}
DEAF = {"LoHa": peft.LoHaConfig(r=4, **TARGETS), "LoKr": peft.LoKrConfig(r=4, **TARGETS),
        "IA3": peft.IA3Config(feedforward_modules=[], **TARGETS),
        "OFT": peft.OFTConfig(r=0, oft_block_size=8, **TARGETS),
        "BOFT": peft.BOFTConfig(boft_block_size=8, **TARGETS), "HRA": peft.HRAConfig(r=4, **TARGETS),
        "VeRA": peft.VeraConfig(r=4, **TARGETS), "FourierFT": peft.FourierFTConfig(n_frequency=20, **TARGETS),
        "LN Tuning": peft.LNTuningConfig(target_modules=["LayerNorm"]),
        "HRA and head": peft.HRAConfig(r=4, modules_to_save=["classifier"], **TARGETS)}


def two_adapters(config):
    """A small BERT with adapters "field", which is active, and "task", whose parameters differ from each other."""
    torch.manual_seed(0)
    model = peft.get_peft_model(BertForSequenceClassification(BertConfig(**SIZES)), config, adapter_name="field")
    model.add_adapter("task", copy.deepcopy(config))
    for number, name in enumerate(("field", "task")):
        noise = torch.Generator().manual_seed(number)
        for parameter_name, parameter in model.named_parameters():
            if f".{name}." in parameter_name or parameter_name.endswith(f".{name}"):
                parameter.data += 0.2 * torch.randn(parameter.shape, generator=noise)
    return model.eval()


@torch.no_grad()
def compare(name, config):
    """How far the logits are from those of each row's own adapter, and from those of the active adapter."""
    model = two_adapters(config)
    logits = {"field": model(IDS).logits}
    with model.disable_adapter():
        logits["__base__"] = model(IDS).logits
    model.set_adapter("task")
    logits["task"] = model(IDS).logits
    model.set_adapter("field")
    right = torch.stack([logits[adapter][row] for row, adapter in enumerate(NAMES)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answer = model(IDS, adapter_names=NAMES).logits
    try:
        model(IDS, adapter_names=["no", "such", "adapter", "here"])
        unknown = "accepted"
    except ValueError:
        unknown = "refused"
    errors = [float((answer - other).abs().max()) for other in (right, logits["field"])]
    print(f"{name}: off by {errors[0]:.6f}; from the active adapter by {errors[1]:.6f}; unknown names {unknown}")
    return *errors, unknown


for name, config in HEARS.items():
    error, _, unknown = compare(name, config)
    assert error < 1e-5, "adapter_names is wrong here too"
for name, config in DEAF.items():
    error, from_active, unknown = compare(name, config)
    assert error > 0.01 and from_active == 0 and unknown == "accepted", "adapter_names is read or refused now"
PYTHON
echo "as seen"
