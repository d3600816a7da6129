#!/usr/bin/env bash
# DebertaV2Tokenizer of transformers 5.23.0 drops the normalisation that is stored in spm.model.
#
# A SentencePiece model carries the rules by which text is normalised before it is cut: here nmt_nfkc,
# the trainer's default, which reads a full-width comma as a comma and a ligature as its letters.
# DebertaV2Tokenizer takes the pieces and their scores from the file, and puts fixed rules of its own
# in front. The model has a piece for the comma, and yet the full-width comma becomes [UNK]. In Chinese
# that is most lines. AlbertTokenizer, which reads the same kind of file, keeps the rules.
#
# Read such a model with sentencepiece, or ship a tokenizer.json under the class
# PreTrainedTokenizerFast. Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    transformers==5.23.0 tokenizers==0.23.3 sentencepiece==0.2.3 protobuf==7.36.1
"$folder/venv/bin/pip" check
"$folder/venv/bin/python" - "$folder" <<'PYTHON'
import pathlib
import sys

import sentencepiece
import transformers

folder = pathlib.Path(sys.argv[1], "model")
folder.mkdir()
words = str(sys.copyright).split() + dir(str) + dir(int)
text = folder / "text.txt"
text.write_text("\n".join(f"{a}, {b}" for a, b in zip(words, words[1:])))
sentencepiece.SentencePieceTrainer.train(
    input=str(text), model_prefix=str(folder / "spm"), vocab_size=120, hard_vocab_limit=False,
    pad_id=0, bos_id=1, eos_id=2, unk_id=3, pad_piece="[PAD]", bos_piece="[CLS]", eos_piece="[SEP]",
    unk_piece="[UNK]", control_symbols=["[MASK]"], minloglevel=2)
(folder / "spiece.model").write_bytes((folder / "spm.model").read_bytes())
model = sentencepiece.SentencePieceProcessor(model_file=str(folder / "spm.model"))
print("sentencepiece", sentencepiece.__version__, "transformers", transformers.__version__)
pieces = {}
for text in ("index, count", "index\uff0c count", "\ufb01nd"):
    pieces[text] = [model.encode(text, out_type=str)]
    for name in ("DebertaV2Tokenizer", "AlbertTokenizer"):
        tokenizer = getattr(transformers, name).from_pretrained(folder)
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        pieces[text].append(tokenizer.convert_ids_to_tokens(ids))
    for name, cut in zip(("sentencepiece", "DebertaV2Tokenizer", "AlbertTokenizer"), pieces[text]):
        print(f"{ascii(text):<20} {name:<20} {ascii(cut)}")
for text, (own, deberta, albert) in pieces.items():
    assert "[UNK]" not in own + albert, "the model does not know the text"
    assert ("[UNK]" in deberta) == (not text.isascii()), "another result than seen"
PYTHON
echo "as seen"
