#!/usr/bin/env bash
# tokie 0.1.4: a tokenizer of RoBERTa, or of BERT as tokenizers writes it, adds no <s>, no [CLS] and no [SEP], though
# "100% token-accurate across all models" is promised, and no error comes.
#
# tokie is a "drop-in replacement for HuggingFace tokenizers", reads a tokenizer.json and encodes the words of it very
# fast. The first and last tokens of a text are written there by a post-processor, of which there are several kinds.
# tokie knows TemplateProcessing, which transformers writes for BERT, and passes over RobertaProcessing, which it writes
# for RoBERTa, and BertProcessing, which BertWordPieceTokenizer of tokenizers writes for BERT's vocabulary. Then
# add_special_tokens=True, the default, adds nothing, and num_special_tokens_to_add is 0. A model whose vector of a text
# is that of its first token gets that of some word, a cross-encoder gets a pair as one text without </s></s> between,
# with the type ids 0 and 1 where RoBERTa has 0 alone, and a text that is cut to 8 tokens has 8 words. An empty text
# has no token at all. The words are right, so that a look at the tokens shows nothing strange.
#
# Write the same tokens as a TemplateProcessing into the file before, as below, and compare a few encodings. Seen in
# November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check tokie==0.1.4 tokenizers==0.23.3 numpy==2.4.6
"$folder/venv/bin/python" - "$folder" <<'PYTHON'
import sys
from importlib.metadata import version

import tokie
from tokenizers import BertWordPieceTokenizer, ByteLevelBPETokenizer, Tokenizer
from tokenizers.processors import RobertaProcessing, TemplateProcessing

print("tokie", version("tokie"), "tokenizers", version("tokenizers"))
texts = ["How are you? I am fine, thanks.", "The fast reader leaves out the first token of a text.", "a b c"] * 5
path = sys.argv[1] + "/tokenizer.json"


def read(own):
    own.save(path)
    return tokie.Tokenizer.from_json(path)


def compare(name, own):
    """The tokens of tokenizers and of tokie from the same file, and whether the words and all are equal."""
    other = read(own)
    pair, found = own.encode("How are you?", "I am fine."), other.encode_pair("How are you?", "I am fine.")
    print(f"{name}\n  tokenizers {pair.tokens}\n  tokie      {found.tokens}, to add to one text: "
          f"{other.num_special_tokens_to_add(False)}")
    words = all(own.encode(text, add_special_tokens=False).ids == other.encode(text, add_special_tokens=False).ids
                for text in texts)
    every = all(own.encode(text).ids == other.encode(text).ids for text in texts)
    return other, found, words, every


roberta = ByteLevelBPETokenizer()
roberta.train_from_iterator(texts, vocab_size=400, special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
                            show_progress=False)
roberta = Tokenizer.from_str(roberta.to_str())
roberta.post_processor = RobertaProcessing(("</s>", 2), ("<s>", 0))
other, found, words, every = compare("RoBERTa's RobertaProcessing", roberta)
assert words and not every and other.num_special_tokens_to_add(False) == 0, "RobertaProcessing is known now"
assert roberta.encode("").ids == [0, 2] and other.encode("").ids == []
assert roberta.encode("How", "I").type_ids == [0] * 6 and set(found.type_ids) == {0, 1}
other.enable_truncation(8)
assert len(other.encode(texts[1]).ids) == 8 and not {0, 2} & set(other.encode(texts[1]).ids)

bert = BertWordPieceTokenizer()
bert.train_from_iterator(texts, vocab_size=200, min_frequency=1, show_progress=False)
bert = Tokenizer.from_str(BertWordPieceTokenizer(bert.get_vocab()).to_str())
cls, sep = bert.token_to_id("[CLS]"), bert.token_to_id("[SEP]")
other, _, words, every = compare("BERT's BertProcessing", bert)
assert words and not every and other.num_special_tokens_to_add(False) == 0, "BertProcessing is known now"

bert.post_processor = TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
                                         special_tokens=[("[CLS]", cls), ("[SEP]", sep)])
other, found, words, every = compare("the same as TemplateProcessing", bert)
assert words and every and found.ids == bert.encode("How are you?", "I am fine.").ids
PYTHON
echo "as seen"
