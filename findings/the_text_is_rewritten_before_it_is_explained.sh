#!/usr/bin/env bash
# transformers-interpret 0.10.0: the explainers put spaces around all punctuation before they explain a text, so with
# RoBERTa they explain another text, whose class often is another; with BERT the last [SEP] is of the second segment.
#
# The explainer of a classifier says how much each token has to do with the answer. Before it does, _clean_text puts a
# space before and after each of .,!?() without a word in the documentation. BERT's tokenizer drops spaces, so nothing
# changes. But the byte-level tokenizers of RoBERTa, BART and ModernBERT read them: "good, but" becomes "good , but",
# tokens for single spaces appear that no training text had, "2.5" and "U.S." are torn apart. pred_probs,
# predicted_class_name and the attributions are those of the new text. A small RoBERTa that is trained here gets nine of
# ten texts right; of a tenth of the texts the other class is explained, and probabilities differ by up to 0.67.
# SequenceClassificationExplainer and TokenClassificationExplainer do so.
# BERT gets token types for which all that comes after the last word, the final [SEP], is 1: a segment that a model of
# single texts was not trained with. predicted_class_index, which chooses the class to explain, is without them.
#
# Set explainer._clean_text = lambda text: text, and for BERT give captum's LayerIntegratedGradients the tokenizer's own
# token types. Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.4.6 transformers==4.57.6 \
    tokenizers==0.22.2 captum==0.9.0
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps transformers-interpret==0.10.0
cd "$folder"
"$folder/venv/bin/python" -W ignore - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
import random
from importlib.metadata import version

import torch
from tokenizers import ByteLevelBPETokenizer
from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast
from transformers import RobertaConfig, RobertaForSequenceClassification, RobertaTokenizerFast
from transformers_interpret import SequenceClassificationExplainer

print("transformers-interpret", version("transformers-interpret"), "transformers", version("transformers"))
torch.set_num_threads(1)
rng = random.Random(0)
SHAPE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64,
         "hidden_dropout_prob": 0, "attention_probs_dropout_prob": 0}


def draw():
    parts, score = [], 0
    for _ in range(rng.randint(1, 3)):
        negated, praise = rng.random() < 0.3, rng.random() < 0.5
        word = rng.choice(("good", "great", "fine", "lovely") if praise else ("bad", "boring", "weak", "dull"))
        parts.append(f"the {rng.choice(('film', 'story', 'cast'))} was {'not ' if negated else ''}{word}")
        score += 1 if praise != negated else -1
    return (rng.choice((", ", ". ")).join(parts) + rng.choice(".!"), int(score > 0)) if score else draw()


def tokens(tokenizer, *texts):
    return tokenizer(list(texts), padding=True, return_tensors="pt")


texts, tests = [draw() for _ in range(1000)], [draw() for _ in range(80)]
trainer = ByteLevelBPETokenizer()
trainer.train_from_iterator([text for text, _ in texts], vocab_size=400,
                            special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
trainer.save_model(".")
roberta = RobertaTokenizerFast(vocab_file="vocab.json", merges_file="merges.txt")
torch.manual_seed(0)
model = RobertaForSequenceClassification(RobertaConfig(vocab_size=len(roberta), max_position_embeddings=80,
                                                       type_vocab_size=1, **SHAPE))
optimizer = torch.optim.Adam(model.parameters(), 0.003)
for step in range(200):
    batch = [texts[place % 1000] for place in range(50 * step, 50 * step + 50)]
    labels = torch.tensor([label for _, label in batch])
    loss = model(**tokens(roberta, *(text for text, _ in batch)), labels=labels).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
model.eval()


def probability(model, tokenizer, text):
    with torch.no_grad():
        return float(model(**tokens(tokenizer, text)).logits.softmax(-1)[0, 1])


explainer = SequenceClassificationExplainer(model, roberta)
text = "the film was not good, but great (2.5 of 3)."
seen = [token for token, _ in explainer(text, n_steps=2)]
own = [token.replace("\u0120", "") for token in roberta.convert_ids_to_tokens(roberta(text)["input_ids"])]
print(f"{len(own)} tokens of the text, {len(seen)} are explained:", "|".join(seen))
assert len(seen) == len(own) + 7 and explainer.text.endswith("( 2 . 5 of 3 ) . ")
for name, clean in (("as it comes", explainer._clean_text), ("without _clean_text", lambda text: text)):
    explainer._clean_text = clean
    right = other = moved = 0
    for text, label in tests:
        true = probability(model, roberta, text)
        explainer(text, index=1, n_steps=2)
        explained = float(explainer.pred_probs)
        right += (true > 0.5) == label
        other += (true > 0.5) != (explained > 0.5)
        moved = max(moved, abs(true - explained))
    print(f"{name}: the model has {right / 80:.0%} right, another class is explained in {other / 80:.0%}, "
          f"probabilities differ by up to {moved:.2f}")
    assert right >= 66 and (other >= 5 and moved > 0.5 if name == "as it comes" else other == 0 and moved < 1e-3)

words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"the film was not good great bad . , !".split()]
with open("vocab.txt", "w") as file:
    file.write("\n".join(words))
bert = BertTokenizerFast(vocab_file="vocab.txt")
torch.manual_seed(0)
untrained = BertForSequenceClassification(BertConfig(vocab_size=len(words), **SHAPE)).eval()
explainer = SequenceClassificationExplainer(untrained, bert)
explainer("the film was good", index=1, n_steps=2)
types, right = explainer.token_type_ids.tolist()[0], bert("the film was good")["token_type_ids"]
print("BERT: token types", types, "the tokenizer's", right)
assert types == [0] * 5 + [1] and right == [0] * 6
assert abs(float(explainer.pred_probs) - probability(untrained, bert, "the film was good")) > 1e-6
PYTHON
echo "as seen"
