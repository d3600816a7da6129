"""The peer of compare_finetuning: transformers fine-tunes on the very same features.

It runs under an interpreter of its own, which needs numpy, torch and transformers alone, and is
started by compare_finetuning with one argument, a JSON object of what `main` takes.
"""

import json
import os
import sys
import time

import numpy as np
import torch
import transformers
from torch.nn.functional import cross_entropy, mse_loss
from torch_training import make_optimizer, take_step

_MODELS = {"classification": "BertForSequenceClassification",
           "regression": "BertForSequenceClassification",
           "span": "BertForQuestionAnswering", "tagging": "BertForTokenClassification"}
_INPUTS = {"input_ids": "input_ids", "input_mask": "attention_mask",
           "segment_ids": "token_type_ids"}
_POOL = 32              # batches within which examples of like length come together
_REPORT_STEPS = 50
_NOWHERE = -1e4         # the logit of positions that a batch was cut by


class Examples:
    """The features of N examples, cut into batches of like length.

    Args:
        path: .npz of the features, [N, S] and [N, 1].
    """

    def __init__(self, path):
        self._arrays = dict(np.load(path))
        self._lengths = self._arrays["input_mask"].sum(1)
        self.size, self.seq_length = self._arrays["input_ids"].shape

    def batch(self, rows):
        """(arguments of the model, the features that name the labels), dicts of tensors.

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


def make_model(kind, model_dir, num_labels, seed):
    """The encoder of a Hugging Face folder with a new head, drawn from normal(0, 0.02)."""
    torch.manual_seed(seed)
    options = {} if kind == "span" else {"num_labels": num_labels}
    model = getattr(transformers, _MODELS[kind]).from_pretrained(
        model_dir, dtype=torch.float32, **options)
    assert model.config.initializer_range == 0.02, model.config
    return model


def train(model, examples, settings):
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
def predict(model, kind, examples, batch_size):
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


def main(model_dir, training, dev, logits, metrics, num_labels=0, threads=1, **settings):
    """Trains, predicts, and writes logits and metrics.

    Args:
        model_dir: Hugging Face folder of a BERT.
        training, dev: .npz files of features [N, S] and [N, 1].
        logits: the .npz file to write, see `predict`.
        metrics: the JSON file to write, after the logits: seconds of the processor that training
            and prediction took, steps, and the mean loss of every 50 steps.
        num_labels: L, 1 in regression.
        threads: of torch.
        settings: kind, seed (of head, order and dropout), batch_size, predict_batch_size,
            learning_rate (the peak), num_train_epochs, warmup_proportion, weight_decay.
    """
    torch.set_num_threads(threads)
    model = make_model(settings["kind"], model_dir, num_labels, settings["seed"])
    start = time.process_time()
    steps, curve = train(model, Examples(training), settings)
    trained = time.process_time()
    results = predict(model, settings["kind"], Examples(dev), settings["predict_batch_size"])
    seconds = {"training_cpu_seconds": trained - start,
               "prediction_cpu_seconds": time.process_time() - trained}
    with open(f"{logits}.tmp", "wb") as file:
        np.savez(file, **results)
    os.replace(f"{logits}.tmp", logits)
    with open(f"{metrics}.tmp", "w", encoding="utf-8") as file:
        json.dump({**seconds, "steps": steps, "losses": curve, "threads": threads}, file)
    os.replace(f"{metrics}.tmp", metrics)


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
