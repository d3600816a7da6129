#!/usr/bin/env bash
# onnxruntime 1.32.0: Dropout nodes with the seeds 1 and 2 drop half of their places together, and nodes without a
# seed all drop the first place or all keep it.
#
# Dropout in training mode and RandomUniformLike have the attribute seed, so that results can be repeated. To
# ask a classifier ten times with other numbers dropped, one gives each dropout a seed of its own, 1 to 10. The
# generator on a processor multiplies the seed again and again by the same factor, modulo a prime. The numbers of seed 2
# are therefore those of seed 1 doubled, less the whole part, and those of seed 3 the same tripled. At a rate of
# 0.1, dropouts of seed 1 and 2 share 50% of their places, 1 and 3 33%, in place of 10%. The samples agree more than
# they should, so the spread is too small and their mean is no more exact. Without the attribute, seeds that follow
# each other are taken for the nodes of a graph. Then the first numbers differ by less than 0.0001: the first
# number of [CLS] is dropped in all ten samples or in none. RandomNormalLike looks right.
#
# Take seeds that are far apart and no multiples of each other, as large primes. Seen in November 2026 with Python
# 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

print("onnxruntime", onnxruntime.__version__)
PLACES = 200_000


def run(operation, seeds):
    """What nodes of the operation with these seeds make of a vector of ones, [len(seeds), PLACES]."""
    nodes = []
    for index, seed in enumerate(seeds):
        inputs = ["ones", "rate", "training"] if operation == "Dropout" else ["ones"]
        number = int if operation == "Dropout" else float
        attributes = {} if seed is None else {"seed": number(seed)}
        nodes.append(helper.make_node(operation, inputs, [f"out_{index}"], **attributes))
    nodes.append(helper.make_node("Concat", [node.output[0] for node in nodes], ["out"], axis=0))
    graph = helper.make_graph(
        nodes, "noise", [helper.make_tensor_value_info("ones", TensorProto.FLOAT, [1, PLACES])],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, [len(seeds), PLACES])],
        [numpy_helper.from_array(np.float32(0.1), "rate"), numpy_helper.from_array(np.array(True), "training")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model, full_check=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {"ones": np.ones((1, PLACES), "float32")})[0]


dropped = run("Dropout", range(1, 11)) == 0
shared = [float((dropped[0] & row).sum() / dropped[0].sum()) for row in dropped]
print(f"Dropout at 0.1 drops {dropped.mean():.3f}; of seed 1's places seeds 1 to 10 drop:", np.round(shared, 2))
assert np.allclose(shared, [max(1 / seed, 0.1) for seed in range(1, 11)], atol=0.02), "other shares than seen"
numbers = run("RandomUniformLike", range(1, 6))
print("RandomUniformLike, correlation of seed 1 with 1 to 5:", np.round(np.corrcoef(numbers)[0], 2))
assert all(np.abs(seed * numbers[0] % 1 - numbers[seed - 1]).max() < 1e-5 for seed in (1, 2, 3)), "other numbers"
normal = np.corrcoef(run("RandomNormalLike", range(1, 6)))[0]
print("RandomNormalLike, the same:", np.round(normal, 2))
far = run("Dropout", [1_000_003, 7_368_787]) == 0
print(f"Dropout, seeds 1000003 and 7368787 share {float((far[0] & far[1]).sum() / far[0].sum()):.2f}")
assert np.abs(normal[1:]).max() < 0.02 and abs((far[0] & far[1]).sum() / far[0].sum() - 0.1) < 0.02

numbers = run("RandomUniformLike", [None] * 10)
dropped = run("Dropout", [None] * 10) == 0
print("Without seeds, the first number of ten nodes:", numbers[:, 0], "the second:", np.round(numbers[:, 1], 2),
      "first place dropped:", int(dropped[:, 0].sum()), "times of 10")
assert np.ptp(numbers[:, 0]) < 1e-3 < 0.5 < np.ptp(numbers[:, 1]) and dropped[:, 0].sum() in (0, 10), "independent now"
PYTHON
echo "as seen"
