#!/usr/bin/env bash
# product-key-memory 0.3.0: with concat_values_and_combine=True the values that are found are added without their
# scores, so that queries and keys never learn.
#
# A product-key memory (Lample and others, 2019) finds the keys that fit a query best, and its output is the sum of
# their values, weighted by the softmax of the scores. By these weights queries and keys get a gradient, as the choice
# of the best has none. PKM does so by an EmbeddingBag with per_sample_weights. With concat_values_and_combine=True, for
# small values in each head and a linear layer above, as in attention, the weights are computed and then not used: the
# values of the best topk are added. Queries, keys and the norm between them get no gradient, and an optimizer leaves
# them as they were drawn, so that what a token finds is decided by chance before the training. In a memory of
# num_keys=128 with 4 heads that is 71% of what is not a value. A hundredth of all keys gives the same output, to the
# last bit, as do non_competitive_gates and, in training, attn_dropout=0.9. After 300 steps with the same seed a memory
# for 256 random pairs has three times the error of one whose values are multiplied with the weights. No warning comes,
# and the loss goes down, since the values and the last layer learn.
#
# Leave concat_values_and_combine off, or multiply the output of .values with that of .attn_dropout by hooks, as here.
# Seen in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check product-key-memory==0.3.0 colt5-attention==0.11.2 \
    einops==0.8.2 torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
from importlib.metadata import version

import torch
from product_key_memory import PKM

print("product-key-memory", version("product-key-memory"), "torch", torch.__version__)
torch.set_num_threads(1)
FINDS = {"keys", "to_queries.weight", "norm.weight", "norm.bias"}


def build(weigh=False, concat=True, **options):
    torch.manual_seed(0)
    memory = PKM(32, heads=2, num_keys=16, topk=8, dim_head=16, concat_values_and_combine=concat, **options)
    if weigh:
        kept = {}
        memory.attn_dropout.register_forward_hook(lambda module, inputs, output: kept.update(weights=output))
        memory.values.register_forward_hook(
            lambda module, inputs, output: output * kept["weights"].reshape(*output.shape[:2], 1))
    return memory


torch.manual_seed(1)
X, Y = torch.randn(2, 8, 32, 32)

for name, memory, blind in (("concat_values_and_combine", build(), True), ("the default", build(concat=False), False),
                            ("weighed by hooks", build(weigh=True), False)):
    memory(X).square().mean().backward()
    without = {n for n, p in memory.named_parameters() if p.grad is None}
    print(f"{name}: without a gradient are {sorted(without)}")
    assert without == (FINDS if blind else set())
    before = memory(X)
    with torch.no_grad():
        memory.keys.mul_(0.01)
    print(f"{name}: with a hundredth of the keys the output changes by {(memory(X) - before).abs().max():.4f}")
    assert torch.equal(memory(X), before) == blind

plain = build()
for options in ({"non_competitive_gates": True}, {"attn_dropout": 0.9}):
    for weigh in (False, True):
        torch.manual_seed(2)
        same = torch.equal(build(weigh, **options).train()(X), build(weigh)(X))
        print(f"{options}{', weighed' * weigh}: the output is {'the same' if same else 'another'}")
        assert same != weigh

large = PKM(512, heads=4, num_keys=128, dim_head=128, concat_values_and_combine=True)
sizes = {n: p.numel() for n, p in large.named_parameters() if n != "values.weight"}
share = sum(sizes[n] for n in FINDS) / sum(sizes.values())
print(f"num_keys=128, 4 heads: {share:.0%} of the parameters besides the values never learn")
assert 0.6 < share < 0.75

errors = {}
for weigh in (False, True):
    memory = build(weigh)
    start = {n: p.detach().clone() for n, p in memory.named_parameters()}
    optimizer = torch.optim.Adam(memory.parameters(), lr=0.01)
    for _ in range(300):
        optimizer.zero_grad()
        loss = (memory(X) - Y).square().mean()
        loss.backward()
        optimizer.step()
    still = {n for n, p in memory.named_parameters() if torch.equal(p, start[n])}
    errors[weigh] = loss.item()
    print(f"{'weighed' if weigh else 'as it is'}: error {loss:.3f} after 300 steps, unchanged {sorted(still)}")
    assert still == (set() if weigh else FINDS)
assert errors[False] > 2 * errors[True]
PYTHON
echo "as seen"
