#!/usr/bin/env bash
# onnx2keras 0.0.25: a text that is flattened with Reshape and -1 comes out column by column, so that the layer above
# gets all numbers in wrong places.
#
# onnx2keras makes a Keras model of an ONNX model. ONNX has the channels first, and so the converter sets Keras' global
# image_data_format to "channels_first". Of a Reshape to [N, -1] it makes keras.layers.Flatten, which with that setting
# moves the second dimension to the end before it flattens: [token 1, token 2] becomes [number 1 of all tokens, number
# 2 of all tokens]. ONNX's Reshape goes row by row. The shape is the same, so the layer above fits, and its weights meet
# other numbers. x.view(x.size(0), -1) is exported to this Reshape by torch. Here a classifier over the vectors of 12
# tokens, or of 100, is off by more than the size of its logits, and half of 1,000 texts get the other one of two
# classes. ONNX's Flatten (x.flatten(1)) and a Reshape to concrete numbers have code of their own and are right. The
# README says that the converter is verified with both of torch's exporters, and nothing of this. No warning comes.
#
# Write x.flatten(1) before the export, and compare outputs. Seen in December 2026 with Python 3.11. The script fails if
# this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
pip() { "$folder/venv/bin/pip" install --quiet --disable-pip-version-check "$@"; }
pip tensorflow-cpu==2.20.0 keras==3.15.1 onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6
pip --no-deps onnx2keras==0.0.25
TF_CPP_MIN_LOG_LEVEL=3 "$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
import logging
from importlib.metadata import version

import keras
import numpy as np
import onnxruntime
from onnx import TensorProto, checker, helper, numpy_helper
from onnx2keras import onnx_to_keras

logging.disable(logging.WARNING)
print("onnx2keras", version("onnx2keras"), "keras", keras.__version__, "onnxruntime", onnxruntime.__version__)
rng = np.random.default_rng(0)
TEXTS, WIDTH = 1000, 16


def outputs(how, tokens):
    """The vectors of the tokens, flattened, to a layer with two classes: by numpy, ONNX Runtime and Keras."""
    texts = rng.normal(size=(TEXTS, tokens, WIDTH)).astype(np.float32)
    weight = rng.normal(size=(tokens * WIDTH, 2)).astype(np.float32) / (tokens * WIDTH) ** 0.5
    bias = rng.normal(size=2).astype(np.float32) / 10
    values = {"weight": weight, "bias": bias}
    if how == "Flatten":
        flatten = helper.make_node("Flatten", ["text"], ["flat"], axis=1)
    else:
        values["shape"] = np.array([TEXTS, -1 if how == "Reshape to -1" else tokens * WIDTH], np.int64)
        flatten = helper.make_node("Reshape", ["text", "shape"], ["flat"])
    graph = helper.make_graph(
        [flatten, helper.make_node("Gemm", ["flat", "weight", "bias"], ["logits"])], "head",
        [helper.make_tensor_value_info("text", TensorProto.FLOAT, texts.shape)],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [TEXTS, 2])],
        [numpy_helper.from_array(value, name) for name, value in values.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    checker.check_model(model)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    keras_model = onnx_to_keras(model, ["text"], verbose=False)
    by_columns = texts.transpose(0, 2, 1).reshape(TEXTS, -1) @ weight + bias
    return (texts.reshape(TEXTS, -1) @ weight + bias, by_columns, session.run(None, {"text": texts})[0],
            keras_model.predict(texts, verbose=0))


for how in ("Reshape to -1", "Reshape to a number", "Flatten"):
    for tokens in (12, 100):
        want, by_columns, runtime, converted = outputs(how, tokens)
        other = (converted.argmax(1) != want.argmax(1)).mean()
        error = np.abs(converted - want).mean() / np.abs(want).mean()
        print(f"{how}, {tokens} tokens: off by {error:.1%} of the mean size, {other:.1%} of the texts get the other"
              f" class; as if read by columns {np.allclose(converted, by_columns, atol=1e-4)}")
        assert np.allclose(runtime, want, atol=1e-4)
        if how == "Reshape to -1":
            assert np.allclose(converted, by_columns, atol=1e-4) and error > 1 and 0.4 < other < 0.6
        else:
            assert np.allclose(converted, want, atol=1e-4)
PYTHON
echo "as seen"
