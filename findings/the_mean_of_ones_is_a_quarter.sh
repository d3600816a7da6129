#!/usr/bin/env bash
# numpy 2.4.6 with ml_dtypes 0.6.0: the mean of 1,000 ones in bfloat16 is 0.256, and of 512 it is 0.5.
#
# TensorFlow's .numpy() and numpy.asarray of a JAX array give arrays of ml_dtypes.bfloat16. NumPy adds
# these one by one in bfloat16, which has 8 bits: from 256 on adding 1 changes nothing. NumPy's page of
# mean promises float32 in between for its own float16, and its sum along the last axis adds pairs;
# neither holds here, and no warning comes. Mean pooling over 512 tokens halves the vector of a long
# text, while one of 256 tokens keeps its length. Probabilities over a vocabulary are divided by too small
# a sum. clu 0.0.12, which prints the parameters of Flax models, says that a LayerNorm whose scales are
# all 1 has the mean 0.334. JAX gives 1 for such an array.
#
# Cast first, or give dtype="float32". Seen in November 2026 with Python 3.11. The script fails if this
# changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 ml_dtypes==0.6.0 \
    clu==0.0.12 flax==0.12.8 jax==0.10.2 jaxlib==0.10.2
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PYTHON'
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from clu import parameter_overview

print("numpy", np.__version__, "ml_dtypes", ml_dtypes.__version__)
means = {}
for dtype in (ml_dtypes.bfloat16, np.float16, np.float32):
    name = np.dtype(dtype).name
    for tokens in (128, 256, 512, 1000):
        vectors = np.ones((2, tokens, 4), dtype)        # texts, tokens, numbers
        means[name, tokens] = float(vectors.mean(1)[0, 0])
    print(f"{name:<9} mean over tokens", {tokens: mean for (kind, tokens), mean in means.items() if kind == name},
          "sum of 1,000", float(np.ones(1000, dtype).sum()))
assert [means["bfloat16", tokens] for tokens in (128, 256, 512)] == [1, 1, 0.5]
assert means["bfloat16", 1000] < 0.26, "the mean is right now"
assert all(mean == 1 for (name, _), mean in means.items() if name != "bfloat16"), "another type is wrong"

exps = np.exp(np.random.default_rng(0).normal(size=30522)).astype(ml_dtypes.bfloat16)
total = (exps / exps.sum()).astype("float64").sum()
print("probabilities over a vocabulary sum to", round(total, 1))
assert total > 5, "the probabilities sum to 1 now"
ones = np.ones(512, ml_dtypes.bfloat16)
print("512 ones: numpy", ones.mean(), "with dtype='float32'", ones.mean(dtype="float32"), "jax", jnp.asarray(ones).mean())
assert ones.mean(dtype="float32") == jnp.asarray(ones).mean() == 1
table = parameter_overview.get_parameter_overview(
    {"LayerNorm": {"scale": np.ones(768, ml_dtypes.bfloat16)}}, include_stats=True)
print(table)
assert "0.334" in table, "clu gives another mean"
PYTHON
echo "as seen"
