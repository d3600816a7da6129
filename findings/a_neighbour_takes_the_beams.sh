#!/usr/bin/env bash
# keras-hub 0.32.0: BeamSampler gives a prompt another continuation beside a shorter prompt, and counts what a text
# goes on with after its end.
#
# Beam search keeps the num_beams most probable texts. With prompts of several lengths in a batch, sampling begins
# behind the shortest. In a longer prompt the model's num_beams best tokens are taken for each place, and then written
# over with the prompt's own token. So all beams become the same text, with the scores of tokens that are not in it,
# and their continuations take each other's places: return_all_beams returns one text several times, at other scores
# than its own, and the search finds little more than a greedy one. Here 11 of 40 prompts to a GPT-2 get another, on
# average less probable, text if a short prompt is in the batch. With each prompt in a call of its own the search is
# right but for the end: a text that has its end token is not set aside. It is drawn on to max_length, and each token
# after the end lowers its score, while these tokens are cut off the answer. So the text with the probability 0.6 loses
# to one with 0.4, and a longer max_length favours texts without an end. Greedy and random samplers have no scores and
# are right. No warning comes.
#
# Call generate for one prompt, or for prompts of equal lengths, and rank the beams of return_all_beams by the
# probability up to the end. Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check keras==3.15.1 jax==0.10.2 jaxlib==0.10.2 \
    ml_dtypes==0.6.0 numpy==2.4.6 regex rich kagglehub==1.0.2 kagglesdk==0.1.28 sentencepiece==0.2.3 tokenizers==0.23.3
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps keras-hub==0.32.0
JAX_PLATFORMS=cpu KERAS_BACKEND=jax "$folder/venv/bin/python" -W ignore - <<'PYTHON'
import keras
import keras_hub
import numpy as np
from keras import ops

print("keras-hub", keras_hub.__version__, "keras", keras.__version__)
END = 1


def padded(prompts, length):
    ids, mask = (np.zeros((len(prompts), length), "int32") for _ in range(2))
    for row, prompt in enumerate(prompts):
        ids[row, :len(prompt)], mask[row, :len(prompt)] = prompt, 1
    return ids, mask


def beams(table, prompts, length, num_beams=4):
    """All texts that BeamSampler finds for the first prompt, and their scores; `table[a, b]` is log p(b after a)."""
    ids, mask = padded(prompts, length)
    texts, scores = keras_hub.samplers.BeamSampler(num_beams=num_beams, return_all_beams=True)(
        next=lambda prompt, cache, index: (ops.take(table, ops.take(prompt, index - 1, axis=1), axis=0), None, cache),
        prompt=ids, mask=mask, index=min(map(len, prompts)), stop_token_ids=[END])
    return [tuple(map(int, text)) for text in np.array(texts)[0]], np.array(scores)[0]


def score(table, text, begin):
    """log p of the text behind its prompt, up to the first end."""
    total = 0.0
    for before, token in zip(text[begin - 1:], text[begin:]):
        total += table[before, token]
        if token == END:
            break
    return total


table = np.random.default_rng(0).normal(size=(8, 8)).astype("float32")
table[:, END] = -9
table -= np.log(np.exp(table).sum(-1, keepdims=True))
for prompts in ([[2, 3, 4, 5]], [[2, 3, 4, 5], [2]]):
    texts, scores = beams(table, prompts, 8)
    own = [score(table, text, 4) for text in texts]
    print(f"{len(prompts)} prompts: {texts}\n    scores {scores.round(2)}, of the texts themselves {np.round(own, 2)}")
    assert len(set(texts)) == (4 if len(prompts) == 1 else 3), "other beams than seen"
    assert np.allclose(scores, own, atol=1e-4) == (len(prompts) == 1), "other scores than seen"

# After 2 the text ends with the probability 0.6 or goes on with 3, again and again. After the end all tokens are equal.
ending = np.full((4, 4), 1e-6, "float32")
ending[2, END], ending[2, 3], ending[3, 3], ending[END] = 0.6, 0.4, 1.0, 0.25
ending = np.log(ending / ending.sum(-1, keepdims=True))
for length, best in ((2, (2, END)), (8, (2, 3, 3, 3, 3, 3, 3, 3))):
    texts, scores = beams(ending, [[2]], length, num_beams=2)
    print(f"to length {length}:", [(text, round(float(np.exp(score(ending, text, 1))), 2)) for text in texts])
    assert texts[0] == best and abs(np.exp(score(ending, (2, END), 1)) - 0.6) < 1e-3, "the ended text wins"

backbone = keras_hub.models.GPT2Backbone(vocabulary_size=30, num_layers=1, num_heads=2, hidden_dim=16,
                                         intermediate_dim=32, max_sequence_length=12, dropout=0)
random = np.random.default_rng(0)
for weight in backbone.weights:
    if "norm" not in weight.path:
        weight.assign(random.normal(size=weight.shape) * 0.3)
model = keras_hub.models.GPT2CausalLM(backbone, preprocessor=None)
prompts = np.random.default_rng(1).integers(2, 30, (40, 6)).tolist()


def generate(prompts, sampler):
    model.compile(sampler=sampler)
    ids, mask = padded(prompts, 12)
    return np.array(model.generate({"token_ids": ids, "padding_mask": mask}, stop_token_ids=None)["token_ids"])[:40]


def mean_score(texts):
    logits = keras.ops.log_softmax(model({"token_ids": texts, "padding_mask": np.ones_like(texts)}))
    return float(np.take_along_axis(np.array(logits)[:, 5:11], texts[:, 6:, None], -1).sum((1, 2)).mean())


search = keras_hub.samplers.BeamSampler(num_beams=4)
results = {"alone": generate(prompts, search), "beside [5]": generate(prompts + [[5]], search),
           "greedy": generate(prompts, "greedy")}
for name, texts in results.items():
    print(f"GPT-2, {name}: mean log p {mean_score(texts):.3f}")
changed = int((results["alone"] != results["beside [5]"]).any(1).sum())
print("texts that change beside [5]:", changed, "of 40")
assert changed > 5 and mean_score(results["beside [5]"]) < mean_score(results["alone"]) - 0.1, "no other texts"
assert np.array_equal(generate(prompts + [[5]], "greedy"), results["greedy"]), "greedy search depends on the batch"
PYTHON
echo "as seen"
