#!/usr/bin/env bash
# linear-attention-transformer 0.19.1: ff_dropout, ff_glu, pkm_num_keys and, without local heads, attn_dropout change
# nothing, and token shifting reads the padding.
#
# LinearAttentionTransformer builds the feed-forward part of each layer by FeedForward(dim), without ff_glu and
# ff_dropout. Only the layers that attend_axially or receives_context add get the two. So with ff_dropout=0.9 a model
# in training gives the same output twice, as it has no dropout at all, and with ff_glu=True it has not one parameter
# more, and the outputs of the plain model. The memory of pkm_layers is PKM(dim), so pkm_num_keys=64 or 256 gives 128
# keys, 16,384 values for each layer that has one. attn_dropout goes to local attention alone, and the default is
# n_local_attn_heads=0: the linear attention drops nothing. Who trains with all dropouts at 0.1 has just
# attn_layer_dropout. Runs with and without GLU are the same run. And there is the mask: with shift_tokens=True each
# token gets a third of the features of its neighbours, and the wrapper zeroes padding by a "mask" among its
# arguments, which layers of this package never get, since they call theirs input_mask. The last token takes the
# features of the padding behind it, and attention hands them on, so all outputs of a text of 64 tokens depend on
# which tokens stand behind it. Without shift_tokens the mask hides them entirely. All this holds in
# LinearAttentionTransformerLM too, and no warning comes.
#
# Put dropout into the layers by hand, and leave shift_tokens off for texts with padding. Seen in November 2026 with
# Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check linear-attention-transformer==0.19.1 \
    product-key-memory==0.3.0 colt5-attention==0.11.2 local-attention==1.11.2 linformer==0.2.3 \
    axial-positional-embedding==0.3.12 einops==0.8.2 torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
from importlib.metadata import version

import torch
from linear_attention_transformer import LinearAttentionTransformer, LinearAttentionTransformerLM
from product_key_memory import PKM

print("linear-attention-transformer", version("linear-attention-transformer"), "torch", torch.__version__)
torch.set_num_threads(1)
LENGTH = 128
torch.manual_seed(0)
texts, vectors = torch.randint(1, 100, (2, LENGTH)), torch.randn(2, LENGTH, 32)


def build(kind, **options):
    torch.manual_seed(1)
    if kind is LinearAttentionTransformerLM:
        options = {"num_tokens": 100, "dim_head": 16, **options}
    return kind(dim=32, depth=2, max_seq_len=LENGTH, heads=2, **options)


def size(model):
    return sum(p.numel() for p in model.parameters())


for kind, inputs in ((LinearAttentionTransformerLM, texts), (LinearAttentionTransformer, vectors)):
    plain = build(kind).eval()(inputs)
    for options, works in (({"ff_dropout": 0.9}, False), ({"attn_dropout": 0.9}, False), ({"ff_glu": True}, False),
                           ({"attn_layer_dropout": 0.9}, True)):
        model = build(kind, **options).train()
        rates = [module.p for module in model.modules() if isinstance(module, torch.nn.Dropout) and module.p]
        same = torch.equal(model(inputs), model(inputs)) and torch.equal(model(inputs), plain)
        print(f"{kind.__name__}, {options}: {size(model)} parameters, output {'as without' if same else 'another'}")
        assert same != works and size(model) == size(build(kind))
        assert "attn_dropout" in options or bool(rates) == works
    for keys in (64, 256):
        model = build(kind, pkm_layers=(1,), pkm_num_keys=keys)
        found = [(module.num_keys, len(module.values.weight)) for module in model.modules() if isinstance(module, PKM)]
        print(f"{kind.__name__}, pkm_num_keys={keys}: keys and values {found}")
        assert found == [(128, 16384)]
    dropping = build(kind, ff_dropout=0.9, receives_context=True)
    assert [m.p for m in dropping.modules() if isinstance(m, torch.nn.Dropout) and m.p] == [0.9, 0.9]

mask = torch.arange(LENGTH)[None].expand(2, -1) < 64
others = torch.where(mask, texts, torch.randint(1, 100, texts.shape))
for options, depends in (({}, False), ({"shift_tokens": True}, True)):
    model = build(LinearAttentionTransformerLM, **options).eval()
    with torch.no_grad():
        change = (model(texts, input_mask=mask) - model(others, input_mask=mask)).abs().amax(-1)[:, :64]
    print(f"{options}: other tokens behind the mask change {(change > 0).sum()} of 128 outputs, by {change.max():.3f}")
    assert bool(change.min() > 0) == bool(change.max() > 0) == depends
PYTHON
echo "as seen"
