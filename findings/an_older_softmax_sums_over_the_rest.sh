#!/usr/bin/env bash
# onnx 1.23.2: converting a model to an older opset changes its Softmax, unless that is over the last axis.
#
# Until opset 12, Softmax of ONNX with an axis is over this axis and all after it together. From 13 on it is over the
# one axis. convert_version from 13 or later to 12 or earlier, for a runtime or a chip that reads no newer one,
# copies the axis. A tagger that gives [texts, tags, tokens], as PyTorch's cross_entropy wants it, and takes the
# softmax over the tags (axis 1) then shares one probability among all tags of all tokens: in a text of 20 tokens the
# best tags sum to 0.4 in place of 8.6. A pooling with several heads, [texts, tokens, heads], weighs the tokens of
# one head by the others, and the vectors are another model's. The adapter came in 2025 (pull request 6608 of
# onnx/onnx); before, the conversion was refused. LogSoftmax is wrong likewise. Hardmax is wrong from 11 to 13,
# where Softmax and LogSoftmax are right. The converted models pass the full check, and no warning comes.
# torch.onnx.export of torch 2.13.0 goes this way when it is asked for opset 12 or less, unless dynamo=False.
#
# Transpose to the last axis before a Softmax. Seen in November 2026 with Python 3.11. The script fails if this
# changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, version_converter

print("onnx", onnx.__version__, "onnxruntime", onnxruntime.__version__)
TEXTS, TAGS, TOKENS = 2, 5, 20
LOGITS = np.random.default_rng(0).normal(size=(TEXTS, TAGS, TOKENS)).astype("float32")


def model(operation, axis, opset):
    graph = helper.make_graph(
        [helper.make_node(operation, ["logits"], ["shares"], axis=axis)], "tagger",
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, LOGITS.shape)],
        [helper.make_tensor_value_info("shares", TensorProto.FLOAT, LOGITS.shape)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def run(graph):
    onnx.checker.check_model(graph, full_check=True)
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"logits": LOGITS})[0]


def change(operation, axis, before, after):
    """The results before and after the conversion from one opset to another, and the operations of the new model."""
    graph = model(operation, axis, before)
    converted = version_converter.convert_version(graph, after)
    return run(graph), run(converted), [node.op_type for node in converted.graph.node]


exact = np.exp(LOGITS) / np.exp(LOGITS).sum(1, keepdims=True)
for after in (12, 11, 9):
    old, new, operations = change("Softmax", 1, 13, after)
    together = np.exp(LOGITS) / np.exp(LOGITS).sum((1, 2), keepdims=True)
    print(f"Softmax over the tags, 13 to {after}: {operations}; the best tags of the first text sum to",
          f"{old[0].max(0).sum():.3f} before and {new[0].max(0).sum():.3f} after")
    assert np.allclose(old, exact, atol=1e-6) and np.allclose(new, together, atol=1e-6), "other numbers than seen"

for operation, axis, before, after, right in (
        ("Softmax", -1, 13, 12, True), ("Softmax", 1, 11, 13, True), ("LogSoftmax", 1, 11, 13, True),
        ("Softmax", 1, 17, 12, False), ("Softmax", -2, 13, 12, False), ("LogSoftmax", 1, 13, 12, False),
        ("Hardmax", 1, 11, 13, False)):
    old, new, operations = change(operation, axis, before, after)
    print(f"{operation} over axis {axis}, {before} to {after}: {operations}; differ by {np.abs(old - new).max():.4f}")
    assert np.allclose(old, new, atol=1e-5) == right, "wrong now" if right else "right now"
PYTHON
echo "as seen"
