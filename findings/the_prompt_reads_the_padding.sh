#!/usr/bin/env bash
# adapters 1.3.0: with prompt tuning, UniPELT or any gate, the output of a text depends on how far it is padded.
#
# A text gets the same output alone and in a batch with longer ones, as its padding is masked. Two things break this.
# Prompt tuning puts trained vectors before the text. Under sdpa, the default attention of BERT, RoBERTa, XLM-R, ALBERT
# and DistilBERT, the mask has a row for each place that looks at others. The rows of the prompt are filled with zeros,
# "nothing is masked", so the prompt reads the padding, and the text reads the prompt. With eager attention it is right,
# but in DeBERTa it is not. UniPELT, and LoRA, bottlenecks and prefixes with use_gating=True, have a gate for each text:
# a number between 0 and 1 from each token, averaged over the tokens, which is over the padding too. So a short text's
# gate is mostly that of [PAD], and its share grows with the longest text of the batch. In DistilBERT prefix tuning
# (and MAM, which has it) adds 1 to the scores of the prefix as soon as one text is padded. Predictions depend on
# batch size, order and max_length, and a text from the test set is classified otherwise in service.
#
# Batch texts of one length, or take attn_implementation="eager" for prompts. Seen in November 2026 with Python 3.11.
# The script fails if this changes.
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
from adapters import LoRAConfig, PrefixTuningConfig, SeqBnConfig
from transformers import (
    AlbertConfig, AlbertModel, BertConfig, BertModel, DebertaV2Config, DebertaV2Model, DistilBertConfig,
    DistilBertModel, RobertaConfig, RobertaModel)

print("adapters", version("adapters"))
logging.disable(logging.WARNING)
torch.set_num_threads(1)
sizes = {"vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
         "intermediate_size": 64, "pad_token_id": 0}
models = {
    "BERT": (BertModel, BertConfig, sizes), "RoBERTa": (RobertaModel, RobertaConfig, sizes),
    "ALBERT": (AlbertModel, AlbertConfig, {**sizes, "embedding_size": 32}),
    "DeBERTa": (DebertaV2Model, DebertaV2Config, sizes),
    "DistilBERT": (DistilBertModel, DistilBertConfig,
                   {"vocab_size": 100, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64}),
}
methods = {"prompt": "prompt_tuning", "prefix": "prefix_tuning", "mam": "mam", "unipelt": "unipelt", "lora": "lora",
           "gated lora": LoRAConfig(use_gating=True), "bottleneck": "seq_bn",
           "gated bottleneck": SeqBnConfig(use_gating=True), "gated prefix": PrefixTuningConfig(use_gating=True)}
text = torch.randint(5, 100, (1, 5), generator=torch.Generator().manual_seed(0))


def padded(model, places):
    """The output at the text's own places (and those of a prompt) when the text is padded to so many places."""
    ids = torch.nn.functional.pad(text, (0, places - 5))
    with torch.no_grad():
        return model(ids, attention_mask=(ids > 0).long()).last_hidden_state[:, :-(places - 5) or None]


def drift(name, method, attention=None):
    kind, config, options = models[name]
    torch.manual_seed(0)
    config = config(**options)
    if attention:
        config._attn_implementation = attention
    model = kind(config)
    attention = model.config._attn_implementation
    adapters.init(model)
    model.add_adapter("a", config=methods[method])
    with torch.no_grad():
        for parameter in [p for n, p in model.named_parameters() if ".a." in n]:
            parameter.add_(0.1 * torch.randn(parameter.shape))
    model.set_active_adapters("a")
    model.eval()
    alone = padded(model, 5)
    return attention, [round(float((padded(model, places) - alone).abs().max()), 4) for places in (6, 10, 100)]


wrong = {"prompt", "unipelt", "gated lora", "gated bottleneck", "gated prefix"}
for name in models:
    for method in methods:
        attention, drifts = drift(name, method)
        print(f"{name}, {attention}, {method}: padded to 6, 10 and 100 places the output moves by {drifts}")
        if method in wrong or name == "DistilBERT" and method in ("prefix", "mam"):
            assert min(drifts) > 0, "the padding is not seen"
        else:
            assert max(drifts) < 1e-3, "the padding is seen here too"
for name in ("BERT", "RoBERTa", "ALBERT"):
    attention, drifts = drift(name, "prompt", "eager")
    print(f"{name}, {attention}, prompt: padded to 6, 10 and 100 places the output moves by {drifts}")
    assert max(drifts) < 1e-3, "the padding is seen with eager attention"
PYTHON
echo "as seen"
