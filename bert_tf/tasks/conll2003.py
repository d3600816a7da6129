"""CoNLL-2003 named entities (clips.uantwerpen.be/conll2003/ner): word, two more columns, tag."""

from bert_tf.tasks.task import Split, Task

_FILES = {"train": ("eng.train", "train.txt"), "dev": ("eng.testa", "valid.txt", "dev.txt"),
          "test": ("eng.testb", "test.txt")}
_SIZES = (14041, 3250, 3453)

CONLL2003 = Task(
    "conll2003", "tagging",
    {split: Split(files, (0,), -1, format="words", header=False, size=size)
     for (split, files), size in zip(_FILES.items(), _SIZES)},
    ("O", *(f"{place}-{name}" for name in ("LOC", "MISC", "ORG", "PER") for place in "BI")),
    metrics=("entity_f1", "entity_precision", "entity_recall", "tag_accuracy"))
