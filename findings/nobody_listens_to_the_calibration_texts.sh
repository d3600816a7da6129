#!/usr/bin/env bash
# Keras 3.15.1: model.quantize with GPTQ or AWQ never sees the calibration texts, so both only round the weights to the
# nearest number.
#
# Both choose 4-bit weights by the inputs that a layer gets from calibration texts: GPTQ lets later weights make up for
# the rounding of earlier ones, AWQ stretches the features that are large. Keras replaces each layer's call
# by a function that notes the inputs, and runs the texts through the model. But the layers have been given their new
# dtype policy before, and such a layer runs quantized_call in place of call. So nothing is noted. GPTQ takes
# features without inputs for dead ones, AWQ for ones of size 1, and neither says so. A long run with a progress
# bar ends with weights that are equal to the last bit for any texts, and equal for GPTQ and AWQ. Here the squared
# error of the outputs is four times what GPTQ has when it hears the texts. Whoever compares the two methods, or texts
# and settings for them, compares rounding with itself. All backends share this code. The repository has been mended
# since (keras-team/keras pull request 23512), while no release has been.
#
# Let layers run call while something listens, as at the end below. Seen in November 2026 with Python 3.11. The script
# fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    keras==3.15.1 jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
KERAS_BACKEND=jax "$folder/venv/bin/python" - <<'PYTHON' 2>"$folder/log" || { cat "$folder/log"; exit 1; }
import warnings

import keras
import numpy as np
from keras import layers
from keras.quantizers import AWQConfig, GPTQConfig

warnings.simplefilter("ignore")
print("keras", keras.__version__)
keras.config.disable_interactive_logging()
VOCABULARY, SIZE, LENGTH = 200, 32, 16
rng = np.random.default_rng(0)
# Words whose features depend on each other, two of them 30 times as large, as those of trained encoders.
WORDS = rng.standard_normal((VOCABULARY, 6)) @ rng.standard_normal((6, SIZE)) / 3
WORDS += 0.1 * rng.standard_normal(WORDS.shape)
WORDS[:, :2] *= 30
TEXTS = rng.integers(0, VOCABULARY, (24, LENGTH))
ONE_WORD = np.zeros_like(TEXTS)


def quantised(config, texts):
    """The error that rounding brings to the outputs for TEXTS, relative, and the two layers as arrays."""
    keras.utils.set_random_seed(0)
    embedding = layers.Embedding(VOCABULARY, SIZE)
    block = keras.Sequential([layers.Dense(2 * SIZE, activation="gelu"), layers.Dense(SIZE)])
    ids = keras.Input((LENGTH,), dtype="int32")
    model = keras.Model(ids, block(embedding(ids)))
    embedding.set_weights([WORDS])
    before = model.predict(TEXTS, verbose=0)
    model.quantize(config=config(
        dataset=[texts], tokenizer=lambda text: text, num_samples=24, sequence_length=LENGTH, group_size=32,
        quantization_layer_structure={"pre_block_layers": [embedding], "sequential_blocks": [block]}),
                   mode={GPTQConfig: "gptq", AWQConfig: "awq"}[config])
    error = np.square(model.predict(TEXTS, verbose=0) - before).mean() / np.square(before).mean()
    return error, [np.asarray(getattr(layer, name)) for layer in block.layers
                   for name in ("quantized_kernel", "kernel_scale", "kernel_zero")]


def equal(results):
    return all(np.array_equal(*pair) for other in results[1:] for pair in zip(results[0][1], other[1], strict=True))


deaf = {(config, name): quantised(config, texts) for config in (GPTQConfig, AWQConfig)
        for name, texts in (("texts", TEXTS), ("one word", ONE_WORD))}
print("as it is: all four models equal to the last bit:", equal(list(deaf.values())))
for (config, name), (error, _) in deaf.items():
    print(f"    {config.__name__} with {name}: error {error:.5f}")
assert equal(list(deaf.values())), "otherwise than seen"

run = layers.Dense.quantized_call
layers.Dense.quantized_call = lambda layer, *inputs, **options: (
    layer.call if layer.call.__name__ == "hook" else run.__get__(layer))(*inputs, **options)
heard = {config: quantised(config, TEXTS) for config in (GPTQConfig, AWQConfig)}
for config, (error, _) in heard.items():
    print(f"with the texts heard: {config.__name__}: error {error:.5f}")
    assert not equal([heard[config], deaf[config, "texts"]])
    assert error < 0.8 * deaf[config, "texts"][0]
PYTHON
echo "as seen"
