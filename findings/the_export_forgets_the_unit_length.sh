#!/usr/bin/env bash
# setfit 1.2.0: export_onnx leaves out that embeddings are brought to length 1, so the exported classifier has other
# probabilities and labels.
#
# A SetFit model is a sentence encoder and a classifier on its vectors. Most encoders that are taken for it, as
# all-MiniLM-L6-v2 or bge-small-en-v1.5, have three modules: Transformer, Pooling and Normalize. export_onnx takes the
# first two by their numbers and puts the head behind them. The head was trained on vectors of length 1 and gets
# longer ones, so the part of its logits that comes from the vector grows, and its bias stays: here a probability moves
# by up to 0.46, and 27% of the labels are others. SetFitModel(normalize_embeddings=True) is lost in the same way, as
# export_onnx gets the encoder and the head alone. Heads of scikit-learn and SetFitHead are both hit, and so is
# export_to_openvino, which goes this way. A Dense module after the pooling is left out too, but then an error comes
# unless it keeps the size. With neither, the export is exact. No warning says so.
#
# Join the modules after the first one: SentenceTransformer(modules=[body[0], torch.nn.Sequential(*list(body)[1:])]).
# Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check setfit==1.2.0 sentence-transformers==6.2.0 \
    transformers==5.23.0 torch==2.13.0 datasets==5.2.0 scikit-learn==1.9.1 numpy==2.4.6 onnx==1.23.2 \
    onnxruntime==1.32.0 onnxscript==0.7.2 skl2onnx==1.20.0
cd "$folder"
HF_HUB_OFFLINE=1 "$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
import numpy as np
import onnxruntime
import setfit
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.models import Normalize, Pooling, Transformer
from setfit import SetFitHead, SetFitModel
from setfit.exporters.onnx import export_onnx
from sklearn.linear_model import LogisticRegression
from transformers import BertConfig, BertModel, BertTokenizerFast

print("setfit", setfit.__version__)
WORDS = "ball goal match team bank money share price film actor scene music".split()
rng = np.random.default_rng(0)
LABELS = np.repeat([0, 1, 2], [4, 8, 16])
TEXTS = [" ".join(rng.choice(WORDS[4 * topic:4 * topic + 4], 5)) for topic in LABELS]
MIXED = [" ".join(rng.choice(WORDS, rng.integers(2, 8))) for _ in range(200)]
with open("vocab.txt", "w") as file:
    file.write("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]))
torch.manual_seed(0)
BertTokenizerFast("vocab.txt").save_pretrained("bert")
BertModel(BertConfig(vocab_size=5 + len(WORDS), hidden_size=32, num_hidden_layers=1, num_attention_heads=2,
                     intermediate_size=64, max_position_embeddings=16, initializer_range=0.5)).save_pretrained("bert")


def compare(what, after_pooling, torch_head, normalize=False):
    """How far the exported model's probabilities are from SetFit's, and the share of equal labels."""
    body = SentenceTransformer(modules=[Transformer("bert"), *after_pooling], device="cpu")
    vectors = body.encode(TEXTS, normalize_embeddings=normalize, show_progress_bar=False)
    head = LogisticRegression().fit(vectors, LABELS)
    if torch_head:
        weights = {"weight": torch.tensor(head.coef_), "bias": torch.tensor(head.intercept_)}
        head = SetFitHead(32, 3, device="cpu")
        head.linear.load_state_dict(weights)
    model = SetFitModel(model_body=body, model_head=head, normalize_embeddings=normalize)
    right = np.asarray(model.predict_proba(MIXED))
    export_onnx(model.model_body, model.model_head, opset=17, output_path="model.onnx")
    session = onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
    batch = body.tokenizer(MIXED, padding=True, return_tensors="np", return_token_type_ids=True)
    exported = session.run(None, {port.name: batch[port.name] for port in session.get_inputs()})[1]
    moved, equal = float(np.abs(exported - right).max()), float((exported.argmax(-1) == right.argmax(-1)).mean())
    print(f"{what}, {type(head).__name__}: probabilities moved by {moved:.6f}, {equal:.1%} of labels equal")
    return moved, equal


for torch_head in (False, True):
    moved, equal = compare("without Normalize", [Pooling(32)], torch_head)
    assert moved < 1e-4 and equal == 1, "the plain export is wrong too"
    for what, modules, normalize in (("with Normalize", [Pooling(32), Normalize()], False),
                                     ("normalize_embeddings=True", [Pooling(32)], True)):
        moved, equal = compare(what, modules, torch_head, normalize)
        assert moved > 0.3 and equal < 0.95, "the lengths are exported now"
    moved, equal = compare("joined", [torch.nn.Sequential(Pooling(32), Normalize())], torch_head)
    assert moved < 1e-4 and equal == 1, "joining the modules does not help"
PYTHON
echo "as seen"
