#!/usr/bin/env bash
# textbrewer 0.2.1.post1: with a mask the loss "nst" is divided by the square of the padded length, so it is 64 times
# smaller in rows of 160 tokens than in rows of 20, and a student that agrees with its teacher is pulled away.
#
# TextBrewer distils BERT. "nst" (also "mmd") compares the similarities of all pairs of tokens in the student and in the
# teacher, whose hidden sizes may differ, as its docstring says. So each similarity has to be a mean over the features.
# Without a mask it is divided by the hidden size. With inputs_mask, which hides padding, it is divided by size(1), the
# length of the row, and then squared. So texts of 20 tokens have 1/64 of the loss where a batch is padded to 160
# tokens, beside other losses that stay as they are: another objective in each batch, and nearly none at the usual 128
# or 512. And a teacher of 64 features that has those of its student of 32 twice has the same mean similarities. The
# loss is 0 without a mask and 0.08 with a mask of ones, which says the same, and it is lowest for a student whose
# vectors are 1.41 times as long. No warning comes.
#
# Call register_new("match_Loss", "nst", masked) of textbrewer.presets with the loss below. Seen in November 2026 with
# Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps textbrewer==0.2.1.post1
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check tensorboard==2.21.0 tqdm==4.70.1 torch==2.13.0 \
    numpy==2.4.6
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
import torch
from textbrewer import losses, presets

torch.manual_seed(0)
torch.set_num_threads(1)
TEXTS, LENGTH = 4, 20


def masked(state_S, state_T, mask=None):
    """The mean of squared differences of similarities, each a mean over features, of places that are not masked."""
    student, teacher = (torch.bmm(first, second.transpose(1, 2)) / first.size(-1)
                        for first, second in (state_S, state_T))
    if mask is None:
        return (student - teacher).square().mean()
    pairs = (mask.unsqueeze(-1) * mask.unsqueeze(1)).to(student)
    return ((student - teacher).square() * pairs).sum() / pairs.sum()


def padded(states, length):
    return [torch.nn.functional.pad(state, (0, 0, 0, length - LENGTH)) for state in states]


student = [torch.randn(TEXTS, LENGTH, 32) for _ in range(2)]
teacher = [torch.randn(TEXTS, LENGTH, 64) for _ in range(2)]
other = [torch.randn(TEXTS, LENGTH, 32) for _ in range(2)]
nst = presets.MATCH_LOSS_MAP["nst"]
right = nst(student, teacher).item()
assert abs(masked(student, teacher).item() / right - 1) < 1e-5
found = {}
for length in (20, 40, 160):
    mask = torch.arange(length).expand(TEXTS, -1) < LENGTH
    rows = padded(student, length), padded(teacher, length), padded(other, length)
    found[length] = nst(rows[0], rows[1], mask).item()
    mended = masked(rows[0], rows[1], mask).item()
    same = {name: presets.MATCH_LOSS_MAP[name](first, second, mask).item() for name, first, second in (
        ("hidden_mse", rows[0][0], rows[2][0]), ("cos", rows[0][0], rows[2][0]), ("fsp", rows[0], rows[2]))}
    print(f"rows of {length}: nst {found[length]:.5f}, by the formula {mended:.5f}, others {same}")
    assert abs(mended / right - 1) < 1e-5
    if length == 20:
        first = same
    assert all(abs(same[name] / first[name] - 1) < 1e-4 for name in same)
assert abs(found[20] / found[40] - 4) < 1e-3 and abs(found[20] / found[160] - 64) < 0.01

twice = [torch.cat([state, state], -1) for state in student]
ones = torch.ones(TEXTS, LENGTH)
agreed = {"no mask": nst(student, twice).item(), "mask of ones": nst(student, twice, ones).item(),
          "below": masked(student, twice, ones).item()}
print("a student that agrees:", agreed)
assert agreed["no mask"] < 1e-10 and agreed["below"] < 1e-10 and 0.05 < agreed["mask of ones"] < 0.11
for name, loss in (("nst", nst), ("below", masked)):
    scale = torch.ones((), requires_grad=True)
    optimizer = torch.optim.Adam([scale], lr=0.01)
    for _ in range(500):
        optimizer.zero_grad()
        loss([scale * state for state in student], twice, ones).backward()
        optimizer.step()
    print(f"{name}: vectors that are {scale.item():.3f} times as long have the lowest loss")
    assert abs(scale.item() - (2 ** 0.5 if name == "nst" else 1)) < 0.01
assert losses.mmd_loss is nst
presets.register_new("match_Loss", "nst", masked)
assert presets.MATCH_LOSS_MAP["nst"] is masked
PYTHON
echo "as seen"
