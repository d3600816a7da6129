#!/usr/bin/env bash
# tensorly-torch 0.5.0 with tensorly 0.10.0: FactorizedEmbedding.from_embedding(factorization="tucker") with its default
# rank makes a table that is 8 times as long as the embeddings and 7.5 of their lengths away from them.
#
# The layer replaces the table of an embedding by a tensor in factors, to save memory. Vocabulary and width are cut into
# modes: 1,000 words and 64 numbers into 5 x 8 x 25 and 4 x 4 x 4, BERT's 30,522 and 768 into 2 x 3 x 5087 and 2 x 4 x
# 96. The rank is 8 for each mode if nothing else is said, more than most modes have. tensorly's tucker then fills the
# factors up with random columns (_complete_factor), and goes on as if "the factors are orthonormal", as a comment says:
# the core is the projection to all columns, so what lies along the random ones is counted twice. Each rank above the
# size of a mode makes the table worse. The error, relative to the length of the table, falls from 0.998 at rank 2 to
# 0.96 at rank 4, where no mode is smaller, and is 1.1 at 5 and 7.5 at 8. At the sizes of the modes it is 0. tensorly
# warns "Trying to compute SVD with n_eigenvecs=8, which is larger than ... Setting n_eigenvecs to 4", which sounds as
# if the rank had been cut.
#
# Pass a rank for each mode, its size at most, as below. Seen in November 2026 with Python 3.11. The script fails if
# this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check tensorly-torch==0.5.0 tensorly==0.10.0 \
    scipy==1.17.1 packaging==26.4 opt-einsum==3.4.0 torch==2.13.0 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
import inspect
import warnings
from importlib.metadata import version

import numpy as np
import tensorly
import torch
from tensorly.decomposition import tucker
from tltorch import FactorizedEmbedding
from tltorch.utils import get_tensorized_shape
from torch import nn

print("tensorly-torch", version("tensorly-torch"), "tensorly", tensorly.__version__)
torch.set_num_threads(1)
warnings.simplefilter("ignore")
MODES = (5, 8, 25, 4, 4, 4)
assert get_tensorized_shape(1000, 64, order=3, min_dim=2, verbose=False) == (MODES[:3], MODES[3:])
assert get_tensorized_shape(30522, 768, order=3, min_dim=2, verbose=False) == ((2, 3, 5087), (2, 4, 96))
assert inspect.signature(FactorizedEmbedding.from_embedding).parameters["rank"].default == 8

torch.manual_seed(0)
embedding = nn.Embedding(1000, 64)
table = embedding.weight.detach()


def factorized(**settings):
    """How far the table in factors is from the table, and how long it is, in lengths of the table."""
    torch.manual_seed(1)
    layer = FactorizedEmbedding.from_embedding(embedding, n_tensorized_modes=3, **settings)
    with torch.no_grad():
        found = layer(torch.arange(1000))
        assert torch.allclose(found, layer.weight.to_matrix(), atol=1e-3)
    return ((found - table).norm() / table.norm()).item(), (found.norm() / table.norm()).item()


for name, settings, lowest, highest in (
        ("tucker, default rank", {"factorization": "tucker"}, 5, 12),
        ("tucker, rank 8 or the mode's size", {"factorization": "tucker", "rank": [min(8, m) for m in MODES]}, 0.3, 1),
        ("tucker, rank 4", {"factorization": "tucker", "rank": 4}, 0.9, 1),
        ("tucker, the modes' sizes", {"factorization": "tucker", "rank": list(MODES)}, 0, 1e-4),
        ("blocktt, default rank", {}, 0.9, 1)):
    error, length = factorized(**settings)
    print(f"{name}: error {error:.4f}, length {length:.4f}")
    assert lowest <= error <= highest
    assert (length > 5) == (settings == {"factorization": "tucker"}) and (length <= 1.001 or length > 5)

cube = torch.from_numpy(np.random.default_rng(0).normal(size=MODES))  # tltorch sets the backend to PyTorch
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    errors = {}
    for rank in (2, 4, 5, 8):
        core, factors = tucker(cube, rank=[rank] * 6, n_iter_max=5)
        errors[rank] = ((tensorly.tucker_to_tensor((core, factors)) - cube).norm() / cube.norm()).item()
        away = max((f.T @ f - torch.eye(f.shape[1], dtype=f.dtype)).abs().max().item() for f in factors)
        print(f"tensorly alone, rank {rank}: error {errors[rank]:.3f}, factors away from orthonormal by {away:.2f}")
        assert (away < 1e-6) == (rank <= 4)
assert errors[4] < errors[2] < 1 < errors[5] < 2 and 5 < errors[8] < 10
assert any("Setting n_eigenvecs to 4" in str(warning.message) for warning in caught)
print("a warning:", next(str(w.message) for w in caught if "n_eigenvecs=8" in str(w.message)))
PYTHON
echo "as seen"
