#!/usr/bin/env bash
# onnxruntime 1.32.0: with one padded text among the calibration data, quantize_static makes a model of BERT's kind
# look at all tokens alike.
#
# Encoders hide padding by adding a number to the attention scores, -10000 in Google's BERT and the least float in
# transformers. quantize_static runs the calibration data, takes the least and greatest number of each tensor,
# and spreads 8 bits between them. It does so for the sum of scores and mask too. As soon as one calibration
# text is padded, a step is 39 or more, all scores become 0, and the softmax gives each real token the same weight,
# in each head and text, padded or not. Batches of texts are nearly always padded. Without padded texts
# the quantised model is close to the original, also for padded texts later. No warning comes, the model has the
# right shapes, and quantize_dynamic, which leaves sums alone, is right. Olive met it for one chip and replaces the
# number (pull request 1597 of microsoft/Olive), but -10000, which it takes, is no better here.
#
# Pass op_types_to_quantize=["MatMul", "Gemm", "Gather"]. Seen in November 2026 with Python 3.11. The script fails if
# this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, quantize_dynamic, quantize_static

print("onnxruntime", onnxruntime.__version__)
TOKENS, SIZE, HEADS, REAL = 16, 32, 4, 10
rng = np.random.default_rng(0)
KERNELS = {name: (rng.normal(size=(SIZE, SIZE)) / 4).astype("float32") for name in ("query", "key", "value")}


def attention(low):
    """BERT's self-attention, of vectors [texts, TOKENS, SIZE] and a mask, that adds `low` to the scores of padding."""
    def node(operation, inputs, output, **attributes):
        nodes.append(helper.make_node(operation, inputs.split(), [output], name=output, **attributes))

    nodes = []
    node("Cast", "mask", "real", to=TensorProto.FLOAT)
    node("Sub", "one real", "padding")
    node("Mul", "padding low", "flat_bias")
    node("Unsqueeze", "flat_bias axes", "bias")
    for name in KERNELS:
        node("MatMul", f"vectors {name}", f"{name}_flat")
        node("Reshape", f"{name}_flat split", f"{name}_split")
        node("Transpose", f"{name}_split", f"{name}_heads", perm=[0, 2, 3, 1] if name == "key" else [0, 2, 1, 3])
    node("MatMul", "query_heads key_heads", "products")
    node("Div", "products root", "scores")
    node("Add", "scores bias", "masked_scores")
    node("Softmax", "masked_scores", "weights", axis=-1)
    node("MatMul", "weights value_heads", "context")
    constants = {**KERNELS, "one": np.float32(1), "low": np.float32(low), "axes": np.array([1, 2]),
                 "split": np.array([0, TOKENS, HEADS, SIZE // HEADS]), "root": np.float32((SIZE // HEADS) ** 0.5)}
    graph = helper.make_graph(
        nodes, "attention", [helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["texts", TOKENS, SIZE]),
                             helper.make_tensor_value_info("mask", TensorProto.INT64, ["texts", TOKENS])],
        [helper.make_tensor_value_info("context", TensorProto.FLOAT, ["texts", HEADS, TOKENS, SIZE // HEADS]),
         helper.make_tensor_value_info("weights", TensorProto.FLOAT, ["texts", HEADS, TOKENS, TOKENS])],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(onnx.shape_inference.infer_shapes(model), "model.onnx")


def texts(count, padded):
    mask = np.ones((count, TOKENS), "int64")
    mask[:padded, REAL:] = 0
    return {"vectors": rng.normal(size=(count, TOKENS, SIZE)).astype("float32"), "mask": mask}


class Calibration(CalibrationDataReader):
    def __init__(self, padded):
        self.batches = iter([texts(8, 0), texts(8, padded), texts(8, 0)])

    def get_next(self):
        return next(self.batches, None)


def compare(what):
    """How much the weights differ from each other after, as a share of before, and the error of the result."""
    feed = texts(8, 0)
    (context, weights), (new_context, new_weights) = (
        onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, feed)
        for path in ("model.onnx", "quantised.onnx"))
    error = float((np.square(context - new_context).mean() / np.square(context).mean()) ** 0.5)
    print(f"{what}: weights spread by {weights.std():.4f}, after {new_weights.std():.4f}; error {error:.3f}")
    return float(new_weights.std() / weights.std()), error


for low in (-10000.0, float(np.finfo("float32").min)):
    attention(low)
    for padded, options, blind in ((0, {}, False), (1, {}, True),
                                   (1, {"op_types_to_quantize": ["MatMul", "Gemm", "Gather"]}, False)):
        quantize_static("model.onnx", "quantised.onnx", Calibration(padded), **options)
        share, error = compare(f"mask {low:.3g}, {padded} padded text of 24, {options}")
        assert (share < 1e-3 and error > 0.4) if blind else (share > 0.9 and error < 0.2), "otherwise than seen"
    quantize_dynamic("model.onnx", "quantised.onnx")
    assert compare(f"mask {low:.3g}, quantize_dynamic")[0] > 0.9, "quantize_dynamic is wrong too"
PYTHON
echo "as seen"
