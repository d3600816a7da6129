#!/usr/bin/env bash
# onnxruntime 1.32.0: Bernoulli draws 1 with the probability of 0, so a mask of 15% covers 85% of the tokens.
#
# ONNX describes Bernoulli as giving 1 with the probability that its input holds. torch.bernoulli of a tensor is
# exported as it, as in a graph that masks the tokens of a text or drops numbers to learn how sure a classifier is.
# onnxruntime has no code for it and takes ONNX's definition by simpler operations: a random number between 0 and 1
# that is greater than the probability. That is the opposite. With 0.5 nobody sees it, with 0 all are 1, and with a
# probability for each place the likely places are the rare ones. No error or warning comes. onnx's own
# ReferenceEvaluator draws as described. torch-mlir met the same definition (issue 3527 of llvm/torch-mlir). Besides,
# several Bernoulli nodes with one input draw once: when a session is made it joins nodes of the same operation
# and input, and spares other random operations. Ten masked copies of a text then have one mask.
#
# Compare RandomUniformLike with the probabilities by Less. Seen in November 2026 with Python 3.11. The script fails
# if this changes.
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
from onnx.reference import ReferenceEvaluator

print("onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__)
LENGTH, MASK, COPIES = 4096, 103, 10
IDS = np.arange(1000, 1000 + LENGTH)[None]


def masker(operation):
    """A model that takes word ids and probabilities [1, LENGTH] and returns [COPIES, LENGTH] with [MASK] in places."""
    nodes = []
    for copy in range(COPIES):
        if operation == "Bernoulli":
            nodes.append(helper.make_node("Bernoulli", ["probabilities"], [f"drawn_{copy}"], dtype=TensorProto.BOOL))
        else:
            nodes.append(helper.make_node("RandomUniformLike", ["probabilities"], [f"number_{copy}"]))
            nodes.append(helper.make_node("Less", [f"number_{copy}", "probabilities"], [f"drawn_{copy}"]))
        nodes.append(helper.make_node("Where", [f"drawn_{copy}", "mask_id", "ids"], [f"masked_{copy}"]))
    nodes.append(helper.make_node("Concat", [f"masked_{copy}" for copy in range(COPIES)], ["masked"], axis=0))
    graph = helper.make_graph(
        nodes, "masker", [helper.make_tensor_value_info("ids", TensorProto.INT64, [1, LENGTH]),
                          helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, [1, LENGTH])],
        [helper.make_tensor_value_info("masked", TensorProto.INT64, [COPIES, LENGTH])],
        [numpy_helper.from_array(np.array([MASK]), "mask_id")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model, full_check=True)
    return model


def runtime(model):
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


for name, session, seen in (
        ("Bernoulli in onnxruntime", runtime(masker("Bernoulli")), lambda probability: 1 - probability),
        ("Bernoulli in onnx.reference", ReferenceEvaluator(masker("Bernoulli")), lambda probability: probability),
        ("RandomUniformLike and Less in onnxruntime", runtime(masker("Less")), lambda probability: probability)):
    for probability in (0.0, 0.15, 0.5, 0.9):
        masked, = session.run(None, {"ids": IDS, "probabilities": np.full((1, LENGTH), probability, "float32")})
        share, different = float((masked == MASK).mean()), len(np.unique(masked, axis=0))
        print(f"{name}, probability {probability}: {share:.2f} of the tokens masked,",
              f"{different} different masks of {COPIES}")
        assert abs(share - seen(probability)) < 0.04, f"not {seen(probability)} of the tokens"
        if probability:
            assert different == (1 if name == "Bernoulli in onnxruntime" else COPIES), "another number of masks"
PYTHON
echo "as seen"
