#!/usr/bin/env bash
# sentence-transformers 6.2.0: mine_hard_negatives with a cache_folder takes the embeddings of another model, or of the
# same one before it was trained.
#
# mine_hard_negatives looks for passages that a model takes for answers and that are none, to train on. Training and
# mining are done in rounds, as the negatives are hard only for the model that they were mined with. cache_folder keeps
# the embeddings, to try other settings without embedding a large corpus again. A file of it is found by the texts,
# the prompts and the name of the pretrained model, not by the weights. For a model from the hub that is the same name
# after training, and for one in a folder of its own it is empty. So each round gets the embeddings of the first, and
# the second of two local models those of the other one. If texts were added in between, the queries come from the old
# model and the passages from the new one, whose product means nothing: the "hard" negatives are passages from
# anywhere, and margins are measured on scores that no model gave. Nothing is said. That the prompts were not in the
# name was an error until this year (issue 3870).
#
# Take a new cache_folder for each model and round. Seen in November 2026 with Python 3.11. The script fails if this
# changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check sentence-transformers==6.2.0 transformers==5.23.0 \
    torch==2.13.0 numpy==2.4.6 datasets==5.2.0 accelerate==1.15.0
HF_HUB_OFFLINE=1 "$folder/venv/bin/python" -W ignore - "$folder" 2> >(grep -v it/s >&2) <<'PYTHON'
import os
import sys
from importlib.metadata import version

import numpy as np
import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
from sentence_transformers.util import mine_hard_negatives
from transformers import BertConfig, BertModel, BertTokenizerFast

print("sentence-transformers", version("sentence-transformers"))
torch.set_num_threads(1)
words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *[f"w{i}" for i in range(200)]]
rng = np.random.default_rng(0)


def texts(number):
    return [" ".join(f"w{i}" for i in rng.integers(0, 200, 6)) for _ in range(number)]


def encoder(seed):
    folder = f"{sys.argv[1]}/encoder{seed}"
    torch.manual_seed(seed)
    BertModel(BertConfig(vocab_size=len(words), hidden_size=32, num_hidden_layers=1, num_attention_heads=4,
                         intermediate_size=64)).save_pretrained(folder)
    with open(folder + "/vocab.txt", "w") as file:
        file.write("\n".join(words))
    BertTokenizerFast(folder + "/vocab.txt").save_pretrained(folder)
    module = Transformer(folder)
    return SentenceTransformer(modules=[module, Pooling(module.get_embedding_dimension())], device="cpu")


def train(model, pairs, steps=60):
    loss, optimizer = MultipleNegativesRankingLoss(model), torch.optim.AdamW(model.parameters(), 3e-3)
    for _ in range(steps):
        columns = [model.preprocess(list(column)) for column in zip(*pairs)]
        optimizer.zero_grad()
        loss(columns, None).backward()
        optimizer.step()
    model.eval()


queries, answers, corpus = texts(40), texts(40), texts(400)
pairs = Dataset.from_dict({"query": queries, "answer": answers})


def mine(model, corpus, cache=None):
    """The negative of each query."""
    mined = mine_hard_negatives(pairs, model, corpus=corpus, num_negatives=1, range_max=10, cache_folder=cache,
                                output_format="triplet", verbose=False)
    return dict(zip(mined["query"], mined["negative"]))


def ranks(model, negatives, corpus):
    """The mean rank of the negatives among all wrong passages, by the model itself; 1 is the hardest."""
    passages = corpus + answers                               # the answers of the other queries are candidates too
    scores = model.similarity(model.encode(queries), model.encode(passages))
    for row, answer in zip(scores, answers):
        row[passages.index(answer)] = -1
    return float(np.mean([1 + (row > row[passages.index(negatives[query])]).sum().item()
                          for query, row in zip(queries, scores)]))


def same(one, other):
    return float(np.mean([one[query] == other[query] for query in queries]))


cache = sys.argv[1] + "/cache"
first, second = encoder(0), encoder(1)
print("names of the models:", repr(first.model_card_data.base_model), repr(second.model_card_data.base_model))
old = mine(first, corpus, cache)
assert same(old, mine(first, corpus)) == 1.0, "the first mining is wrong"
train(first, list(zip(queries, answers)))
more = corpus + texts(1)
for text, model, passages in (("the same model after training", first, corpus), ("another model", second, corpus),
                              ("the trained model and one passage more", first, more)):
    right, cached = mine(model, passages), mine(model, passages, cache)
    print(f"{text}: {same(cached, right):.2f} of the negatives are those without a cache,",
          f"{same(cached, old):.2f} those of the first round; their mean rank is {ranks(model, cached, passages):.1f}",
          f"of {len(passages) + len(answers) - 1}, without a cache {ranks(model, right, passages):.1f}")
    assert ranks(model, right, passages) < 2.5, "without a cache the negatives are not the hardest"
    assert same(cached, right) < 0.3 and ranks(model, cached, passages) > 20, "the cache knows the model"
    assert passages is more or cached == old, "the cache holds something else"
print(len(os.listdir(cache)), "files in the cache")
PYTHON
echo "as seen"
