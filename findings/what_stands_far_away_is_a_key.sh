#!/usr/bin/env bash
# sinkhorn-transformer 0.11.4: an encoder takes the keys of the other buckets for their values, so that no value is ever
# read outside of a token's own bucket.
#
# Sparse Sinkhorn attention (Tay and others, 2020) cuts a text into buckets and learns which other bucket each bucket
# reads beside its own: keys and values are reordered by the same matrix. SinkhornAttention, the one without causal,
# reorders both, and where it puts them together it writes the reordered keys into both: b_v_r = b_k_r.reshape(...), by
# the default n_sortcut=0. So attention to all that is not in a token's own bucket adds up keys. With texts of 1024
# tokens and buckets of 64, changing the values of 960 of them leaves the output of a token as it is, to the last bit,
# and by the gradient no value learns from another bucket. Near and far tokens are so read in two languages by one
# output matrix, and one matrix has to be the address of a token and its content. With random vectors, where a bucket
# reads another one with a small weight, the output is off by 14% of the formula's. Where the choice is sure, and the
# keys are as large as that takes, it is off by twice its size. The shapes are right, and the loss goes down, as a
# network can make do with keys. n_sortcut=2 and causal=True read values, so the three differ in more than they say. No
# warning comes.
#
# Replace the line, as below. Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check sinkhorn-transformer==0.11.4 \
    product-key-memory==0.3.0 colt5-attention==0.11.2 local-attention==1.11.2 axial-positional-embedding==0.3.12 \
    hyper-connections==0.4.11 einops==0.8.2 torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
import inspect
import textwrap
from importlib.metadata import version

import sinkhorn_transformer.sinkhorn_transformer as package
import torch

print("sinkhorn-transformer", version("sinkhorn-transformer"), "torch", torch.__version__)
torch.set_num_threads(1)
BUCKET, DIM = 4, 8

source = textwrap.dedent(inspect.getsource(package.SinkhornAttention.forward))
assert source.count("b_v_r = b_k_r.reshape(") == 1
scope = dict(vars(package))
exec(source.replace("b_v_r = b_k_r.reshape(", "b_v_r = b_v_r.reshape("), scope)


class Mended(package.SinkhornAttention):
    forward = scope["forward"]


def by_formula(layer, q, k, v):
    """For one head: a bucket's queries read the bucket that fits best, times its weight, and their own."""
    buckets = [tensor[0, 0].unflatten(0, (-1, BUCKET)) for tensor in (q, k, v)]
    means = [tensor.mean(1) for tensor in buckets[:2]]
    weights = (means[0] @ means[1].T / DIM ** 0.5).softmax(-1)
    result = []
    for row, query in zip(weights, buckets[0]):
        here, there = len(result), row.argmax()
        keys = torch.cat((row[there] * buckets[1][there], buckets[1][here]))
        values = torch.cat((row[there] * buckets[2][there], buckets[2][here]))
        result.append((query @ keys.T / DIM ** 0.5).softmax(-1) @ values)
    return torch.cat(result)


def attention(cls, length, bucket=BUCKET, **options):
    torch.manual_seed(0)
    return cls(bucket, 1, DIM, 1, length, **options)


torch.manual_seed(1)
q, k, v = torch.randn(3, 1, 1, 32, DIM)
topics = 4 * torch.eye(DIM).repeat_interleave(BUCKET, 0)              # bucket 0 asks for bucket 1, and so on
for name, asks, answers, least in (("random", q, k, 0.1), ("sure", q + topics.roll(-BUCKET, 0), k + topics, 2)):
    right = by_formula(attention(Mended, 32), asks, answers, v)
    for cls in (package.SinkhornAttention, Mended):
        error = (attention(cls, 32)(asks, answers, v)[0, 0] - right).norm() / right.norm()
        print(f"{name} choice, {cls.__name__}: off by {error:.0%} of the formula's output")
        assert error < 1e-5 if cls is Mended else error > least

q, k, v = torch.randn(3, 1, 1, 1024, DIM)
for name, layer, deaf in (
        ("the package", attention(package.SinkhornAttention, 1024, 64), True), ("mended", attention(Mended, 1024, 64),
                                                                                 False),
        ("n_sortcut=2", attention(package.SinkhornAttention, 1024, 64, n_sortcut=2), False),
        ("causal", package.SinkhornCausalAttention(64, 2, DIM, 1, 1024), False)):
    values = v.clone().requires_grad_()
    token = layer(q, k, values)[0, 0, 300]
    token.square().sum().backward()
    heard = values.grad[0, 0].abs().sum(-1) > 0
    far = heard.clone()
    far[256:320] = False
    other = v + 100 * torch.randn_like(v)
    other[:, :, 256:320] = v[:, :, 256:320]
    same = torch.equal(layer(q, k, other)[0, 0, 300], token)
    print(f"{name}: token 300 hears the values of {int(heard.sum())} tokens, {int(far.sum())} of other buckets; with"
          f" other values there its output is {'the same' if same else 'another'}")
    assert same == deaf and (far.sum() == 0) == deaf
PYTHON
echo "as seen"
