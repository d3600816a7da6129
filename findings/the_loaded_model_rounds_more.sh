#!/usr/bin/env bash
# optimum-quanto 0.2.7: a model with quantised activations that is saved and loaded rounds outputs which calibration had
# left in float, so that its error is twice that of the model that was evaluated.
#
# quanto quantises weights and activations to 8 bits. Calibration(), run with some texts, finds the scales, and by
# streamline=True, the default, it switches off the rounding of outputs that an operation in float reads next. In an
# encoder with six layers of BERT's kind it is all 49, as they go to a sum, GELU, the attention or a mean. A forward
# hook is removed for that, and nothing else tells. The state_dict has the scales, and quantization_map the types.
# requantize makes a new model with all hooks, so each output is rounded. The logits are off by 2% of their spread in
# int8 before saving and by 4% after loading, and in float8 by 5% and 12%, with 27 and 63 of 1000 labels other than
# the original's. Weights and scales are equal, so a comparison of state dicts finds nothing, and with quantised weights
# alone the loaded model is the same to the last bit. The README shows these steps and says no word of it; no warning
# comes.
#
# Keep the names and switch the hooks off after loading, as below, or calibrate with streamline=False, which rounds more
# in both. Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check optimum-quanto==0.2.7 torch==2.13.0 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
import copy
from importlib.metadata import version

import torch
from optimum.quanto import Calibration, freeze, qfloat8, qint8, quantization_map, quantize, requantize
from optimum.quanto.nn import QModuleMixin
from safetensors.torch import load_file, save_file
from torch.nn import LayerNorm, Linear

print("optimum-quanto", version("optimum-quanto"), "torch", torch.__version__)
torch.set_num_threads(1)
torch.manual_seed(0)
SIZE, HEADS = 64, 4


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value, self.out = (Linear(SIZE, SIZE) for _ in range(4))
        self.inner, self.outer = Linear(SIZE, 4 * SIZE), Linear(4 * SIZE, SIZE)
        self.first, self.second = LayerNorm(SIZE), LayerNorm(SIZE)

    def forward(self, x):
        q, k, v = (f(x).unflatten(-1, (HEADS, -1)).transpose(1, 2) for f in (self.query, self.key, self.value))
        weights = (q @ k.transpose(-1, -2) / (SIZE // HEADS) ** 0.5).softmax(-1)
        x = self.first(x + self.out((weights @ v).transpose(1, 2).flatten(2)))
        return self.second(x + self.outer(torch.nn.functional.gelu(self.inner(x))))


class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(50, SIZE)
        self.layers = torch.nn.Sequential(*(Layer() for _ in range(6)))
        self.head = Linear(SIZE, 5)

    def forward(self, texts):
        return self.head(self.layers(self.words(texts)).mean(1))


def quantised(activations, streamline=True):
    model = copy.deepcopy(original)
    quantize(model, weights=qint8, activations=activations)
    if activations is not None:
        with Calibration(streamline=streamline):
            model(torch.randint(0, 50, (300, 12)))
    freeze(model)
    return model


def saved_and_loaded(model):
    save_file(model.state_dict(), "model.safetensors")
    loaded = Encoder().eval()
    requantize(loaded, load_file("model.safetensors"), quantization_map(model))
    saved = model.state_dict()
    assert all(torch.equal(tensor.float(), saved[name].float()) for name, tensor in loaded.state_dict().items())
    return loaded.eval()


def hooks(model):
    """The names of layers whose outputs are rounded."""
    return {name for name, layer in model.named_modules() if isinstance(layer, QModuleMixin)
            and "output" in layer._quantize_hooks and layer._quantize_hooks["output"].id in layer._forward_hooks}


def off(found):
    return ((found - right).norm() / (right - right.mean(0)).norm()).item()


original = Encoder().eval()
texts = torch.randint(0, 50, (1000, 12))
with torch.no_grad():
    right = original(texts)
    for name, activations, streamline in (("none", None, True), ("int8", qint8, True), ("float8", qfloat8, True),
                                          ("int8, streamline=False", qint8, False)):
        model = quantised(activations, streamline)
        loaded = saved_and_loaded(model)
        before, after = model(texts), loaded(texts)
        others = [(each.argmax(1) != right.argmax(1)).sum().item() for each in (before, after)]
        print(f"activations {name}: off by {off(before):.4f} before saving, {off(after):.4f} after loading; rounded "
              f"outputs {len(hooks(model))} and {len(hooks(loaded))}; other labels {others[0]} and {others[1]} of 1000")
        if activations is None or not streamline:
            assert torch.equal(before, after)
            continue
        assert not hooks(model) and len(hooks(loaded)) == 49
        assert off(after) > 1.7 * off(before) and others[0] < others[1]
        for layer in hooks(loaded) - hooks(model):
            loaded.get_submodule(layer).disable_output_quantization()
        print(f"    with the hooks switched off: {off(loaded(texts)):.4f}")
        assert torch.equal(loaded(texts), before)
PYTHON
echo "as seen"
