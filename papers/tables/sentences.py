"""Single sentences to classify: the second ones of SNLI that are entailed or contradicted."""

import csv
import os

from bert_tf.files import make_folder, write_aside
from bert_tf.tasks.named import find_task
from bert_tf.tasks.reading import read_examples

LABELS = ("contradiction", "entailment")
# The flags of bert-finetune that name the files.
FLAGS = {"train_file": "train.tsv", "dev_file": "dev.tsv",
         "text_a_column": "sentence", "label_column": "label", "labels": list(LABELS)}


def write_sentences(source: str, folder: str) -> None:
    """Writes train.tsv and dev.tsv with sentences and labels; and sentence_SPLIT.txt and
    pair_SPLIT.txt for models that write labels: input, a tab, target.

    Args:
        source: the folder of SNLI's official files.
    """
    task = find_task("snli")
    make_folder(folder, "output_dir")
    for split in ("train", "dev"):
        rows = [(*example.texts, task.labels[example.label])
                for example in read_examples(task, split, task.path(source, split))]
        sentences = [row[1:] for row in rows if row[2] in LABELS]
        with write_aside(os.path.join(folder, f"{split}.tsv")) as file:
            writer = csv.writer(file, delimiter="\t", lineterminator="\n")
            writer.writerow(("sentence", "label"))
            writer.writerows(sentences)
        for name, lines in (
                ("sentence", (f"sentence a: {text}\t{label}\n" for text, label in sentences)),
                ("pair", (f"pair a: {a} pair b: {b}\t{label}\n" for a, b, label in rows))):
            with write_aside(os.path.join(folder, f"{name}_{split}.txt")) as file:
                file.writelines(lines)
