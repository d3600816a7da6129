#!/usr/bin/env bash
# onnxruntime 1.32.0: onnxruntime.transformers.optimizer fuses attention whose scores are divided by another number
# than the root of the head's size, and the fused operation divides by the root.
#
# The optimiser looks for BERT's attention in an exported model and puts one Attention operation in its place. It
# accepts any constant under the scores and does not write it into the operation, whose default is one over
# the root of the head's size. Models that divide by the size itself (maximal update parametrisation), by a
# temperature, or not at all (as T5 does) are fused like BERT and answer with other attention. Shapes, masks and
# the names of inputs stay, the statistics show all layers fused, and no warning comes. The fused model is the one
# that is served. If the scores are multiplied, or the queries are divided, the pattern is not found and all is right.
# onnxruntime itself, which also fuses when it loads a model, leaves the other numbers alone.
#
# Compare the outputs before and after, or multiply by the factor instead of dividing. Seen in November 2026 with Python
# 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    onnx==1.23.2 onnxruntime==1.32.0 sympy==1.14.0 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
import collections

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.transformers import optimizer

print("onnxruntime", onnxruntime.__version__)
TOKENS, SIZE, HEADS, LAYERS = 7, 32, 4, 2
HEAD = SIZE // HEADS


def encoder(operation, number):
    """An encoder as PyTorch exports it, with attention scores that `operation` divides or multiplies by the number."""
    rng = np.random.default_rng(0)
    nodes, constants = [], {
        "one": np.float32(1), "low": np.float32(-10000), "axis_1": np.array([1]), "axis_2": np.array([2]),
        "number": np.float32(number), "split": np.array([0, 0, HEADS, HEAD]), "join": np.array([0, 0, SIZE])}

    def node(operation, inputs, output, **attributes):
        nodes.append(helper.make_node(operation, inputs.split(), [output], name=output, **attributes))

    def normalise(vectors, output):
        constants[f"{output}_gamma"], constants[f"{output}_beta"] = np.ones(SIZE, "f"), np.zeros(SIZE, "f")
        node("LayerNormalization", f"{vectors} {output}_gamma {output}_beta", output)

    def dense(vectors, output):
        constants[f"{output}_kernel"] = (rng.normal(size=(SIZE, SIZE)) / SIZE ** 0.5).astype("f")
        constants[f"{output}_bias"] = rng.normal(size=SIZE).astype("f")
        node("MatMul", f"{vectors} {output}_kernel", f"{output}_product")
        node("Add", f"{output}_bias {output}_product", output)

    node("Unsqueeze", "mask axis_1", "mask_1")
    node("Unsqueeze", "mask_1 axis_2", "mask_2")
    node("Cast", "mask_2", "real", to=TensorProto.FLOAT)
    node("Sub", "one real", "padding")
    node("Mul", "padding low", "bias")
    normalise("vectors", "layer_0")
    for layer in range(LAYERS):
        before = f"layer_{layer}"
        for name in ("query", "key", "value"):
            dense(before, f"{name}_{layer}")
            node("Reshape", f"{name}_{layer} split", f"{name}_split_{layer}")
            node("Transpose", f"{name}_split_{layer}", f"{name}_heads_{layer}",
                 perm=[0, 2, 3, 1] if name == "key" else [0, 2, 1, 3])
        node("MatMul", f"query_heads_{layer} key_heads_{layer}", f"products_{layer}")
        node(operation, f"products_{layer} number", f"scores_{layer}")
        node("Add", f"scores_{layer} bias", f"masked_{layer}")
        node("Softmax", f"masked_{layer}", f"weights_{layer}", axis=-1)
        node("MatMul", f"weights_{layer} value_heads_{layer}", f"context_heads_{layer}")
        node("Transpose", f"context_heads_{layer}", f"context_split_{layer}", perm=[0, 2, 1, 3])
        node("Reshape", f"context_split_{layer} join", f"context_{layer}")
        dense(f"context_{layer}", f"output_{layer}")
        node("Add", f"output_{layer} {before}", f"sum_{layer}")
        normalise(f"sum_{layer}", f"layer_{layer + 1}")
    node("Identity", f"layer_{LAYERS}", "encoded")
    graph = helper.make_graph(
        nodes, "encoder", [helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["texts", "tokens", SIZE]),
                           helper.make_tensor_value_info("mask", TensorProto.INT64, ["texts", "tokens"])],
        [helper.make_tensor_value_info("encoded", TensorProto.FLOAT, ["texts", "tokens", SIZE])],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, "model.onnx")


MASK = (np.arange(TOKENS) < np.array([7, 4, 2])[:, None]).astype("int64")
FEED = {"vectors": np.random.default_rng(1).normal(size=(3, TOKENS, SIZE)).astype("f"), "mask": MASK}


def run(path, level=onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return session.run(None, FEED)[0][MASK.astype(bool)]


for name, operation, number, wrong in (
        ("BERT, divided by the root of the head's size", "Div", HEAD ** 0.5, False),
        ("multiplied by one over the root", "Mul", HEAD ** -0.5, False),
        ("divided by the head's size", "Div", HEAD, True), ("multiplied by one over the size", "Mul", 1 / HEAD, False),
        ("divided by 1", "Div", 1.0, True), ("divided by twice the root", "Div", 2 * HEAD ** 0.5, True)):
    encoder(operation, number)
    exact = run("model.onnx", onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL)
    assert np.allclose(run("model.onnx"), exact, atol=1e-4), "onnxruntime itself is wrong"
    fused = optimizer.optimize_model("model.onnx", model_type="bert", num_heads=HEADS, hidden_size=SIZE, opt_level=0)
    fused.save_model_to_file("fused.onnx")
    count = collections.Counter(node.op_type for node in onnx.load("fused.onnx").graph.node)["Attention"]
    result = run("fused.onnx")
    difference = float(np.abs(result - exact).max())
    print(f"{name}: {count} of {LAYERS} attentions fused, outputs differ by {difference:.4f}")
    assert (difference > 0.05) == wrong and count == (LAYERS if operation == "Div" else 0), "otherwise than seen"
    if wrong:
        encoder("Div", HEAD ** 0.5)
        assert np.allclose(result, run("model.onnx"), atol=1e-4), "the fused model does not divide by the root"
PYTHON
echo "as seen"
