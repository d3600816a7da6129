#!/usr/bin/env bash
# google-metrax 0.2.4: Perplexity gives each batch the weight of its texts and not of its tokens, so that the same texts
# have a perplexity of 20 in one order and of 6 in another.
#
# metrax is Google's library of metrics for JAX, and Perplexity is the exponential of the mean loss of a token. Its
# docstring has the formula: the sum of w log p over all tokens, divided by the sum of w, where w is 0 for padding.
# Within a batch from_model_output does that. Then it keeps the mean times the number of texts, and merge adds these
# and the numbers of texts. So a batch of eight texts of 5 tokens counts as much as one of eight texts of 100. In random
# order this is an error that hangs on the batch size; in order of length, which saves padding, short texts count as
# much as long ones, and short texts have the higher loss, as there is less to read. Here eight texts of 100 tokens with
# a perplexity of 5.4 and eight texts of 5 tokens with one of 72 have 6.1 together. Reported are 19.6 by batches of 1 in
# any order and by batches of 4 or 8 in order of length, and 6.1 by one batch of 16. Accuracy of the same package
# divides by the sum of all weights, with any batches. The docstring calls sample_weights the "weight of each token" and
# says nothing of batches. No warning comes.
#
# Pass tokens as texts: logits[mask][:, None], labels[mask][:, None], then each batch has the weight of its
# tokens. Seen in December 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check google-metrax==0.2.4 clu==0.0.12 flax==0.12.8 \
    jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
from importlib.metadata import version

import jax
import metrax
import numpy as np

print("google-metrax", version("google-metrax"), "jax", jax.__version__)
LONG, WORDS = 100, 50
rng = np.random.default_rng(0)
lengths = np.array([LONG] * 8 + [5] * 8)
labels = rng.integers(0, WORDS, (16, LONG))
logits = rng.normal(size=(16, LONG, WORDS)).astype(np.float32)
logits[np.arange(8)[:, None], np.arange(LONG), labels[:8]] += 3              # a long text is easier to foresee
mask = (np.arange(LONG) < lengths[:, None]).astype(np.float32)


def by_formula(texts):
    shifted = logits[texts].astype(np.float64)
    log_probs = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    picked = np.take_along_axis(log_probs, labels[texts][..., None], -1)[..., 0]
    return np.exp(-(picked * mask[texts]).sum() / mask[texts].sum())


def by_metrax(order, size, tokens_as_texts=False):
    perplexity, accuracy = metrax.Perplexity.empty(), metrax.Accuracy.empty()
    for start in range(0, 16, size):
        texts = order[start:start + size]
        if tokens_as_texts:
            kept = mask[texts] > 0
            part = metrax.Perplexity.from_model_output(logits[texts][kept][:, None], labels[texts][kept][:, None],
                                                       from_logits=True)
        else:
            part = metrax.Perplexity.from_model_output(logits[texts], labels[texts], mask[texts], from_logits=True)
        perplexity = perplexity.merge(part)
        accuracy = accuracy.merge(metrax.Accuracy.from_model_output(logits[texts].argmax(-1), labels[texts],
                                                                    mask[texts]))
    return float(perplexity.compute()), float(accuracy.compute())


want, in_order = by_formula(np.arange(16)), np.arange(16)
print(f"long texts {by_formula(in_order[:8]):.1f}, short texts {by_formula(in_order[8:]):.1f}, together {want:.2f}")
right = (((logits.argmax(-1) == labels) * mask).sum() / mask.sum()).item()
for order, name in ((in_order, "in order of length"), (rng.permutation(16), "in random order")):
    for size in (1, 4, 8, 16):
        got, accuracy = by_metrax(order, size)
        mended = by_metrax(order, size, tokens_as_texts=True)[0]
        print(f"{name}, batches of {size}: {got:.2f}, tokens as texts {mended:.2f}, accuracy {accuracy:.4f}")
        assert abs(mended - want) < 1e-3 and abs(accuracy - right) < 1e-6
        if size == 16:
            assert abs(got - want) < 1e-3
        elif size == 1 or name == "in order of length":
            assert 19 < got < 20.5
PYTHON
echo "as seen"
