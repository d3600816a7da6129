#!/usr/bin/env bash
# onnxoptimizer 0.4.2: optimize joins two Reshape nodes though the second keeps a number of its input's shape by 0, so
# the result has another shape.
#
# In the shape that ONNX's Reshape is given, 0 stands for "as in the input". Exporters and simplifiers write it where a
# number is not known, as that of texts in a batch. Of two Reshape nodes in a row optimize takes out the first, as if
# only the last shape mattered. The 0 then keeps a number of the shape before both. Here the tokens of two texts are cut
# into blocks of three, for attention within a block, and each vector into two heads: (2, 6, 4) to (4, 3, 4) to (4, 3,
# 2, 2). The optimised model makes (2, 6, 2, 2) of it: the blocks are gone, and each token attends to its whole text.
# The numbers of elements are equal, so the model runs, and the full check finds nothing if the result has no shape
# written in the graph. The pass is one of the default ones. Another of them takes a Slice of a Shape that begins at
# start=1, which opset 15 has for that, from the beginning of the shape: the number of texts is given for that of
# tokens. No warning comes. onnxruntime with all of its own optimisations is right in both. That the first pass changes
# results of random graphs is reported without the cause (onnx/optimizer issues 171 and 259).
#
# Leave out the passes "eliminate_consecutive_idempotent_ops" and "eliminate_slice_after_shape". Seen in November 2026
# with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check onnxoptimizer==0.4.2 onnx==1.23.2 \
    onnxruntime==1.32.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np
import onnx
import onnxoptimizer
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

print("onnxoptimizer", version("onnxoptimizer"), "onnx", onnx.__version__, "onnxruntime", onnxruntime.__version__)
BLAMED = ["eliminate_consecutive_idempotent_ops", "eliminate_slice_after_shape"]
REST = [name for name in onnxoptimizer.get_fuse_and_elimination_passes() if name not in BLAMED]
assert len(REST) == len(onnxoptimizer.get_fuse_and_elimination_passes()) - 2, "not among the default passes"
TEXTS = np.arange(48, dtype=np.float32).reshape(2, 6, 4)
LEVELS = onnxruntime.GraphOptimizationLevel


def model(nodes, constants, kind, rank, shape=("texts", "tokens", 4)):
    graph = helper.make_graph(
        nodes, "graph", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", kind, [None] * rank)],
        [numpy_helper.from_array(np.array(value), name) for name, value in constants.items()])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(made, full_check=True)
    return made


def run(model, level=LEVELS.ORT_DISABLE_ALL):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": TEXTS})[0]


def attend(x):
    """Each token takes the mean of the tokens that it may look at, the last axis but two."""
    return np.broadcast_to(x.mean(1, keepdims=True), x.shape).reshape(TEXTS.shape)


blocks = model([helper.make_node("Reshape", ["x", "blocks"], ["cut"]),
                helper.make_node("Reshape", ["cut", "heads"], ["split"]),
                helper.make_node("ReduceMean", ["split"], ["mean"], axes=[1], keepdims=1),
                helper.make_node("Shape", ["split"], ["shape"]),
                helper.make_node("Expand", ["mean", "shape"], ["spread"]),
                helper.make_node("Reshape", ["spread", "back"], ["y"])],
               {"blocks": [-1, 3, 4], "heads": [0, 0, 2, 2], "back": [-1, 6, 4]}, TensorProto.FLOAT, 3)
tokens = model([helper.make_node("Shape", ["x"], ["shape"], start=1),
                helper.make_node("Slice", ["shape", "first", "second"], ["y"])],
               {"first": [0], "second": [1]}, TensorProto.INT64, 1, shape=(2, 6, 4))
for name, plain, right, wrong in (("blocks", blocks, attend(TEXTS.reshape(4, 3, 4)), attend(TEXTS)),
                                  ("tokens", tokens, [6], [2])):
    optimised = onnxoptimizer.optimize(plain)
    onnx.checker.check_model(optimised, full_check=True)
    results = run(plain), run(plain, LEVELS.ORT_ENABLE_ALL), run(onnxoptimizer.optimize(plain, REST)), run(optimised)
    print(name, [node.op_type for node in plain.graph.node], "->", [node.op_type for node in optimised.graph.node])
    for who, result in zip(("as it is:", "onnxruntime:", "without the passes:", "optimised:"), results):
        print("   ", who, result.shape, result.ravel()[:10])
    assert all(np.array_equal(result, right) for result in results[:3]), "one of the others is wrong"
    assert np.array_equal(results[3], wrong) and not np.array_equal(right, wrong), "the optimised model is right"
PYTHON
echo "as seen"
