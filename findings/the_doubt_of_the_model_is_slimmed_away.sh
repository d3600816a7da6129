#!/usr/bin/env bash
# onnxslim 0.1.98 removes Dropout in training mode and joins random nodes that read the same tensor, so a model with
# Monte Carlo dropout answers as if it were certain.
#
# Whoever wants to know how sure a classifier is passes the vector of a text through several dropouts, and takes the
# spread of the answers as the doubt. In ONNX such a Dropout has the input training_mode, and torch.onnx.export
# writes it for a model in training mode. onnxslim takes every Dropout for one of inference and removes it. It
# also joins nodes of the same operation, attributes and inputs, as equal inputs give equal outputs, and does so for
# Bernoulli, RandomUniformLike and RandomNormalLike. After slim the spread is 0 for every text, ten samples are one, and
# noise minus noise is 0. The model is valid and smaller, and each answer by itself looks usual. ONNX Runtime, whose
# optimiser also removes dropouts and joins equal nodes, leaves Dropout in training mode and the Random
# operations alone.
#
# Pass skip_optimizations=["dead_node_elimination", "subexpression_elimination"]. Seen in November 2026 with Python
# 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    onnxslim==0.1.98 onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
import onnx
import onnxruntime
import onnxslim
from onnx import TensorProto, helper, numpy_helper

print("onnxslim", onnxslim.__version__, "onnxruntime", onnxruntime.__version__)
rng = np.random.default_rng(0)
SKIPPED = ["dead_node_elimination", "subexpression_elimination"]
CONSTANTS = {"ratio": np.float32(0.5), "training": np.array(True), "kernel": rng.normal(size=(64, 2)).astype("float32")}


def model(operation, samples=10):
    """A classifier of vectors [1, 64] whose answers [samples, 2] each see other noise."""
    nodes = []
    for sample in range(samples):
        if operation == "Dropout":
            nodes.append(helper.make_node("Dropout", ["vector", "ratio", "training"], [f"noisy_{sample}"]))
        else:
            nodes.append(helper.make_node(operation, ["vector"], [f"noise_{sample}"]))
            nodes.append(helper.make_node("Mul", ["vector", f"noise_{sample}"], [f"noisy_{sample}"]))
        nodes.append(helper.make_node("MatMul", [f"noisy_{sample}", "kernel"], [f"answer_{sample}"]))
    nodes.append(helper.make_node("Concat", [f"answer_{sample}" for sample in range(samples)], ["answers"], axis=0))
    graph = helper.make_graph(
        nodes, "head", [helper.make_tensor_value_info("vector", TensorProto.FLOAT, [1, 64])],
        [helper.make_tensor_value_info("answers", TensorProto.FLOAT, [samples, 2])],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in CONSTANTS.items()])
    head = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(head, full_check=True)
    return head


def spread(head):
    """The standard deviation over the samples of each of the two answers."""
    session = onnxruntime.InferenceSession(head.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"vector": np.full((1, 64), 0.5, "float32")})[0].std(0)


for operation in ("Dropout", "Bernoulli", "RandomUniformLike", "RandomNormalLike"):
    plain = model(operation)
    slim = onnxslim.slim(model(operation))
    careful = onnxslim.slim(model(operation), skip_optimizations=SKIPPED)
    counts = [sum(node.op_type == operation for node in graph.graph.node) for graph in (plain, slim, careful)]
    spreads = [spread(graph) for graph in (plain, slim, careful)]
    print(f"{operation}: {counts[0]} nodes, after slim {counts[1]}, without the two steps {counts[2]};",
          f"spread of the answers {spreads[0]}, after slim {spreads[1]}, without the two steps {spreads[2]}")
    assert counts == [10, 0 if operation == "Dropout" else 1, 10], "onnxslim leaves random nodes alone now"
    assert spreads[1].max() < 1e-5, "the answers of the slim model differ now"
    if operation != "Bernoulli":
        assert min(spreads[0].min(), spreads[2].min()) > 0.1, "the answers do not differ anyway"
PYTHON
echo "as seen"
