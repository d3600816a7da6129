#!/usr/bin/env bash
# onnxruntime 1.32.0: onnxruntime.transformers.optimizer fuses the embeddings of a model whose positions begin at 2, and
# the fused model begins at 0.
#
# A model of BERT's kind keeps a row of position ids and takes as many of them as the text has tokens. The optimiser
# finds that in an exported model, and puts one EmbedLayerNormalization in the place of the embeddings. It checks
# the shape of the row but not the numbers, and the fused operation counts from 0 by itself. RoBERTa's position
# table has 0 and 1 for padding, and a text begins at 2. If the ids are such a row, each token gets the vector of
# a place two before its own, and the first two get the untrained ones. A row that counts down, for texts that
# are read from the end, is ignored too. Outputs look plausible, the statistics show the fusion, and no warning
# comes. If the positions are computed from the words, as transformers exports RoBERTa, all is right.
#
# Cut the unused rows off the table before the export. Seen in November 2026 with Python 3.11. The script fails if this
# changes.
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
TOKENS, SIZE, PLACES = 6, 16, 32
rng = np.random.default_rng(0)
WORDS, KINDS, TABLE = (rng.normal(size=(rows, SIZE)).astype("f") for rows in (50, 2, PLACES))
KERNELS = {name: np.eye(SIZE, dtype="f") for name in ("query", "key", "value")}


def embedder(row):
    """Embeddings of words and segments [texts, tokens], with this row of position ids, and a stand-in for attention."""
    def node(operation, inputs, output, **attributes):
        nodes.append(helper.make_node(operation, inputs.split(), [output], name=output, **attributes))

    nodes = []
    constants = {**KERNELS, "words": WORDS, "kinds": KINDS, "table": TABLE, "row": np.array(row)[None],
                 "gamma": np.ones(SIZE, "f"), "beta": np.zeros(SIZE, "f"), "second": np.array(1),
                 "zero": np.array([0]), "one": np.array([1])}
    node("Gather", "words ids", "word_vectors")
    node("Gather", "kinds segments", "kind_vectors")
    node("Add", "word_vectors kind_vectors", "both_vectors")
    node("Shape", "ids", "shape")
    node("Gather", "shape second", "length_number")
    node("Unsqueeze", "length_number zero", "length")
    node("Slice", "row zero length one", "places")
    node("Gather", "table places", "place_vectors")
    node("Add", "both_vectors place_vectors", "sums")
    node("LayerNormalization", "sums gamma beta", "embedded", epsilon=1e-12)
    for name in KERNELS:
        node("MatMul", f"embedded {name}", f"{name}_vectors")
    node("Sum", "query_vectors key_vectors value_vectors", "attended")
    node("Add", "attended embedded", "output")
    graph = helper.make_graph(
        nodes, "embedder",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["texts", "tokens"]) for name in ("ids", "segments")],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, ["texts", "tokens", SIZE])],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, "model.onnx")


FEED = {"ids": rng.integers(0, 50, (3, TOKENS)), "segments": rng.integers(0, 2, (3, TOKENS))}


def run(path):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    types = {"tensor(int32)": "int32", "tensor(int64)": "int64"}
    return session.run(None, {port.name: FEED[port.name].astype(types[port.type])
                              for port in session.get_inputs()})[0]


def fuse(row):
    """The outputs before and after the fusion, and the number of fused embeddings."""
    embedder(row)
    fused = optimizer.optimize_model("model.onnx", model_type="bert", num_heads=4, hidden_size=SIZE, opt_level=0)
    fused.save_model_to_file("fused.onnx")
    count = collections.Counter(node.op_type for node in onnx.load("fused.onnx").graph.node)
    return run("model.onnx"), run("fused.onnx"), count["EmbedLayerNormalization"]


from_zero, fused, count = fuse(range(24))
print(f"positions from 0: {count} fused, differ by {np.abs(from_zero - fused).max():.4f}")
assert count == 1 and np.allclose(from_zero, fused, atol=1e-4)
for name, row in (("from 2", range(2, 26)), ("from 23 down", range(23, -1, -1))):
    before, fused, count = fuse(row)
    print(f"positions {name}: {count} fused, differ by {np.abs(before - fused).max():.4f},",
          f"from positions from 0 by {np.abs(from_zero - fused).max():.6f}")
    assert count == 1 and np.abs(before - fused).max() > 0.5, "otherwise than seen"
    assert np.allclose(from_zero, fused, atol=1e-4), "the fused model does not count from 0"
PYTHON
echo "as seen"
