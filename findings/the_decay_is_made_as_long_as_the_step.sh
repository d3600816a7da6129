#!/usr/bin/env bash
# mlx 0.32.4: Muon makes its weight decay orthogonal together with the gradient. With small gradients the default decay
# of 0.01 takes the step for itself, and the weights go to zero.
#
# Muon puts an orthogonal matrix in place of each gradient, so that the step has the same length for all gradients. The
# original takes the decay from the weights beside that, as AdamW does, 0.01 of the learning rate at a time. The Muon of
# mlx, which "follows the original implementation" by its page, adds 0.01 of the weights to the gradient before, and the
# sum is brought to its full length. Where gradients are smaller than a hundredth of the weights, the step is above all
# a step towards zero. BERT-base clips its gradient of 110 million numbers to the length 1, so that they are 0.0001 in
# the root mean square, and a hundredth of its first weights is 0.0002. Such a step has a cosine of 0.73 with minus the
# weights here and of 0.35 with minus the gradient; with the decay beside it, 0.00 and 0.82. A layer of 32 x 32 that
# learns a linear map comes to a mean squared error of 0.0052 in 400 steps, from 0.27. With a hundredth of that error as
# its loss it ends at 0.23, with small weights, as if it had not learnt. By the formula it comes below 1e-7 with each.
# The page calls the argument an L2 penalty; no warning comes.
#
# Set weight_decay=0, and shrink the weights after update where decay is wanted. Seen in November 2026 with Python 3.11,
# on the CPU. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check mlx==0.32.4 mlx-cpu==0.32.4 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np

print("mlx", mx.__version__)
random = np.random.default_rng(0)


def orthogonal(x):
    x = x / (np.linalg.norm(x) + 1e-7)
    for _ in range(5):
        square = x @ x.T
        x = 3.4445 * x + (-4.7750 * square + 2.0315 * square @ square) @ x
    return x


def cosine(x, y):
    return float((x * y).sum() / np.linalg.norm(x) / np.linalg.norm(y))


weights = (random.normal(size=(256, 256)) * 0.02).astype("float32")
gradient = random.normal(size=(256, 256)).astype("float32") / 110e6 ** 0.5
print(f"root mean squares: gradient {gradient.std():.5f}, a hundredth of the weights {0.01 * weights.std():.5f}")
for decay in (0.01, 0.0):
    moved = optim.Muon(0.02, weight_decay=decay).apply_gradients({"w": mx.array(gradient)}, {"w": mx.array(weights)})
    step = np.array(moved["w"]) - weights
    to_zero, downhill = cosine(step, -weights), cosine(step, -gradient)
    print(f"decay {decay}: length {np.linalg.norm(step):.2f}, cosine {to_zero:.2f} with minus the weights,",
          f"{downhill:.2f} with minus the gradient")
    assert abs(to_zero - (0.73 if decay else 0)) < 0.02 and abs(downhill - (0.35 if decay else 0.82)) < 0.02
step = -0.02 * orthogonal(gradient) - 0.02 * 0.01 * weights
print(f"the formula, decay 0.01: length {np.linalg.norm(step):.2f}, {cosine(step, -weights):.2f},",
      f"{cosine(step, -gradient):.2f}")
assert abs(cosine(step, -weights)) < 0.02 and abs(cosine(step, -gradient) - 0.82) < 0.02

SIZE, STEPS, RATE = 32, 400, 0.02
X = random.normal(size=(512, SIZE)).astype("float32")
Y = X @ (random.normal(size=(SIZE, SIZE)) * 0.5 / SIZE ** 0.5).astype("float32")
START = (random.normal(size=(SIZE, SIZE)) * 0.02).astype("float32")


def error(weights):
    return float(((X @ weights.T - Y) ** 2).mean())


def train(scale, **options):
    layer = nn.Linear(SIZE, SIZE, bias=False)
    layer.weight = mx.array(START)
    x, y = mx.array(X), mx.array(Y)
    gradients = nn.value_and_grad(layer, lambda layer: scale * (layer(x) - y).square().mean())
    optimizer = optim.Muon(optim.linear_schedule(RATE, 0, STEPS), **options)
    for _ in range(STEPS):
        optimizer.update(layer, gradients(layer)[1])
        mx.eval(layer.parameters(), optimizer.state)
    return np.array(layer.weight)


def by_formula(scale, decay=0.01):
    weights, momentum = START.astype("float64"), 0
    for step in range(STEPS):
        gradient = scale * 2 * (X @ weights.T - Y).T @ X / Y.size
        momentum = 0.95 * momentum + 0.05 * gradient
        rate = RATE * (1 - step / STEPS)
        weights = weights * (1 - rate * decay) - rate * orthogonal(0.05 * gradient + 0.95 * momentum)
    return weights


print(f"error at the start {error(START):.4f}, of weights of zero {error(0 * START):.4f}")
for scale, seen in ((1, 0.0052), (0.1, 0.096), (0.01, 0.226)):
    learnt, without, right = train(scale), train(scale, weight_decay=0.0), by_formula(scale)
    print(f"loss times {scale}: error {error(learnt):.4f}, weights of the length {np.linalg.norm(learnt):.2f};",
          f"without decay {error(without):.1e}; by the formula {error(right):.1e}, {np.linalg.norm(right):.2f}")
    assert abs(error(learnt) / seen - 1) < 0.1 and error(without) < 1e-7 and error(right) < 1e-7
assert np.linalg.norm(learnt) < 0.1 * np.linalg.norm(right)
PYTHON
echo "as seen"
