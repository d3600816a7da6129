#!/usr/bin/env bash
# torch 2.13.0 with onnxscript 0.7.2: torch.onnx.export joins dropouts of the same vector into one, and draws
# torch.bernoulli with a constant rate once for all at the export.
#
# Monte Carlo dropout asks a classifier several times, each time with other numbers dropped, and takes the spread of the
# answers as its doubt. In one graph this is several dropouts of the vector of a text, exported in training mode.
# The exporter runs onnxscript's optimiser by default. It joins nodes of the same operation and inputs, and
# leaves out RandomUniform, RandomNormal and Multinomial, but not Dropout and Bernoulli. So all answers are one
# answer, and the spread is 0 for every text. It also computes what has constant inputs, and takes Bernoulli for such:
# noise that torch.bernoulli draws for a constant rate is drawn during the export and stored as a weight. The same
# numbers are dropped in each run, for each text, for ever. The exported model is valid, and a comparison with
# PyTorch shows differences in both cases anyway, as it is random.
#
# Pass optimize=False to torch.onnx.export. Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 onnxscript==0.7.2 onnx-ir==1.1.0 \
    onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON' 2>"$folder/log" || { cat "$folder/log"; exit 1; }
import collections

import numpy as np
import onnxruntime
import onnxscript
import torch

print("torch", torch.__version__, "onnxscript", onnxscript.__version__, "onnxruntime", onnxruntime.__version__)
SAMPLES, RUNS = 5, 10
VECTOR = torch.full((1, 64), 0.5)


class Dropout(torch.nn.Module):
    """The answers of a classifier to a vector, [SAMPLES, 1, 2], each with other numbers dropped."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.dropout = torch.nn.Dropout(0.5)
        self.classifier = torch.nn.Linear(64, 2)

    def forward(self, vector):
        return torch.stack([self.classifier(self.dropout(vector)) for _ in range(SAMPLES)])


class Bernoulli(Dropout):
    def forward(self, vector):
        rate = torch.full_like(vector, 0.5)
        return torch.stack([self.classifier(vector * torch.bernoulli(rate)) for _ in range(SAMPLES)])


def measure(answer):
    """The spread over the samples of a run, and how many of the runs have answers of their own."""
    runs = np.array([answer() for _ in range(RUNS)])
    return float(runs.std(1).min()), len(np.unique(runs.reshape(RUNS, -1).round(5), axis=0))


def exported(model, **options):
    graph = torch.onnx.export(model, (VECTOR,), dynamo=True, verbose=False, **options).model_proto
    session = onnxruntime.InferenceSession(
        graph.SerializeToString(), providers=["CPUExecutionProvider"],
        disabled_optimizers=["CommonSubexpressionElimination"])
    name = session.get_inputs()[0].name
    counts = collections.Counter(node.op_type for node in graph.graph.node)
    return *measure(lambda: session.run(None, {name: VECTOR.numpy()})[0]), counts


for kind in (Dropout, Bernoulli):
    model = kind().train()
    with torch.no_grad():
        spread, runs = measure(lambda: model(VECTOR).numpy())
    print(f"{kind.__name__} in torch: spread {spread:.4f}, {runs} different runs of {RUNS}")
    assert spread > 1e-3 and runs == RUNS
    for options in ({}, {"optimize": False}):
        spread, runs, counts = exported(model, **options)
        nodes = counts[kind.__name__]
        print(f"{kind.__name__} exported {options}: {nodes} nodes of it, spread {spread:.4f}, {runs} different runs")
        seen = {"Dropout": (1, False, RUNS), "Bernoulli": (0, True, 1)}[kind.__name__]
        if options:
            seen = SAMPLES, True, RUNS
        assert (nodes, spread > 1e-3, runs) == seen, "otherwise than seen"
PYTHON
echo "as seen"
