#!/usr/bin/env bash
# Keras 3.15.1: under the dtype policy "bfloat16", Adam, AdamW and Lamb change no weight, and Nadam makes
# all of them NaN.
#
# The policy is documented as one type for computation and variables, and KerasHub's from_preset takes
# dtype="bfloat16". Adam's bias correction is computed in the type of the variable. The default beta_2,
# 0.999, is 1.0 in bfloat16, so 1 - beta_2 ** step is 0 and each step is multiplied by its root. fit
# reports the loss of the untrained model after every epoch, which looks like a learning rate that is
# too small. SGD, RMSprop and Lion learn with the same policy, and so does Adam in float16. The weights
# are the same to the last bit on JAX and on TensorFlow.
#
# Use "mixed_bfloat16", whose variables are float32, or beta_2=0.99, which stays below 1. Seen in
# November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    keras==3.15.1 jax==0.10.2 jaxlib==0.10.2 ml_dtypes==0.6.0 numpy==2.4.6
JAX_PLATFORMS=cpu KERAS_BACKEND=jax "$folder/venv/bin/python" - <<'PYTHON'
import keras
import numpy as np

print("keras", keras.__version__, "backend", keras.backend.backend())


def steps(dtype, name, **options):
    """A number of 1 after ten steps of 0.01 against a gradient of 1."""
    variable = keras.Variable(np.ones(4), dtype=dtype)
    optimizer = getattr(keras.optimizers, name)(0.01, **options)
    for _ in range(10):
        optimizer.apply([keras.ops.ones((4,), dtype)], [variable])
    value = float(variable.numpy()[0])
    print(f"{dtype:<9} {name:<8} {options or ''} 1 -> {value:.4f}")
    return value


for name in ("Adam", "Lamb"):
    assert steps("bfloat16", name) == 1, f"{name} learns now"
assert np.isnan(steps("bfloat16", "Nadam")), "Nadam gives a number now"
for dtype, name, options in (("bfloat16", "SGD", {}), ("bfloat16", "RMSprop", {}), ("bfloat16", "Lion", {}),
                             ("bfloat16", "Adam", {"beta_2": 0.99}), ("float16", "Adam", {}),
                             ("float32", "Adam", {})):
    assert steps(dtype, name, **options) < 0.95, "this one does not learn either"

features = np.random.default_rng(0).normal(size=(32, 4)).astype("float32")
for policy, learns in (("bfloat16", False), ("mixed_bfloat16", True)):
    keras.config.set_dtype_policy(policy)
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1, kernel_initializer="ones")])
    model.compile("adamw", "mse")
    before = model.get_weights()
    losses = model.fit(features, features[:, :1], batch_size=8, epochs=3, verbose=0, shuffle=False).history["loss"]
    changed = any(np.any(new != old) for new, old in zip(model.get_weights(), before))
    print(f"fit with AdamW, {policy}: losses", [round(float(loss), 4) for loss in losses], "weights change:", changed)
    assert changed == learns and (losses[2] < losses[0]) == learns, "another result than seen"
PYTHON
echo "as seen"
