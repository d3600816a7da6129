#!/usr/bin/env bash
# onnxruntime 1.32.0 refuses the padding mask of BERT in ONNX's Attention, unless it is copied for each query.
#
# Since opset 23 ONNX has one operation for attention. Its mask may have any shape that broadcasts to texts,
# heads, queries, keys. Padding is the same for all heads and queries, so its mask has the shape (texts, 1, 1,
# keys), as in most exported encoders. The model passes onnx's full check, and onnxruntime loads it. The first run
# ends in "inconsistent q_sequence_length (between attn_mask and Q)", which names no shape and blames the queries.
# Only a text of one token passes. Masks that broadcast over texts or heads are taken. onnx's own
# ReferenceEvaluator computes the mask as specified, and the outputs of the copied mask are equal to it, so
# whoever tests an export by that learns of it in service.
#
# Expand the mask to (texts, 1, queries, keys) in the graph. Seen in November 2026 with Python 3.11. The script fails
# if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check onnxruntime==1.32.0 onnx==1.23.2 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

print("onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__)
onnxruntime.set_default_logger_severity(4)
rng = np.random.default_rng(0)
TEXTS, HEADS, TOKENS, SIZE = 2, 3, 5, 4


def run(mask, opset):
    """Whether onnxruntime takes the mask; outputs are compared with onnx's and with the formula."""
    tokens = mask.shape[-1]
    feeds = {name: rng.normal(size=(TEXTS, HEADS, tokens, SIZE)).astype("float32") for name in "QKV"}
    feeds["mask"] = mask
    types = dict.fromkeys("QKV", TensorProto.FLOAT) | {"mask": TensorProto.BOOL}
    graph = helper.make_graph(
        [helper.make_node("Attention", list(feeds), ["Y"])], "attention",
        [helper.make_tensor_value_info(name, types[name], value.shape) for name, value in feeds.items()],
        [helper.make_tensor_value_info("Y", TensorProto.FLOAT, (TEXTS, HEADS, tokens, SIZE))])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=11)
    onnx.checker.check_model(model, full_check=True)
    scores = np.where(mask, feeds["Q"] @ feeds["K"].swapaxes(2, 3) / SIZE ** 0.5, -1e30)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    formula = weights / weights.sum(-1, keepdims=True) @ feeds["V"]
    reference = ReferenceEvaluator(model).run(None, feeds)[0]
    assert np.allclose(reference, formula, atol=1e-5), "onnx does not broadcast the mask"
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    try:
        outputs = session.run(None, feeds)[0]
    except Exception as error:
        assert "inconsistent q_sequence_length (between attn_mask and Q)" in str(error), error
        print(f"opset {opset}, mask {mask.shape}: refused")
        return False
    assert np.allclose(outputs, formula, atol=1e-5), "other outputs"
    print(f"opset {opset}, mask {mask.shape}: right")
    return True


schema = onnx.defs.get_schema("Attention", 23, "")
print(*(" ".join(put.description.split()) for put in schema.inputs if put.name == "attn_mask"))
padding = np.ones((TEXTS, 1, 1, TOKENS), bool)
padding[1, ..., 3:] = False         # the second text has 3 tokens
for opset in (23, 24):
    assert not run(padding, opset), "the mask is accepted now"
    assert run(padding.repeat(TOKENS, 2), opset), "the copied mask is refused too"
    assert run(padding[1, 0].repeat(TOKENS, 0), opset), "one mask for all texts is refused too"
    assert run(padding[..., :1], opset), "one token is refused too"
PYTHON
echo "as seen"
