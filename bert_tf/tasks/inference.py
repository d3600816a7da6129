"""SNLI (nlp.stanford.edu/projects/snli) and SciTail (allenai.org/data/scitail)."""

from bert_tf.tasks.task import Split, Task


def _splits(files, sizes, **layout):
    return {split: Split(files=(name, f"{split}.tsv"), size=size, **layout)
            for (split, name), size in zip(files.items(), sizes, strict=True)}


TASKS = (
    # "-" is a pair on which the annotators did not agree; the official counts are without them.
    Task("snli", "classification", _splits(
        {split: f"snli_1.0_{split}.txt" for split in ("train", "dev", "test")},
        (549367, 9842, 9824), texts=("sentence1", "sentence2"), label="gold_label"),
        ("contradiction", "entailment", "neutral"), without_label="-"),
    # The folder tsv_format of SciTailV1.1; who takes its quotes for quoting, reads 23,097.
    Task("scitail", "classification", _splits(
        {split: f"scitail_1.0_{split}.tsv" for split in ("train", "dev", "test")},
        (23596, 1304, 2126), texts=(0, 1), label=2, header=False), ("entails", "neutral")),
)
