#!/usr/bin/env bash
# Keras 3.15.1: SwapEMAWeights does not put the weights back after predict, so each second predict takes the weights
# that are not averaged; with swap_on_epoch, a run that EarlyStopping ends keeps these.
#
# An optimizer with use_ema=True keeps an average of the weights, which SwapEMAWeights exchanges with the model's for
# evaluation and prediction. on_predict_end asks for the opposite of what on_test_end asks for, and never swaps back.
# After model.predict(texts, callbacks=[SwapEMAWeights()]) the average is in the model and the
# trained weights are in the optimizer. The next such call, and evaluate with such a callback, exchanges them again:
# predictions alternate between two models. Training goes on from the average, with the weights as its average, and a
# saved model has them the wrong way round. With swap_on_epoch=True, as documented for ModelCheckpoint, the last
# of the planned epochs is told apart, because fit writes the average into the model at its end. If EarlyStopping ends
# the run in another epoch, the two are exchanged at that time, so fit writes the trained weights: the model that comes
# out of fit is not the one that was validated and saved. Without the callback, fit returns the average in
# both cases. No warning comes. The code is Keras's own, for all backends.
#
# Write the average into the model by optimizer.finalize_variable_values(model.trainable_variables) before predict,
# and load the last checkpoint after EarlyStopping. Seen in November 2026 with Python 3.11. The script fails if this
# changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    keras==3.15.1 jax==0.10.2 jaxlib==0.10.2 ml_dtypes==0.6.0 numpy==2.4.6
cd "$folder"
JAX_PLATFORMS=cpu KERAS_BACKEND=jax "$folder/venv/bin/python" -W ignore - <<'PYTHON'
import keras
import numpy as np
from keras.callbacks import EarlyStopping, ModelCheckpoint, SwapEMAWeights

print("keras", keras.__version__)
INPUTS = np.ones((10, 1), "float32")
TARGETS = 10 * INPUTS


def train(*callbacks, epochs=4):
    """One weight, which goes from 0 to 10; its average follows later."""
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")])
    model.compile(keras.optimizers.SGD(0.01, use_ema=True, ema_momentum=0.95), loss="mse")
    model.fit(INPUTS, TARGETS, batch_size=1, epochs=epochs, verbose=0, validation_data=(INPUTS, TARGETS),
              callbacks=list(callbacks))
    return model


def weights(model):
    """The model's weight, and the optimizer's average."""
    return tuple(round(float(value[0, 0]), 3) for value in (
        model.get_weights()[0], np.array(model.optimizer._model_variables_moving_average[0])))


train(ModelCheckpoint("{epoch}.keras"))
trained, average = weights(keras.models.load_model("2.keras"))
print("weight in the checkpoint:", trained, "average:", average)
assert average < trained - 0.5

model, predictions = keras.models.load_model("2.keras"), []
for _ in range(4):
    predictions.append(round(float(model.predict(INPUTS[:1], verbose=0, callbacks=[SwapEMAWeights()])[0, 0]), 3))
    print("predict:", predictions[-1], "weight and average afterwards:", weights(model))
assert predictions == [average, trained] * 2, "predict puts the weights back"

for first in (None, "evaluate", "predict"):
    model = keras.models.load_model("2.keras")
    if first:
        arguments = (INPUTS,) if first == "predict" else (INPUTS, TARGETS)
        getattr(model, first)(*arguments, verbose=0, callbacks=[SwapEMAWeights()])
    loss = model.evaluate(INPUTS, TARGETS, verbose=0, callbacks=[SwapEMAWeights()])
    print(f"evaluate after {first}: the loss is that of the weight {10 - loss ** 0.5:.3f}")
    assert abs(10 - loss ** 0.5 - (trained if first == "predict" else average)) < 0.01, "other loss than seen"

model = keras.models.load_model("2.keras")
model.optimizer.finalize_variable_values(model.trainable_variables)
assert weights(model) == (average, average)

stop = EarlyStopping("val_loss", mode="max", patience=3)      # Stops after the fourth epoch.
results = {}
for name, callbacks, epochs in (
        ("4 epochs", [], 4), ("4 epochs, swap_on_epoch", [SwapEMAWeights(True), ModelCheckpoint("a.keras")], 4),
        ("stopped after 4", [stop], 9),
        ("stopped after 4, swap_on_epoch", [SwapEMAWeights(True), ModelCheckpoint("b.keras"), stop], 9)):
    model = train(*callbacks, epochs=epochs)
    results[name] = weights(model)[0]
    assert len(model.history.history["loss"]) == 4
    print(f"{name}: weight {results[name]}, its loss {model.evaluate(INPUTS, TARGETS, verbose=0):.3f}, "
          f"last validation loss {model.history.history['val_loss'][-1]:.3f}")
saved = [weights(keras.models.load_model(name))[0] for name in ("a.keras", "b.keras")]
print("weights in the last checkpoints:", saved)
*same, other = results.values()
assert {*same, *saved} == {same[0]} and other > same[0] + 0.3, "the stopped run has the average"
PYTHON
echo "as seen"
