"""SWAG: which of four endings goes on from a sentence (github.com/rowanz/swagaf, data)."""

from bert_tf.tasks.task import Defaults, Split, Task


def _split(name, size, label="label"):
    return Split((f"{name}.csv",), ("sent1", "sent2"), label, ("ending*",), format="csv", size=size)


SWAG = Task("swag", "multiple_choice", {
    "train": _split("train", 73546), "dev": _split("val", 20006),
    "test": _split("test", 20005, label=None)}, defaults=Defaults(train_batch_size=16))
