"""The peer of the comparisons: transformers trains on the very same features.

The program runs under an interpreter of its own, which needs numpy, torch and transformers alone.
learning.py and finetuning.py start it with two arguments: the name of a function of `PROGRAMS`, and
a JSON object of that function's arguments.
"""

import json
import os
import sys
import time

import numpy as np
import torch
import transformers
from torch.nn.functional import cross_entropy, mse_loss

# transformers' names of the activations that have another name here.
_ACTIVATIONS = {"gelu": "gelu_new", "gelu_erf": "gelu"}
_MODELS = {"classification": "BertForSequenceClassification",
           "regression": "BertForSequenceClassification",
           "span": "BertForQuestionAnswering", "tagging": "BertForTokenClassification"}
_INPUTS = {"input_ids": "input_ids", "input_mask": "attention_mask",
           "segment_ids": "token_type_ids"}
_POOL = 32              # so many batches are sorted together by the examples' length
_REPORT_STEPS = 50
_NOWHERE = -1e4         # the logit of positions that a batch was cut by


def make_optimizer(model, weight_decay):
    """AdamW as in bert_tf.training.optimizers.adam: LayerNorm and biases are not decayed."""
    decayed, others = [], []
    for name, parameter in model.named_parameters():
        (others if "LayerNorm" in name or "bias" in name else decayed).append(parameter)
    return torch.optim.AdamW([{"params": decayed, "weight_decay": weight_decay},
                              {"params": others, "weight_decay": 0.0}],
                             betas=(0.9, 0.999), eps=1e-6, fused=True)


def take_step(model, optimizer, loss, learning_rate):
    """Updates the weights by the gradients of `loss`, clipped to a global norm of 1."""
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    for group in optimizer.param_groups:
        group["lr"] = float(learning_rate)
    optimizer.step()


def _pretraining_batch(arrays, rows):
    """The arguments of BertForPreTraining, from the features of some rows."""
    batch = {name: torch.from_numpy(values[rows]).long() for name, values in arrays.items()}
    labels = torch.full_like(batch["input_ids"], -100)      # which is to say: no loss here
    used = torch.nonzero(batch["masked_lm_weights"], as_tuple=True)
    labels[used[0], batch["masked_lm_positions"][used]] = batch["masked_lm_ids"][used]
    return {"input_ids": batch["input_ids"], "attention_mask": batch["input_mask"],
            "token_type_ids": batch["segment_ids"], "labels": labels,
            "next_sentence_label": batch["next_sentence_labels"]}


def _train_pretraining(model, arrays, learning_rates, weight_decay):
    """Takes a step for each batch of `arrays` [steps, B, ...]."""
    optimizer = make_optimizer(model, weight_decay)
    model.train()
    for step, rate in enumerate(learning_rates):
        # The mean over the masked positions plus the mean over the pairs, as in bert_tf.
        loss = model(**_pretraining_batch(arrays, step)).loss
        take_step(model, optimizer, loss, rate)
        if (step + 1) % 50 == 0:
            print(f"step {step + 1:,}  loss {loss.item():.4f}", flush=True)


def _measure(logits, labels):
    """(sum of the losses, number of correct predictions, number of predictions)."""
    loss = cross_entropy(logits, labels, reduction="sum")
    return loss.item(), (logits.argmax(-1) == labels).sum().item(), len(labels)


@torch.no_grad()
def _evaluate_pretraining(model, arrays, batch_size):
    """Means over all masked positions and all pairs of `arrays` [N, ...], by bert_tf's names."""
    model.eval()
    measures = {"masked_lm": [], "next_sentence": []}
    for start in range(0, len(arrays["input_ids"]), batch_size):
        batch = _pretraining_batch(arrays, slice(start, start + batch_size))
        tokens, pairs = batch.pop("labels"), batch.pop("next_sentence_label").flatten()
        outputs, masked = model(**batch), tokens != -100
        measures["masked_lm"].append(_measure(outputs.prediction_logits[masked], tokens[masked]))
        measures["next_sentence"].append(_measure(outputs.seq_relationship_logits, pairs))
    results = {}
    for name, values in measures.items():
        loss, correct, count = np.sum(values, axis=0)
        results.update({f"{name}/loss": loss / count, f"{name}/accuracy": correct / count})
    return results


