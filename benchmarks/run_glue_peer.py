"""The peer of run_glue.py: works as transformers' example script run_glue.py, on files of texts.

The settings were read off examples/pytorch/text-classification/run_glue.py: the seed is set before
the new head is drawn, AutoTokenizer cuts pairs at the longer text, batches are padded as they are
made, and Trainer has its defaults. This program needs torch, transformers and accelerate alone; the
script itself also loads its files and its metric through two further libraries.

It is started with one argument, a JSON object of the arguments of `finetune`.
"""

import json
import math
import os
import sys

import numpy as np
import torch
import transformers


def _read(path, tokenizer, length):
    """The features of a file of JSON lines, as Trainer takes them."""
    with open(path, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return [{**tokenizer(row["sentence1"], row.get("sentence2"), max_length=length,
                         truncation=True), "label": row["label"]} for row in rows]


def finetune(model_dir, training, dev, num_labels, length, logits, output_dir, threads, seed,
             batch_size, predict_batch_size, learning_rate, num_train_epochs, warmup_proportion):
    """Fine-tunes, and writes the logits [N, L] of the dev file (.npz).

    Args:
        training, dev: files of JSON lines with sentence1, of pairs sentence2, and label.
        num_labels: 1 for numbers, which are learned by their squared error.
        output_dir: folder that the trained model is written to.
    """
    torch.set_num_threads(threads)
    transformers.set_seed(seed)
    config = transformers.AutoConfig.from_pretrained(model_dir, num_labels=num_labels)
    tokenizer = transformers.AutoTokenizer.from_pretrained(model_dir)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(
        model_dir, config=config, dtype=torch.float32)
    examples = _read(training, tokenizer, length)
    steps = math.ceil(num_train_epochs * math.ceil(len(examples) / batch_size))
    trainer = transformers.Trainer(
        model=model, train_dataset=examples, processing_class=tokenizer,
        args=transformers.TrainingArguments(
            output_dir=output_dir, use_cpu=True, seed=seed, report_to="none", save_strategy="no",
            disable_tqdm=True, logging_steps=50, per_device_train_batch_size=batch_size,
            per_device_eval_batch_size=predict_batch_size, learning_rate=learning_rate,
            num_train_epochs=num_train_epochs, warmup_steps=math.ceil(warmup_proportion * steps)))
    trainer.train()
    trainer.save_model()
    print(trainer.optimizer, flush=True)
    found = trainer.predict(_read(dev, tokenizer, length)).predictions
    with open(f"{logits}.tmp", "wb") as file:
        np.savez(file, logits=np.asarray(found, np.float32))
    os.replace(f"{logits}.tmp", logits)


if __name__ == "__main__":
    finetune(**json.loads(sys.argv[1]))
