#!/usr/bin/env bash
# mlm-pytorch 0.1.0 and electra-pytorch 0.1.2: random_token_prob=0.1 replaces a tenth of all tokens, [CLS], [SEP] and
# padding too, where BERT replaces a tenth of the masked ones, 1.5% of all.
#
# Both wrap an encoder for masked language modelling. BERT chooses 15% of the words to be predicted, and of these 80%
# become [MASK], 10% a random word and 10% stay. replace_prob is applied to the chosen words. random_token_prob is drawn
# for each place of the batch and never joined with the choice, so that 10% of the words that nobody predicts are
# wrong: of 100 words the encoder reads 9 random ones beside the 13 masked. mask_ignore_token_ids, "tokens designated to
# be excluded", keeps [CLS] and [SEP] from [MASK] and not from this, and padding that becomes a word is seen as a word
# by encoders that look for it in the ids. In issue 6 of lucidrains/mlm-pytorch users and author take it for 10% of the
# chosen words. Besides, texts that are padded on the left are masked by up to 100% in place of 15%: the number of
# words to choose is found by counting from the left, over as many places as 15% of the whole row has. So a text of 10
# words in a row of 100 has all of them masked, and some of its padding, and one of 50 has 15, where it should have
# 8. The loss is only higher. No warning comes.
#
# Leave random_token_prob at 0 and pad on the right, or mask by DataCollatorForLanguageModeling of transformers. Seen in
# November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check mlm-pytorch==0.1.0 torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps electra-pytorch==0.1.2
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
from importlib.metadata import version

import torch
from electra_pytorch import Electra
from mlm_pytorch import MLM

print("mlm-pytorch", version("mlm-pytorch"), "electra-pytorch", version("electra-pytorch"), "torch", torch.__version__)
torch.manual_seed(0)
WORDS, PAD, MASK, CLS, SEP = 1000, 0, 2, 3, 4


class Encoder(torch.nn.Module):
    """Keeps what it is given to read."""

    def forward(self, ids):
        self.read = ids
        return torch.zeros(*ids.shape, WORDS)


class Discriminator(torch.nn.Module):
    def forward(self, ids):
        return torch.zeros(ids.shape)


def reads(texts, wrapper, **options):
    encoder, labels = Encoder(), []
    entropy = torch.nn.functional.cross_entropy
    torch.nn.functional.cross_entropy = lambda logits, target, **rest: labels.append(target) or entropy(logits, target,
                                                                                                         **rest)
    options = {"mask_token_id": MASK, "pad_token_id": PAD, "mask_prob": 0.15, "replace_prob": 0.9,
               "mask_ignore_token_ids": [CLS, SEP], "num_tokens": WORDS, **options}
    (MLM(encoder, **options) if wrapper is MLM else Electra(encoder, Discriminator(), **options))(texts)
    torch.nn.functional.cross_entropy = entropy
    return encoder.read, labels[0] != PAD


words = torch.randint(5, WORDS, (500, 98))
texts = torch.cat([torch.full((500, 1), CLS), words, torch.full((500, 1), SEP), torch.full((500, 100), PAD)], 1)
for wrapper in (MLM, Electra):
    shares = {}
    for probability in (0.1, 0.0):
        read, predicted = reads(texts, wrapper, random_token_prob=probability)
        wrong = (read != texts) & (read != MASK)
        for name, where in (("words that nobody predicts", (texts > 4) & ~predicted), ("predicted words", predicted),
                            ("[CLS] and [SEP]", (texts == CLS) | (texts == SEP)), ("padding", texts == PAD)):
            shares[probability, name] = wrong[where].float().mean().item()
            print(f"{wrapper.__name__}, random_token_prob={probability}: {shares[probability, name]:.3f} of the {name} "
                  "are random words")
        print(f"    {wrong[texts > 4].float().mean():.3f} of all words, "
              f"{(read == MASK)[texts > 4].float().mean():.3f} are masked")
        assert abs(wrong[texts > 4].float().mean() - probability) < 0.01
        assert abs((read == MASK)[texts > 4].float().mean() - 0.15 * 0.9 * (1 - probability)) < 0.02
        assert abs(predicted[texts > 4].float().mean() - 0.15) < 0.02 and not predicted[texts <= 4].any()
    for (probability, name), share in shares.items():
        assert abs(share - probability) < 0.02

    for length in (10, 50):
        words = torch.randint(5, WORDS, (500, length))
        padding = torch.full((500, 100 - length), PAD)
        found = {}
        for side, row in (("left", [padding, words]), ("right", [words, padding])):
            row = torch.cat(row, 1)
            read, predicted = reads(row, wrapper, replace_prob=1.0)
            found[side] = predicted.sum(1).float().mean().item()
            masks = ((read == MASK) & (row == PAD)).sum(1).float().mean()
            print(f"{wrapper.__name__}: {found[side]:.1f} of {length} words are masked with padding on the {side}, and "
                  f"{masks:.1f} places of padding")
            assert (masks > 0) == (side == "left" and length == 10)
        assert found == {"left": {10: 10, 50: 15}[length], "right": {10: 2, 50: 8}[length]}
PYTHON
echo "as seen"