def make_pretraining_model(config_file, seed):
    """The model with its initial weights, a function of the seed."""
    torch.manual_seed(seed)
    with open(config_file, encoding="utf-8") as file:
        config = json.load(file)
    config["hidden_act"] = _ACTIVATIONS.get(config["hidden_act"], config["hidden_act"])
    return transformers.BertForPreTraining(transformers.BertConfig(**config))


def pretrain(config_file, seed, weight_decay, batch_size, training, held_out, metrics):
    """Trains a BertForPreTraining, evaluates it, and writes the metrics as JSON.

    Args:
        batch_size: batch size of the evaluation.
        training, held_out: .npz files of features [steps, B, ...] and [N, ...]; the first also has
            `learning_rates` [steps].
    """
    model = make_pretraining_model(config_file, seed)
    print(f"{sum(p.numel() for p in model.parameters()):,} weights", flush=True)
    arrays = dict(np.load(training))
    _train_pretraining(model, arrays, arrays.pop("learning_rates"), weight_decay)
    results = _evaluate_pretraining(model, dict(np.load(held_out)), batch_size)
    with open(metrics, "w", encoding="utf-8") as file:
        json.dump(results, file)


def save_initial(config_file, seed, initial):
    """Writes the model as it is before training to the folder `initial`."""
    make_pretraining_model(config_file, seed).save_pretrained(initial)


