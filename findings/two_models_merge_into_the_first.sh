#!/usr/bin/env bash
# mergelib 0.0.1a0: merging with the Fisher information returns the first model, whatever the second is, and calls it
# the best of 51 mixtures.
#
# mergelib merges models of transformers that were fine-tuned on different data, as Matena and Raffel did (2022): each
# weight is the mean of the models' weights, weighted by the diagonal of their Fisher information, which is the mean of
# the squared gradients of log p. compute_fisher_matrices runs the model under torch.no_grad, and then makes the log
# probabilities require gradients. So they have no way back to the weights, the gradients are None, and for None it
# takes 0: the Fisher information of each model is 0 everywhere. fisher_merge raises that of the first model, alone, to
# 1e-6 at least. So it weighs the first model by 1e-6 and the others by 0, and the mean is the first model, to the last
# bit but rounding, for all coefficients. For the coefficients (0, 1), the second model alone, it is 0/0, NaN in all
# weights. merge evaluates 51 mixtures, of which 50 are the first model. It evaluates a fresh copy, which is in training
# mode, so that their scores differ by the luck of dropout, and it returns the coefficients of the luckiest. With the
# models swapped it returns the other one. The README and the code say nothing of this, and no warning comes.
#
# Compute the Fisher information yourself and pass it to mergelib.engine.fisher.fisher_merge as aux_matrices: that gives
# the mean as in the paper. Seen in December 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
pip() { "$folder/venv/bin/pip" install --quiet --disable-pip-version-check "$@"; }
pip evaluate==0.4.6 transformers==5.23.0 torch==2.13.0 numpy==2.4.6
pip --no-deps mergelib==0.0.1a0
HF_HUB_OFFLINE=1 "$folder/venv/bin/python" -W ignore - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
from importlib.metadata import version

import evaluate
import torch
from mergelib.engine.fisher import compute_fisher_matrices, fisher_merge
from mergelib.merge import merge
from mergelib.utils import get_mergeable_variables
from transformers import RobertaConfig, RobertaForSequenceClassification

print("mergelib", version("mergelib"), "transformers", version("transformers"), "torch", torch.__version__)
torch.set_num_threads(1)
config = RobertaConfig(vocab_size=60, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
                       max_position_embeddings=20, num_labels=2)


class Score:
    """Accuracy with the two methods of evaluate.EvaluationModule that are called."""

    def __init__(self):
        self.pairs, self.scores = [], []

    def add_batch(self, predictions, references):
        self.pairs.append((predictions == references).float())

    def compute(self):
        self.scores.append(torch.cat(self.pairs).mean().item())
        self.pairs = []
        return {"accuracy": self.scores[-1]}


def fine_tuned(seed):
    torch.manual_seed(seed)
    texts = torch.randint(4, 60, (64, 8))
    batch = {"input_ids": texts, "labels": (texts[:, 1 + seed] > 30).long()}
    torch.manual_seed(9)
    model = RobertaForSequenceClassification(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(40):
        optimizer.zero_grad()
        model(**batch).loss.backward()
        optimizer.step()
    return model.eval(), [{name: value[start:start + 16] for name, value in batch.items()} for start in (0, 16, 32, 48)]


def fisher(model, batches):
    """The mean over texts of the squared gradients of log p, for classes as the model expects them."""
    weights, total, texts = get_mergeable_variables(model), None, 0
    for ids in (row for batch in batches for row in batch["input_ids"]):
        log_probs = model(input_ids=ids[None]).logits[0].log_softmax(-1)
        for log_prob in log_probs:
            parts = torch.autograd.grad(log_prob, weights, retain_graph=True, allow_unused=True)
            parts = [torch.zeros_like(weight) if part is None else log_prob.exp().detach() * part**2
                     for part, weight in zip(parts, weights)]
            total = parts if total is None else [a + b for a, b in zip(total, parts)]
        texts += 1
    return [part / texts for part in total]


def body(model):
    return torch.cat([weight.detach().flatten().clone() for weight in get_mergeable_variables(model)])


(one, batches), (two, others) = fine_tuned(0), fine_tuned(1)
batches += others
apart = (body(one) - body(two)).norm()
with torch.enable_grad():
    for model in (one, two):
        seen = torch.cat([part.flatten() for part in compute_fisher_matrices(model, batches)])
        right = torch.cat([part.flatten() for part in fisher(model, batches)])
        print(f"Fisher information: by mergelib at most {seen.max():.1g}, by hand {right.max():.3g}, of"
              f" {len(right)} weights {(right > 0).sum()} above 0")
        assert seen.max() == 0 and right.max() > 1e-3 and (right > 0).float().mean() > 0.5

for first, second in ((one, two), (two, one)):
    score = Score()
    torch.manual_seed(0)
    assert all(hasattr(evaluate.EvaluationModule, name) for name in ("add_batch", "compute"))
    merged, best, coefficients = merge([first, second], batches, score, num_coefficients=51)
    to_first, to_second = ((body(merged) - body(model)).norm() / apart for model in (first, second))
    print(f"merged: {to_first:.1e} of the way from the first model, {to_second:.3f} from the second, best {best},"
          f" coefficients {coefficients}; {len(score.scores)} scores, {len(set(score.scores[:-1]))} different")
    assert to_first < 1e-6 and abs(to_second - 1) < 1e-3
    assert len(score.scores) == 51 and len(set(score.scores[:-1])) > 1

# By hand, with the same function and the real Fisher information: in between.
with torch.enable_grad():
    aux = [fisher(model, batches) for model in (one, two)]
weights = [get_mergeable_variables(model) for model in (one, two)]
mixed = fisher_merge(weights, [w.detach().clone() for w in weights[0]], (0.5, 0.5), aux)
mixed = torch.cat([part.flatten() for part in mixed]).nan_to_num(0)
ways = [((mixed - body(model)).norm() / apart).item() for model in (one, two)]
print(f"with the real Fisher information: {ways[0]:.3f} and {ways[1]:.3f} of the way")
assert all(0.2 < way < 1 for way in ways)

aux = [compute_fisher_matrices(model, batches) for model in (one, two)]
mixed = fisher_merge(weights, [w.detach().clone() for w in weights[0]], (0.0, 1.0), aux)
assert all(part.isnan().all() for part in mixed)
print("the second model alone: NaN in all weights")
PYTHON
echo "as seen"
