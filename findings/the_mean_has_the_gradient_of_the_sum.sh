#!/usr/bin/env bash
# pylate 1.6.0: the gradient of CachedContrastive is that of the sum over the batch, while the loss is the mean, so it
# is as many times too large as the batch has queries.
#
# pylate trains ColBERT models. Its two contrastive losses are to be equal, and CachedContrastive is for large batches:
# it embeds small parts of the batch and caches the gradients of the embeddings. For these it goes backwards through
# the sum of the losses, and divides only the number that it returns. With 16 queries the gradient is 16 times that of
# Contrastive, with 64 it is 64 times, at the same loss. size_average=True and False have one gradient. AdamW
# hides most of it, as it divides by the size of the gradient, so that nobody may notice. But max_grad_norm, 1 by
# default, then cuts nearly each step, so that all of them have one length. A second loss on another data set, as
# Distillation, or a penalty counts for a sixty-fourth of what it should with 64 queries, and SGD diverges here. The
# larger the batch, for which the loss is made, the worse. No warning comes. sentence-transformers 6.2.0 divides before
# it goes backwards, and says so in a comment.
#
# Scale the other losses with it, and set max_grad_norm by the batch. Seen in November 2026 with Python 3.11. The script
# fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check sentence-transformers==5.3.0 transformers==5.3.0 \
    torch==2.13.0 numpy==2.4.6 datasets==5.2.0 accelerate==1.15.0 pandas==2.3.3 ujson==5.12.0
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps pylate==1.6.0    # without its indexes
HF_HUB_OFFLINE=1 "$folder/venv/bin/python" -W ignore - "$folder" <<'PYTHON'
import copy
import logging
import string
import sys
from importlib.metadata import version

import torch
from pylate import losses, models
from transformers import BertConfig, BertModel, BertTokenizerFast

print("pylate", version("pylate"))
logging.disable(logging.WARNING)
torch.set_num_threads(1)
words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *string.punctuation, *[f"w{i}" for i in range(200)]]
folder = sys.argv[1] + "/encoder"
torch.manual_seed(0)
BertModel(BertConfig(vocab_size=len(words), hidden_size=32, num_hidden_layers=1, num_attention_heads=4,
                     intermediate_size=64, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
          ).save_pretrained(folder)
with open(folder + "/vocab.txt", "w") as file:
    file.write("\n".join(words))
BertTokenizerFast(folder + "/vocab.txt").save_pretrained(folder)
model = models.ColBERT(folder, device="cpu", embedding_size=16, query_length=8, document_length=12)
model.train()


def gradient(loss, size):
    """The loss of a batch with as many queries, and its gradient in one vector."""
    columns = ([f"w{i} w{i + 1} w{i + 2}" for i in range(size)], [f"w{i + 20} w{i + 1} w{i + 2}" for i in range(size)],
               [f"w{i + 60} w{i + 90} w{i + 2}" for i in range(size)])
    model.zero_grad()
    value = loss([model.tokenize(texts, is_query=place == 0, pad=True) for place, texts in enumerate(columns)])
    value.backward()
    parts = [parameter.grad.flatten() for parameter in model.parameters() if parameter.grad is not None]
    return value.item(), torch.cat(parts).clone()


for size in (4, 16, 64):
    seen = {}
    for average in (True, False):
        value, right = gradient(losses.Contrastive(model, size_average=average), size)
        cached, other = gradient(losses.CachedContrastive(model, size_average=average, mini_batch_size=4), size)
        seen[average] = other
        ratio = float(other @ right / (right @ right))
        print(f"{size} queries, size_average={average}: losses {value:.4f} and {cached:.4f}, lengths of the gradients",
              f"{float(right.norm()):.2f} and {float(other.norm()):.2f}, ratio {ratio:.3f}")
        assert abs(value - cached) < 1e-3 * value, "the two losses differ"
        assert torch.nn.functional.cosine_similarity(right, other, dim=0) > 0.9999, "the directions differ"
        assert abs(ratio - (size if average else 1)) < 1e-2 * ratio, "the ratio is another one"
    assert torch.allclose(seen[True], seen[False], rtol=1e-4, atol=1e-5), "size_average reaches the gradient"

start = copy.deepcopy(model.state_dict())
for loss in (losses.Contrastive(model), losses.CachedContrastive(model, mini_batch_size=4)):
    model.load_state_dict(start)
    optimizer, values = torch.optim.SGD(model.parameters(), 0.01), []
    for _ in range(20):
        values.append(gradient(loss, 64)[0])
        optimizer.step()
    print(f"20 steps of SGD(0.01) with {type(loss).__name__}: from {values[0]:.2f} to {values[-1]:.2f}")
    if isinstance(loss, losses.CachedContrastive):
        assert values[-1] > last, "the steps with the cached loss are no worse"
    last = values[-1]
PYTHON
echo "as seen"