class Examples:
    """The features of N examples, cut into batches of similar length.

    Args:
        path: .npz of the features, [N, S] and [N, 1].
    """

    def __init__(self, path):
        self._arrays = dict(np.load(path))
        self._lengths = self._arrays["input_mask"].sum(1)
        self.size, self.seq_length = self._arrays["input_ids"].shape

    def batch(self, rows):
        """Returns (arguments of the model, the features that name the labels), dicts of tensors.

        Sequences are cut to the longest of the batch, rounded up to a multiple of 8.
        """
        length = min(-self._lengths[rows].max() // 8 * -8, self.seq_length)
        tensors = {name: torch.from_numpy(values[rows, :length]).long()
                   if values.dtype.kind in "biu" else torch.from_numpy(values[rows])
                   for name, values in self._arrays.items()}
        return {argument: tensors.pop(name) for name, argument in _INPUTS.items()}, tensors

    def training_batches(self, batch_size, seed):
        """Yields the rows of batches for ever: each epoch in another order, remainders dropped."""
        rng = np.random.default_rng(seed)
        while True:
            rows = rng.permutation(self.size)[:self.size // batch_size * batch_size]
            pools = np.split(rows, range(batch_size * _POOL, len(rows), batch_size * _POOL))
            rows = np.concatenate([pool[np.argsort(self._lengths[pool])] for pool in pools])
            yield from rng.permutation(rows.reshape(-1, batch_size))

    def prediction_batches(self, batch_size):
        """The rows of batches, by length."""
        rows = np.argsort(self._lengths, kind="stable")
        return np.split(rows, range(batch_size, len(rows), batch_size))


def compute_loss(kind, outputs, labels):
    """The mean over the examples, or over the labelled positions in tagging."""
    if kind == "span":
        return (cross_entropy(outputs.start_logits, labels["start_positions"][:, 0])
                + cross_entropy(outputs.end_logits, labels["end_positions"][:, 0])) / 2
    if kind == "regression":
        return mse_loss(outputs.logits, labels["label_ids"])
    if kind == "tagging":
        used = labels["label_weights"].bool()
        return cross_entropy(outputs.logits[used], labels["label_ids"][used])
    return cross_entropy(outputs.logits, labels["label_ids"][:, 0])


def _make_finetuning_model(kind, model_dir, num_labels, seed):
    """The encoder of a Hugging Face folder with a new head, drawn from normal(0, 0.02)."""
    torch.manual_seed(seed)
    options = {} if kind == "span" else {"num_labels": num_labels}
    model = getattr(transformers, _MODELS[kind]).from_pretrained(
        model_dir, dtype=torch.float32, **options)
    assert model.config.initializer_range == 0.02, model.config
    return model


def _train_finetuning(model, examples, settings):
    """Returns the mean losses of every 50 steps, the rest left out."""
    steps = int(examples.size / settings["batch_size"] * settings["num_train_epochs"])
    warmup = int(steps * settings["warmup_proportion"])
    optimizer = make_optimizer(model, settings["weight_decay"])
    batches = examples.training_batches(settings["batch_size"], settings["seed"])
    losses, curve = [], []
    model.train()
    for step, rows in zip(range(steps), batches):
        rate = settings["learning_rate"] * (step / warmup if step < warmup else 1 - step / steps)
        inputs, labels = examples.batch(rows)
        loss = compute_loss(settings["kind"], model(**inputs), labels)
        take_step(model, optimizer, loss, rate)
        losses.append(loss.item())
        if (step + 1) % _REPORT_STEPS == 0:
            curve.append(float(np.mean(losses[-_REPORT_STEPS:])))
            print(f"step {step + 1:,} of {steps:,}  loss {curve[-1]:.4f}", flush=True)
    return steps, curve


@torch.no_grad()
def _predict(model, kind, examples, batch_size):
    """dict of logits: [N, L]; in tagging [N, S, L]; start_logits and end_logits [N, S] of spans."""
    model.eval()
    names = ("start_logits", "end_logits") if kind == "span" else ("logits",)
    results = {}
    for rows in examples.prediction_batches(batch_size):
        inputs, _ = examples.batch(rows)
        outputs = model(**inputs)
        for name in names:
            values = outputs[name].numpy()
            if name not in results:
                shape = list(values.shape)
                if kind in ("span", "tagging"):
                    shape[1] = examples.seq_length
                results[name] = np.full([examples.size, *shape[1:]], _NOWHERE, np.float32)
            if kind in ("span", "tagging"):
                results[name][rows, :values.shape[1]] = values
            else:
                results[name][rows] = values
    return results


def finetune(model_dir, training, dev, logits, metrics, num_labels=0, threads=1, **settings):
    """Fine-tunes a model, predicts with it, and writes logits (.npz) and metrics.

    Args:
        training, dev: .npz files of features [N, S] and [N, 1].
        metrics: the JSON file, written last: CPU seconds of training and prediction, steps, and the
            mean loss of every 50 steps.
        settings: kind, seed (of head, order and dropout), batch_size, predict_batch_size,
            learning_rate (the peak), num_train_epochs, warmup_proportion, weight_decay.
    """
    torch.set_num_threads(threads)
    model = _make_finetuning_model(settings["kind"], model_dir, num_labels, settings["seed"])
    start = time.process_time()
    steps, curve = _train_finetuning(model, Examples(training), settings)
    trained = time.process_time()
    results = _predict(model, settings["kind"], Examples(dev), settings["predict_batch_size"])
    seconds = {"training_cpu_seconds": trained - start,
               "prediction_cpu_seconds": time.process_time() - trained}
    with open(f"{logits}.tmp", "wb") as file:
        np.savez(file, **results)
    os.replace(f"{logits}.tmp", logits)
    with open(f"{metrics}.tmp", "w", encoding="utf-8") as file:
        json.dump({**seconds, "steps": steps, "losses": curve, "threads": threads}, file)
    os.replace(f"{metrics}.tmp", metrics)


PROGRAMS = {"pretrain": pretrain, "save_initial": save_initial, "finetune": finetune}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](**json.loads(sys.argv[2]))
