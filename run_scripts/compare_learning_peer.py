"""The peer of compare_learning: transformers' BertForPreTraining on the very same batches.

It runs under an interpreter of its own, which needs numpy, torch and transformers alone, and is
started by compare_learning with one argument, a JSON object of what `main` takes.
"""

import json
import sys

import numpy as np
import torch
from torch_training import make_optimizer, take_step
from transformers import BertConfig, BertForPreTraining

# What transformers calls the activations that have another name here.
_ACTIVATIONS = {"gelu": "gelu_new", "gelu_erf": "gelu"}


def _batch(arrays, rows):
    """The arguments of BertForPreTraining, from the features of some rows."""
    batch = {name: torch.from_numpy(values[rows]).long() for name, values in arrays.items()}
    labels = torch.full_like(batch["input_ids"], -100)      # which is to say: no loss here
    used = torch.nonzero(batch["masked_lm_weights"], as_tuple=True)
    labels[used[0], batch["masked_lm_positions"][used]] = batch["masked_lm_ids"][used]
    return {"input_ids": batch["input_ids"], "attention_mask": batch["input_mask"],
            "token_type_ids": batch["segment_ids"], "labels": labels,
            "next_sentence_label": batch["next_sentence_labels"]}


def train(model, arrays, learning_rates, weight_decay):
    """Takes a step for each batch of `arrays` [steps, B, ...]."""
    optimizer = make_optimizer(model, weight_decay)
    model.train()
    for step, rate in enumerate(learning_rates):
        # The mean over the masked positions plus the mean over the pairs, as in bert_tf.
        loss = model(**_batch(arrays, step)).loss
        take_step(model, optimizer, loss, rate)
        if (step + 1) % 50 == 0:
            print(f"step {step + 1:,}  loss {loss.item():.4f}", flush=True)


def _measure(logits, labels):
    """(sum of the losses, number of correct predictions, number of predictions)."""
    loss = torch.nn.functional.cross_entropy(logits, labels, reduction="sum")
    return loss.item(), (logits.argmax(-1) == labels).sum().item(), len(labels)


@torch.no_grad()
def evaluate(model, arrays, batch_size):
    """Means over all masked positions and all pairs of `arrays` [N, ...], by bert_tf's names."""
    model.eval()
    measures = {"masked_lm": [], "next_sentence": []}
    for start in range(0, len(arrays["input_ids"]), batch_size):
        batch = _batch(arrays, slice(start, start + batch_size))
        tokens, pairs = batch.pop("labels"), batch.pop("next_sentence_label").flatten()
        outputs, masked = model(**batch), tokens != -100
        measures["masked_lm"].append(_measure(outputs.prediction_logits[masked], tokens[masked]))
        measures["next_sentence"].append(_measure(outputs.seq_relationship_logits, pairs))
    results = {}
    for name, values in measures.items():
        loss, correct, count = np.sum(values, axis=0)
        results.update({f"{name}/loss": loss / count, f"{name}/accuracy": correct / count})
    return results


def make_model(config_file, seed):
    """The model with its initial weights, a function of the seed."""
    torch.manual_seed(seed)
    with open(config_file, encoding="utf-8") as file:
        config = json.load(file)
    config["hidden_act"] = _ACTIVATIONS.get(config["hidden_act"], config["hidden_act"])
    return BertForPreTraining(BertConfig(**config))


def main(config_file, seed, weight_decay, batch_size, training, held_out, metrics):
    """Trains, evaluates, and writes the metrics.

    Args:
        config_file: Google's bert_config.json.
        seed: int, of initial weights and dropout.
        weight_decay: float.
        batch_size: int, of the evaluation.
        training, held_out: .npz files of features [steps, B, ...] and [N, ...]; the first also
            has `learning_rates` [steps].
        metrics: the JSON file to write.
    """
    model = make_model(config_file, seed)
    print(f"{sum(p.numel() for p in model.parameters()):,} weights", flush=True)
    arrays = dict(np.load(training))
    train(model, arrays, arrays.pop("learning_rates"), weight_decay)
    results = evaluate(model, dict(np.load(held_out)), batch_size)
    with open(metrics, "w", encoding="utf-8") as file:
        json.dump(results, file)


def save_initial(config_file, seed, initial):
    """Writes the model as it is before training to the folder `initial`."""
    make_model(config_file, seed).save_pretrained(initial)


if __name__ == "__main__":
    options = json.loads(sys.argv[1])
    (save_initial if "initial" in options else main)(**options)
