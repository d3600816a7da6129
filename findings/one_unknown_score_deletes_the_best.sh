#!/usr/bin/env bash
# orbax-checkpoint 0.12.8: one metric with NaN makes CheckpointManager delete the best checkpoint and keep worse ones.
#
# With best_fn and max_to_keep=n the manager keeps the n checkpoints with the best metric. It sorts them by the
# number that best_fn returns. NaN is neither smaller nor larger than any number, so Python's sort does not move
# checkpoints past it: those before and after a NaN are in order among themselves only, and the last n of the list are
# taken for the best. An early evaluation is often NaN: the correlation or Matthews' coefficient of constant
# predictions, the precision of a class that is not predicted, a loss that overflows once. From there on the newest
# ones are kept: after the scores 0.5, 0.9, NaN, 0.6, 0.7 the 0.9 is deleted with max_to_keep 1, 2 and 3, and
# best_step is the 0.7. With a NaN among 8 random scores the best is lost in 9 of 10 runs for max_to_keep=1 and 8 for 2.
# It is gone from the disk. The NaN itself need not be kept for that, and the policy BestN does the same. The
# metrics of each checkpoint are stored as given, and no warning comes.
#
# Let best_fn return -inf (or inf for best_mode="min") for NaN. Seen in November 2026 with Python 3.11. The script
# fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    orbax-checkpoint==0.12.8 jax==0.10.2 jaxlib==0.10.2 ml_dtypes==0.6.0 numpy==2.4.6
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - "$folder" 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
import logging
import sys
import tempfile

import numpy as np
import orbax.checkpoint as ocp
from orbax.checkpoint.checkpoint_managers import BestN

NAN, logged = float("nan"), []
logging.getLogger("absl").addFilter(lambda line: line.levelno < logging.WARNING or logged.append(line.getMessage()))
print("orbax-checkpoint", ocp.__version__)


def kept(scores, keep, mode="max", score=lambda metrics: metrics["score"], policy=False):
    """The scores whose checkpoints are on the disk after all are saved, and that of best_step."""
    options = {"max_to_keep": keep}
    if policy:
        options = {"preservation_policy": BestN(get_metric_fn=score, reverse=mode == "min", n=keep)}
    with tempfile.TemporaryDirectory(dir=sys.argv[1]) as folder, ocp.CheckpointManager(
            folder, options=ocp.CheckpointManagerOptions(
                best_fn=score, best_mode=mode, enable_async_checkpointing=False, **options)) as manager:
        for step, value in enumerate(scores):
            manager.save(step, args=ocp.args.StandardSave({"weights": np.full(3, step)}), metrics={"score": value})
        return [scores[step] for step in manager.all_steps()], scores[manager.best_step()]


def known(metrics):
    return -np.inf if np.isnan(metrics["score"]) else metrics["score"]


for keep in (1, 2, 3):
    for policy in (False, True):
        lost = kept([0.5, 0.9, NAN, 0.6, 0.7], keep, policy=policy)
        right = kept([0.5, 0.9, NAN, 0.6, 0.7], keep, score=known, policy=policy)
        print(f"keep {keep} of 0.5, 0.9, NaN, 0.6, 0.7{' by BestN' * policy}: kept {lost}, with -inf {right}")
        assert 0.9 not in lost[0] and lost[1] == 0.7, "the best is kept"
        assert right == (sorted([0.9, 0.7, 0.6][:keep], key=[0.9, 0.6, 0.7].index), 0.9)
losses = kept([3.0, 1.0, NAN, 2.5, 2.0], 2, mode="min")
print("keep the 2 least losses of 3.0, 1.0, NaN, 2.5, 2.0: kept", losses)
assert losses == ([2.5, 2.0], 2.0), "other losses than seen"

random = np.random.default_rng(0)
runs = []
for _ in range(10):
    scores = random.random(8).round(3).tolist()
    scores[random.integers(8)] = NAN
    runs.append(scores)
for keep, seen in ((1, 9), (2, 8)):
    lost = sum(np.nanmax(scores) not in kept(scores, keep)[0] for scores in runs)
    print(f"keep {keep} of 8 random scores with a NaN: the best is lost in {lost} of 10 runs")
    assert lost == seen, f"not in {seen}"
print("warnings:", logged)
assert not logged, "it warns"
PYTHON
echo "as seen"
