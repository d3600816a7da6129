#!/usr/bin/env bash
# gliner 0.2.29: label_smoothing makes a bi-encoder forgive wrong scores instead of smoothing its labels, and other
# settings of the loss are dropped.
#
# GLiNER's TrainingArguments have label_smoothing, prob_margin, loss_type, negatives and masking. Each kind of model has
# a loss of its own. That of the bi-encoder, which embeds the types by themselves so that thousands can be stored,
# passes label_smoothing on one place too early, where the margin is expected. Smoothing by 0.2 wants scores of 0.9
# and 0.1. The margin takes 0.2 off the score of each span that is no entity, so that scores below 0.2 cost nothing.
# What was to make the model less sure leaves the entities at 1, and the other spans are pushed no further than 0.2. The
# margin itself is dropped there, and loss_type="dice" too, which only span models with one encoder have. Models with
# span_mode="token_level" drop loss_type, negatives and masking: with negatives=0.1, which counts a tenth of the other
# tokens, all count. No warning comes for any of it.
#
# Leave label_smoothing at 0 for a bi-encoder. Seen in November 2026 with Python 3.11.
# The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check gliner==0.2.29 transformers==4.57.6 torch==2.13.0 \
    numpy==2.4.6
HF_HUB_OFFLINE=1 "$folder/venv/bin/python" -W ignore - "$folder" <<'PYTHON'
import copy
import logging
import random
import sys
from importlib.metadata import version

import torch
from gliner import GLiNER, GLiNERConfig
from transformers import BertConfig, BertModel, BertTokenizerFast

print("gliner", version("gliner"))
logging.disable(logging.WARNING)
torch.set_num_threads(1)
words = "[PAD] [UNK] [CLS] [SEP] [MASK] anna berta carl dora visits likes the city . london paris rome oslo person"
words += " place"
people, places = "anna berta carl dora".split(), "london paris rome oslo".split()
folder = sys.argv[1] + "/encoder"
torch.manual_seed(0)
BertModel(BertConfig(vocab_size=len(words.split()), hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
                     intermediate_size=128, hidden_dropout_prob=0.0)).save_pretrained(folder)
with open(folder + "/vocab.txt", "w") as file:
    file.write("\n".join(words.split()))
BertTokenizerFast(folder + "/vocab.txt").save_pretrained(folder)
data = [{"tokenized_text": [person, verb, "the", "city", place, "."], "ner": [[0, 0, "person"], [4, 4, "place"]],
         "ner_labels": ["person", "place"]}
        for person in people for place in places for verb in ("visits", "likes")][::2]
usual = {"alpha": -1, "gamma": 0, "prob_margin": 0, "label_smoothing": 0, "reduction": "sum", "negatives": 1.0,
         "masking": "global", "loss_type": "focal"}          # what the library's Trainer passes by default


def build(kind):
    torch.manual_seed(0)
    random.seed(0)
    model = GLiNER.from_config(GLiNERConfig(
        model_name=folder, labels_encoder=folder if kind.startswith("bi") else None, hidden_size=64, dropout=0.0,
        span_mode="token_level" if kind.endswith("tokens") else "markerV0", max_width=3, num_rnn_layers=0,
        max_neg_type_ratio=0))
    return model.eval(), model._create_data_collator()(data)


def loss(model, batch, **options):
    torch.manual_seed(0)
    return model(**batch, **{**usual, **options}).loss


dropped = {}
for kind in ("one encoder, spans", "bi-encoder, spans", "one encoder, tokens", "bi-encoder, tokens"):
    model, batch = build(kind)
    with torch.no_grad():
        base = float(loss(model, batch))
        values = {f"{name}={value}": float(loss(model, batch, **{name: value})) for name, value in (
            ("label_smoothing", 0.2), ("prob_margin", 0.2), ("loss_type", "dice"), ("negatives", 0.1))}
    dropped[kind] = {text for text, value in values.items() if value == base}
    print(f"{kind}: loss {base:.2f}, with", {text: round(value, 2) for text, value in values.items()})
assert dropped == {
    "one encoder, spans": set(), "bi-encoder, spans": {"prob_margin=0.2", "loss_type=dice"},
    "one encoder, tokens": {"loss_type=dice", "negatives=0.1"},
    "bi-encoder, tokens": {"loss_type=dice", "negatives=0.1"}}, "other settings are dropped"

spread = {}
for kind in ("one encoder, spans", "bi-encoder, spans"):
    for options in ({}, {"label_smoothing": 0.2}, {"prob_margin": 0.2}):
        model, batch = build(kind)
        optimizer = torch.optim.AdamW(model.parameters(), 3e-4)
        for _ in range(200):
            optimizer.zero_grad()
            loss(model, batch, **options).backward()
            optimizer.step()
        with torch.no_grad():
            output = model(**batch, **usual)
        real = batch["span_mask"].flatten()                   # spans that end within the text
        labels = batch["labels"].reshape(-1, 2)[real]
        p = output.logits.sigmoid().reshape(-1, 2)[real]
        spread[kind, *options] = float(p[labels == 1].mean()), float(p[labels == 0].mean())
        print(f"{kind}, trained with {options or 'no smoothing'}: entities score {spread[kind, *options][0]:.3f},",
              f"other spans {spread[kind, *options][1]:.3f}")
one, two = "one encoder, spans", "bi-encoder, spans"
assert abs(spread[one, "label_smoothing"][0] - 0.9) < 0.03, "smoothing does not do what it should"
assert spread[two, "label_smoothing"][0] > 0.97, "smoothing reaches the entities of the bi-encoder"
assert abs(spread[two, "prob_margin"][1] - spread[two, ][1]) < 1e-6, "the margin reaches the bi-encoder"
PYTHON
echo "as seen"
