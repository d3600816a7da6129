#!/usr/bin/env bash
# transformer-smaller-training-vocab 0.4.2: given an optimizer with several parameter groups, it takes out a wrong
# parameter, so that the position embeddings, or the classifier, are never trained.
#
# The package fine-tunes a BERT with the embeddings of those words alone that occur in the data, and puts the full table
# back at the end. "It is crucial to provide the optimizer" if there is one, says the documentation, as it must get the
# small table for the large one. The code looks for the group that holds the large table and deletes the parameter whose
# number in the group is the number of the group. With one group that begins with the table it is right, by chance. With
# a group for the head before that of the encoder, or the one without weight decay before the other, the second
# parameter goes: the position embeddings. With a group for each layer from the top down, as in layer-wise rates, it
# is the LayerNorm of the embeddings for 2 layers, and an IndexError for 12. With the head first in one group it is
# the weight of the classifier. What was taken out keeps its value to the last bit, while the loss falls, and the large
# table stays in the optimizer. No warning comes.
#
# Make the optimizer inside of the with block. Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check transformer-smaller-training-vocab==0.4.2 \
    transformers==4.57.6 torch==2.13.0 numpy==2.4.6
cd "$folder"
HF_HUB_OFFLINE=1 "$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
import random

import torch
from transformer_smaller_training_vocab import reduce_train_vocab
from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

torch.set_num_threads(1)
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + [f"word{number}" for number in range(2000)]
with open("vocab.txt", "w") as file:
    file.write("\n".join(WORDS))
draw = random.Random(0)
TEXTS = [" ".join(f"word{draw.randrange(0, 2000, 50)}" for _ in range(8)) for _ in range(64)]
LABELS = torch.tensor([int(text.split()[0] < "word1500") for text in TEXTS])


def make(layers=2):
    torch.manual_seed(0)
    config = BertConfig(vocab_size=len(WORDS), hidden_size=32, num_hidden_layers=layers, num_attention_heads=4,
                        intermediate_size=64, max_position_embeddings=16, num_labels=2)
    return BertForSequenceClassification(config), BertTokenizerFast("vocab.txt")


def one(model):
    return [list(model.parameters())]


def head_and_encoder(model):
    return [list(model.classifier.parameters()), list(model.bert.parameters())]


def without_decay_first(model):
    named = list(model.named_parameters())
    return [[p for name, p in named if p.ndim == 1], [p for name, p in named if p.ndim == 2]]


def with_decay_first(model):
    return without_decay_first(model)[::-1]


def layer_by_layer(model):
    bert = model.bert
    head = [*bert.pooler.parameters(), *model.classifier.parameters()]
    return [head, *(list(layer.parameters()) for layer in reversed(bert.encoder.layer)),
            list(bert.embeddings.parameters())]


def head_first(model):
    return [[*model.classifier.parameters(), *model.bert.parameters()]]


def still(groups, late=False):
    """Which parameters keep their values in training with these groups, and the losses before and after."""
    model, tokenizer = make()
    optimizer = torch.optim.AdamW([{"params": group} for group in groups(model)], lr=3e-3)
    with reduce_train_vocab(model, tokenizer, TEXTS, optimizer=None if late else optimizer):
        if late:
            optimizer = torch.optim.AdamW([{"params": group} for group in groups(model)], lr=3e-3)
        before = {name: p.detach().clone() for name, p in model.named_parameters()}
        assert len(before["bert.embeddings.word_embeddings.weight"]) < 100
        batch = {**tokenizer(TEXTS, return_tensors="pt"), "labels": LABELS}
        losses = []
        for _ in range(60):
            optimizer.zero_grad()
            loss = model(**batch).loss
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert all(p.grad is not None for p in model.parameters())
        same = [name for name, p in model.named_parameters() if torch.equal(p, before[name])]
        large = any(len(p) == len(WORDS) for group in optimizer.param_groups for p in group["params"])
    assert losses[-1] < losses[0] - 0.1
    return same, large, losses


expected = {one: [], with_decay_first: [], head_first: ["classifier.weight"],
            head_and_encoder: ["bert.embeddings.position_embeddings.weight"],
            without_decay_first: ["bert.embeddings.position_embeddings.weight"],
            layer_by_layer: ["bert.embeddings.LayerNorm.weight"]}
for groups, names in expected.items():
    same, large, losses = still(groups)
    print(f"{groups.__name__}: not trained {same}, large table in the optimizer: {large},",
          f"loss {losses[0]:.2f} to {losses[-1]:.2f}")
    assert same == names and large == bool(names)
    assert still(groups, late=True)[:2] == ([], False)
model, tokenizer = make(12)
try:
    with reduce_train_vocab(model, tokenizer, TEXTS, optimizer=torch.optim.AdamW(
            [{"params": group} for group in layer_by_layer(model)])):
        raise AssertionError("12 layers are accepted")
except IndexError as error:
    print("layer_by_layer, 12 layers:", error)
PYTHON
echo "as seen"
