"""GLUE as gluebenchmark.com distributes it: one row a task (arXiv:1804.07461, table 1)."""

from bert_tf.tasks.task import Split, Task

_FILES = {"train": "train.tsv", "dev": "dev.tsv", "test": "test.tsv"}
_SENTENCES = ("sentence1", "sentence2")
_BINARY = ("0", "1")
_MNLI = ("contradiction", "entailment", "neutral")      # the order of the original


def _row(name, texts, labels, sizes, submissions, *, kind="classification", label="label",
         files=None, train_dev=None, **fields):
    """A task with its official files.

    Args:
        sizes: the official number of examples of each file, in the order of `files`.
        submissions: what the server calls the predictions of each test file.
        files: dict of split -> file, if not train.tsv, dev.tsv, test.tsv; those of test have no
            labels.
        train_dev: what differs from the test files in the others (fields of `Split`).
    """
    splits, submissions = {}, iter(submissions)
    for (split, file), size in zip((files or _FILES).items(), sizes, strict=True):
        if split.startswith("test"):
            layout = {"texts": texts, "submission": next(submissions)}
        else:
            layout = {"texts": texts, "label": label, **(train_dev or {})}
        splits[split] = Split(files=(file,), size=size, **layout)
    return Task(name, kind, splits, labels, **fields)


TASKS = (
    _row("cola", ("sentence",), _BINARY, (8551, 1043, 1063), ("CoLA.tsv",),
         metrics=("matthews", "accuracy"), train_dev={"header": False, "texts": (3,), "label": 1}),
    _row("sst-2", ("sentence",), _BINARY, (67349, 872, 1821), ("SST-2.tsv",)),
    _row("mrpc", ("#1 String", "#2 String"), _BINARY, (3668, 408, 1725), ("MRPC.tsv",),
         metrics=("f1", "accuracy"), label="Quality"),
    _row("sts-b", _SENTENCES, (), (5749, 1500, 1379), ("STS-B.tsv",),
         metrics=("pearson", "spearman"), kind="regression", label="score", bounds=(0, 5)),
    # The whole lines; a few of train and dev are broken.
    _row("qqp", ("question1", "question2"), _BINARY, (363849, 40430, 390965), ("QQP.tsv",),
         metrics=("f1", "accuracy"), label="is_duplicate"),
    _row("mnli", _SENTENCES, _MNLI, (392702, 9815, 9832, 9796, 9847), ("MNLI-m.tsv", "MNLI-mm.tsv"),
         label="gold_label", files={
             "train": "train.tsv",
             "dev_matched": "dev_matched.tsv", "dev_mismatched": "dev_mismatched.tsv",
             "test_matched": "test_matched.tsv", "test_mismatched": "test_mismatched.tsv"}),
    _row("qnli", ("question", "sentence"), ("entailment", "not_entailment"),
         (104743, 5463, 5463), ("QNLI.tsv",)),
    _row("rte", _SENTENCES, ("entailment", "not_entailment"), (2490, 277, 3000), ("RTE.tsv",)),
    _row("wnli", _SENTENCES, _BINARY, (635, 71, 146), ("WNLI.tsv",)),
    _row("ax", _SENTENCES, _MNLI, (1104, 1104), ("AX.tsv",), metrics=("matthews", "accuracy"),
         model_of="mnli", files={"dev": "diagnostic-full.tsv", "test": "diagnostic.tsv"},
         train_dev={"texts": ("Premise", "Hypothesis"), "label": "Label"}),
)
