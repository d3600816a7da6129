#!/usr/bin/env bash
# Keras 3.15.1: with gradient_accumulation_steps=n the moving average of the weights moves at each batch, not at each
# update, so that it is over an nth of the updates that it should be, and overwriting hits batches without an update.
#
# An optimizer with use_ema=True keeps an average of the weights, ema_momentum * average + (1 - ema_momentum) *
# weights after each step. With gradient_accumulation_steps "model & optimizer variables will not be updated at every
# step", says the documentation, so that four batches of 8 do what one of 32 does. Without an average they do: the
# weights are the same. The average is one of the optimizer's variables, and apply moves it at each call all the same,
# n times with each value of the weights, so ema_momentum=0.9 acts as 0.9 ** 4 = 0.656. With 0.97 and 8 steps the
# average is over some 4 updates in place of 33, and its variance around the best weights is 5 times as large where
# gradients are noisy. model.fit ends with the average in the model, and so with other weights for 8 batches of 8 than
# for one of 64. ema_overwrite_frequency asks the number of updates whether it is time, which stays the same for n
# batches: with 3 the weights are overwritten at four batches in a row, the first of them right after update 2, while
# gradients for update 3 are just being gathered. No warning comes.
#
# Take ema_momentum ** (1 / n), which is nearly the same, and don't overwrite. Seen in November 2026 with Python 3.11.
# The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    keras==3.15.1 torch==2.13.0 numpy==2.4.6
KERAS_BACKEND=torch "$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
import keras
import numpy as np
import torch

print("keras", keras.__version__, "backend", keras.backend.backend(), torch.__version__)
torch.set_num_threads(1)


def average(optimizer):
    return np.concatenate([v.numpy().ravel() for v in optimizer._model_variables_moving_average])


def climb(steps, updates, **options):
    """Weights and averages after each batch, for a gradient of -1."""
    weight = keras.Variable(np.zeros(1, "float32"))
    optimizer = keras.optimizers.SGD(1.0, use_ema=True, gradient_accumulation_steps=steps, **options)
    optimizer.build([weight])
    found = []
    for _ in range(updates * (steps or 1)):
        optimizer.apply([-torch.ones(1)], [weight])
        found.append((weight.numpy()[0], average(optimizer)[0]))
    return np.array(found)


plain, gathered = climb(None, 10, ema_momentum=0.9), climb(4, 10, ema_momentum=0.9)
assert np.array_equal(plain[:, 0], gathered[3::4, 0])
expected, moved = plain[0, 1], gathered[3, 1]
for weight in range(2, 11):
    expected = 0.9 * expected + 0.1 * weight
    moved = 0.9 ** 3 * moved + (1 - 0.9 ** 3) * (weight - 1)
    moved = 0.9 * moved + 0.1 * weight
    assert abs(plain[weight - 1, 1] - expected) < 1e-5 and abs(gathered[4 * weight - 1, 1] - moved) < 1e-5
print(f"after 10 updates the average is {plain[-1, 1]:.3f}, with 4 steps per update {gathered[-1, 1]:.3f}")
near = climb(4, 10, ema_momentum=0.9 ** 0.25)[-1, 1]
print(f"with the fourth root of the momentum it is {near:.3f}")
assert abs(gathered[-1, 1] - plain[-1, 1]) > 2 and abs(near - plain[-1, 1]) < 0.5

plain = climb(None, 6, ema_momentum=0.9, ema_overwrite_frequency=3)
gathered = climb(4, 6, ema_momentum=0.9, ema_overwrite_frequency=3)
print("weights after each of 12 batches", np.round(gathered[:12, 0], 2))
assert [update for update in range(1, 7) if plain[update - 1, 0] == plain[update - 1, 1] and update > 1] == [3, 6]
changed = [batch for batch in range(2, 25) if batch % 4 and gathered[batch - 1, 0] != gathered[batch - 2, 0]]
print("weights change without an update at the batches", changed)
assert changed[0] == 9 and np.array_equal(gathered[8:12, 0], gathered[8:12, 1])

rng = np.random.default_rng(0)
NOISE = rng.normal(size=(300, 64)).astype("float32")


def wander(steps, momentum):
    """The variance of the averages around the best weights, from update 100 on, with gradients that are noisy."""
    weight = keras.Variable(np.ones(64, "float32"))
    optimizer = keras.optimizers.SGD(0.3, use_ema=True, ema_momentum=momentum, gradient_accumulation_steps=steps)
    optimizer.build([weight])
    errors = []
    for noise in NOISE:
        gradient = torch.tensor(weight.numpy() - 1 + noise)
        for _ in range(steps or 1):
            optimizer.apply([gradient], [weight])
        errors.append(np.square(average(optimizer) - 1).mean())
    return weight.numpy(), np.mean(errors[100:])


large, small, rooted = wander(None, 0.97), wander(8, 0.97), wander(8, 0.97 ** (1 / 8))
print(f"variance of the average {large[1]:.4f}, with 8 steps per update {small[1]:.4f}, with the root {rooted[1]:.4f}")
assert np.allclose(large[0], small[0], atol=1e-5)
assert small[1] > 4 * large[1] and abs(rooted[1] / large[1] - 1) < 0.1

x = rng.normal(size=(64 * 50, 8)).astype("float32")
y = (x.sum(1, keepdims=True) + rng.normal(size=(len(x), 1))).astype("float32")


def fit(batch, steps, **options):
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")])
    optimizer = keras.optimizers.SGD(0.01, gradient_accumulation_steps=steps, **options)
    model.compile(optimizer=optimizer, loss="mse")
    model.fit(x, y, batch_size=batch, shuffle=False, verbose=0)
    return model.get_weights()[0].ravel()


for options, equal in (({}, True), ({"use_ema": True, "ema_momentum": 0.95}, False)):
    one, other = fit(64, None, **options), fit(8, 8, **options)
    print(f"fit with {options}: weights {one.mean():.3f} with batches of 64, {other.mean():.3f} with 8 times 8")
    assert np.allclose(one, other, atol=1e-4) == equal
PYTHON
echo "as seen"
