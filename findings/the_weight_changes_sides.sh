#!/usr/bin/env bash
# onnx2pytorch 0.6.0: a weight that stands to the left of the tokens is multiplied from the right, so that a layer that
# mixes the tokens of a text mixes the numbers of each token instead.
#
# onnx2pytorch makes a torch.nn.Module of an ONNX model. For a MatMul with a weight among its inputs it makes nn.Linear,
# whichever input the weight is, and gives it the other input: W @ x becomes x @ W. For Gemm it is the same, W x + b
# becomes x W + b. Where the shapes don't fit an error is raised. Where they do, as in a model of width 128 for texts of
# 128 tokens (the width of BERT-tiny), the converted model is another one and says nothing. W @ x is how layers mix
# tokens, such as the gate of gMLP, and torch exports it as it stands.
# Here the outputs of a small gMLP are off by about their own size, and its tokens no longer hear each other: if the
# last token changes, ONNX Runtime changes all tokens, the converted model the last alone. Texts of another length raise
# an error, so that only those of the matching length are wrong. The README says that "operators and attributes that
# cannot be expressed in PyTorch raise rather than returning a wrong tensor", and that each operator is tested against
# ONNX Runtime. No warning comes. With the weight to the right all is well.
#
# Write (x.transpose(1, 2) @ W.T).transpose(1, 2) before the export, or run once with ConvertModel(model, debug=True),
# which compares with ONNX Runtime and raises. Seen in December 2026 with Python 3.11. torchvision, which the package
# imports for operations on images, is replaced by an empty module here. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
pip() { "$folder/venv/bin/pip" install --quiet --disable-pip-version-check "$@"; }
pip torch==2.13.0 onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6
pip --no-deps onnx2pytorch==0.6.0
mkdir -p "$folder/empty/torchvision"
touch "$folder/empty/torchvision/__init__.py"
echo "deform_conv2d = roi_pool = roi_align = nms = None" >"$folder/empty/torchvision/ops.py"
echo "decode_image = ImageReadMode = None" >"$folder/empty/torchvision/io.py"
export PYTHONPATH=$folder/empty
"$folder/venv/bin/python" -W ignore - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
import io
from importlib.metadata import version

import numpy as np
import onnx
import onnxruntime
import torch
from onnx2pytorch import ConvertModel
from torch import nn

print("onnx2pytorch", version("onnx2pytorch"), "torch", torch.__version__, "onnxruntime", onnxruntime.__version__)
torch.manual_seed(0)
TOKENS = WIDTH = 128


class Gate(nn.Module):
    """The gate of gMLP: a matrix over the tokens."""

    def __init__(self, left):
        super().__init__()
        self.norm, self.out, self.left = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH), left
        self.weight = nn.Parameter(torch.randn(TOKENS, TOKENS) / TOKENS**0.5)

    def forward(self, tokens):
        normed = self.norm(tokens)
        if self.left:
            mixed = self.weight @ normed
        else:
            mixed = (normed.transpose(1, 2) @ self.weight.T).transpose(1, 2)
        return self.out(tokens * mixed)


def both(model, tokens):
    """The model's own output, that of ONNX Runtime, and that of the converted model."""
    file = io.BytesIO()
    torch.onnx.export(model, (tokens,), file, dynamo=False, opset_version=17, input_names=["tokens"])
    onnx_model = onnx.load_from_string(file.getvalue())
    session = onnxruntime.InferenceSession(file.getvalue(), providers=["CPUExecutionProvider"])
    return model, lambda x: torch.from_numpy(session.run(None, {"tokens": x.numpy()})[0]), ConvertModel(onnx_model)


texts = torch.randn(2, TOKENS, WIDTH)
changed = texts.clone()
changed[:, -1] = torch.randn(2, WIDTH)
with torch.no_grad():
    for left in (True, False):
        model, runtime, converted = both(Gate(left).eval(), texts)
        want, right, got = model(texts), runtime(texts), converted(texts)
        size = want.abs().mean().item()
        off = [(one - want).abs().mean().item() / size for one in (right, got)]
        heard = [int(((one(changed) - one(texts)).abs().amax((0, 2)) > 1e-3).sum()) for one in (runtime, converted)]
        print(f"weight to the {'left' if left else 'right'}: ONNX Runtime is off by {off[0]:.1e} of the mean size, the"
              f" converted model by {off[1]:.1e}; the last token changes {heard[0]} and {heard[1]} tokens")
        assert off[0] < 1e-4 and heard[0] > 120
        assert (off[1] > 0.5 and heard[1] == 1) if left else (off[1] < 1e-4 and heard[1] > 120)

    # The single operators, against numpy.
    rng = np.random.default_rng(0)
    weight, x, bias = (rng.normal(size=shape).astype("f") for shape in ((8, 8), (8, 8), (8,)))
    for kind, inputs in (("MatMul", ["w", "x"]), ("MatMul", ["x", "w"]), ("Gemm", ["w", "x", "b"]),
                         ("Gemm", ["x", "w", "b"])):
        values = {"w": weight, "x": x, "b": bias}
        want = values[inputs[0]] @ values[inputs[1]] + (bias if kind == "Gemm" else 0)
        swapped = values[inputs[1]] @ values[inputs[0]] + (bias if kind == "Gemm" else 0)
        tensor = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [8, 8]) for name in "xy"]
        weights = [onnx.numpy_helper.from_array(values[name], name) for name in inputs if name != "x"]
        node = onnx.helper.make_node(kind, inputs, ["y"])
        graph = onnx.helper.make_graph([node], "g", tensor[:1], tensor[1:], weights)
        onnx_model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(onnx_model)
        got = ConvertModel(onnx_model)(torch.from_numpy(x)).numpy()
        print(f"{kind}({', '.join(inputs)}): right {np.allclose(got, want, atol=1e-4)}, the other way round"
              f" {np.allclose(got, swapped, atol=1e-4)}")
        assert np.allclose(got, swapped if inputs[0] == "w" else want, atol=1e-4) and np.abs(want - swapped).max() > 1
PYTHON
echo "as seen"
