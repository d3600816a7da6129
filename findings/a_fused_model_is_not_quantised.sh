#!/usr/bin/env bash
# quantize_dynamic of onnxruntime 1.31.1 refuses a model that onnxruntime.transformers.optimizer fused.
#
# The optimizer joins an addition and the layer normalisation after it to SkipLayerNormalization, an
# operation of onnxruntime's own. ONNX's shape inference does not know its output's type, so the types
# of everything after it are lost, and quantize_dynamic needs the type of each matrix product. Both
# come in one package, and the same model is quantised before it is fused.
#
# Quantise with extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT}. Seen in November 2026 with
# Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    onnxruntime==1.31.1 onnx==1.23.2 numpy==2.4.6 sympy==1.14.0
"$folder/venv/bin/pip" check
cd "$folder"
venv/bin/python - <<'PYTHON'
import logging

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import quantize_dynamic
from onnxruntime.transformers import optimizer

logging.disable()
print("onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__)
rng = np.random.default_rng(0)
weights = [numpy_helper.from_array(rng.standard_normal(shape).astype("float32"), name)
           for name, shape in (("gamma", 8), ("beta", 8), ("first", (8, 6)), ("second", (6, 6)))]
row = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4, size])
       for name, size in (("x", 8), ("y", 8), ("output", 6))}
graph = helper.make_graph([
    helper.make_node("Add", ["x", "y"], ["sum"]),
    helper.make_node("LayerNormalization", ["sum", "gamma", "beta"], ["norm"], epsilon=1e-12),
    helper.make_node("MatMul", ["norm", "first"], ["hidden"]),
    helper.make_node("Relu", ["hidden"], ["active"]),
    helper.make_node("MatMul", ["active", "second"], ["output"])],
    "layer", [row["x"], row["y"]], [row["output"]], weights)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
onnx.checker.check_model(model, full_check=True)
onnx.save(model, "plain.onnx")
optimizer.optimize_model("plain.onnx", "bert", 2, 8, opt_level=0).save_model_to_file("fused.onnx")
print("fused:", [node.op_type for node in onnx.load("fused.onnx").graph.node])
texts = {name: rng.standard_normal((1, 4, 8)).astype("float32") for name in "xy"}
plain, fused = (onnxruntime.InferenceSession(name).run(None, texts)[0]
                for name in ("plain.onnx", "fused.onnx"))
assert np.allclose(plain, fused, atol=1e-6), "the fused model has other outputs"
quantize_dynamic("plain.onnx", "plain8.onnx")
print("plain.onnx is quantised")
try:
    quantize_dynamic("fused.onnx", "fused8.onnx")
except RuntimeError as error:
    print("fused.onnx:", str(error).partition(".")[0])
    assert "Unable to find data type" in str(error)
else:
    raise SystemExit("another result than seen: fused.onnx is quantised")
quantize_dynamic("fused.onnx", "fused8.onnx",
                 extra_options={"DefaultTensorType": TensorProto.FLOAT})
print("fused.onnx is quantised with DefaultTensorType")
PYTHON
echo "as seen"
