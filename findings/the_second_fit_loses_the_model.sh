#!/usr/bin/env bash
# Keras 3.15.1 on JAX: after a fit with use_ema=True a model that was evaluated can't be saved, and the next fit loses
# its weights.
#
# With use_ema=True the optimizer keeps a moving average of the weights, and at its end fit puts the average into the
# model. On JAX that is no copy: weight and average are one array then. evaluate and predict donate the memory of the
# weights to their result, which spares copies, and give the model new ones. The average stays behind with an array
# that is deleted, so save and save_weights, of all things after the evaluation, end in "Array has been deleted". A
# training step donates weights and average at once, XLA refuses to be given one buffer twice, and by then the model
# has let go of all its arrays. fit ends in "TypeError: 'NoneType' object is not callable" from Variable.value, far
# from the cause, and so do get_weights, predict and save after it: the model that was trained, and evaluated well,
# can neither be used nor stored. It is so with SGD, Adam and AdamW, with ema_overwrite_frequency or without.
# train_on_batch after fit stops too, but leaves the weights. Whoever trains in several fits, as with more data, with
# layers unfrozen or from a notebook's cell that runs again, loses the first training. Without an average all of it
# works.
#
# Save the model right after fit, and evaluate and train what load_model returns. Seen in November 2026 with Python
# 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    keras==3.15.1 jax==0.10.2 jaxlib==0.10.2 ml_dtypes==0.6.0 numpy==2.4.6
cd "$folder"
export JAX_PLATFORMS=cpu KERAS_BACKEND=jax
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
import keras
import numpy as np

print("keras", keras.__version__, "backend", keras.backend.backend())
rng = np.random.default_rng(0)
x = rng.normal(size=(256, 8)).astype("float32")
y = x.sum(1, keepdims=True)


def build(optimizer, **options):
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)])
    model.compile(getattr(keras.optimizers, optimizer)(0.05, **options), "mse")
    return model


def fit(model):
    model.fit(x, y, batch_size=16, epochs=3, verbose=0)


def error(action):
    try:
        action()
    except Exception as problem:
        return f"{type(problem).__name__}: {problem}"
    return None


for optimizer, options in (("SGD", {}), ("SGD", {"use_ema": True}), ("Adam", {"use_ema": True}),
                           ("AdamW", {"use_ema": True, "ema_momentum": 0.9}),
                           ("Adam", {"use_ema": True, "ema_overwrite_frequency": 5})):
    lost = bool(options)
    model = build(optimizer, **options)
    fit(model)
    averages = getattr(model.optimizer, "_model_variables_moving_average", [])
    assert [v.value is mean.value for v, mean in zip(model.trainable_variables, averages)] == [True] * (2 * lost)
    model.save("first.keras")
    before = model.evaluate(x, y, verbose=0)
    saved = [error(lambda: model.save("second.keras")), error(lambda: model.save_weights("second.weights.h5"))]
    print(f"{optimizer} with {options}: loss {before:.3f} after the first fit, saving after evaluate: {saved[0]}")
    assert error(model.get_weights) is None
    assert all((problem or "").startswith("RuntimeError: Array has been deleted") == lost for problem in saved)
    second = error(lambda: fit(model))
    others = {"get_weights": error(model.get_weights), "predict": error(lambda: model.predict(x, verbose=0)),
              "save": error(lambda: model.save("second.keras"))}
    print("    the second fit:", second, "and then", others)
    assert second == ("TypeError: 'NoneType' object is not callable" if lost else None)
    assert all(problem == second for problem in others.values())
    loaded = keras.models.load_model("first.keras")
    assert error(lambda: fit(loaded)) is None and loaded.evaluate(x, y, verbose=0) < 2 * before + 0.01

for action in (lambda: model.evaluate(x, y, verbose=0), lambda: model.predict(x, verbose=0)):
    model = build("Adam", use_ema=True)
    fit(model)
    action()
    assert error(lambda: model.save("third.keras")).startswith("RuntimeError: Array has been deleted")
model = build("Adam", use_ema=True)
fit(model)
assert "donate the same buffer twice" in error(lambda: model.train_on_batch(x, y))
assert error(model.get_weights) is None
print("after predict it can't be saved either, and train_on_batch stops without a loss")
PYTHON
echo "as seen"
