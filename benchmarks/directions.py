"""Measures the effect of two directions and of sentence prediction, at small size.

This is table 5 of BERT's paper (arXiv:1810.04805). Four systems are trained on the same text, with
the same sizes and steps: BERT; the same without next sentence prediction; a left-to-right network
that predicts every next token, without sentence prediction; and that network with a bidirectional
LSTM on top in fine-tuning. Each is fine-tuned on the tasks in the columns, if their files are
there. With --snli_dir there is a column of single sentences, the hypotheses of SNLI: does a premise
that the model does not see entail or contradict the sentence? The losses of pre-training are not
compared: one system predicts 15% of the tokens, the other all.

Run the same command again to resume; several processes share the work. Writes directions.md, .json
and .png.

Example:
    bert-benchmark directions --input_file=text.txt --data_dir=glue \\
        --squad_train_file=train.json --squad_predict_file=dev.json --output_dir=/tmp/tables
"""

import csv
import dataclasses
import os

from benchmarks.tables.cells import Cell
from benchmarks.tables.making import make
from benchmarks.tables.material import Material, TableFlags
from benchmarks.tables.table import Column, Table
from bert_tf import flags
from bert_tf.errors import InputError
from bert_tf.files import absolute, make_folder, write_aside
from bert_tf.flags import option
from bert_tf.tasks.named import find_task
from bert_tf.tasks.reading import read_examples

TASKS = ("MNLI-m", "QNLI", "MRPC", "SST-2", "SQuAD")
# The dev sets, BERT-Base.
PUBLISHED = {"BERT": (84.4, 88.4, 86.7, 92.7, 88.5), "No NSP": (83.9, 84.9, 86.5, 92.6, 87.9),
             "LTR & No NSP": (82.1, 84.3, 77.5, 92.1, 77.8),
             "+ BiLSTM": (82.1, 84.1, 75.7, 91.6, 84.9)}
# Of each system: the name and the flags of its pre-training, and whether an LSTM is added.
SYSTEMS = {"BERT": ("bert", {"recipe": "bert"}, False),
           "No NSP": ("no-nsp", {"recipe": "bert", "terms": ["masked_lm"]}, False),
           "LTR & No NSP": ("ltr", {"recipe": "ltr"}, False),
           "+ BiLSTM": ("ltr", {"recipe": "ltr"}, True)}
_SENTENCE = "sentence"
_SENTENCE_LABELS = ("contradiction", "entailment")


@dataclasses.dataclass(kw_only=True)
class DirectionsFlags(TableFlags):
    """The material, the sizes, and how long to train."""

    snli_dir: str = option("", "Folder of SNLI's official files, for the column of sentences.")
    mrpc_dir: str = option("", "Folder of MRPC's official files, if --data_dir has no MRPC.",
                           rare=True)
    num_train_epochs: float = option(
        0.0, "Epochs on each task except SQuAD and single sentences, in place of "
        "--finetuning_steps.",
        rare=True, least=0)
    sentence_epochs: float = option(0.0, "Epochs on single sentences.", rare=True, least=0)
    squad_epochs: float = option(0.0, "Epochs on SQuAD.", rare=True, least=0)

    def find(self, column: str) -> str:
        if column == _SENTENCE:
            return self.snli_dir and absolute(os.path.join(self.output_dir, "sentences"))
        found = super().find(column)
        return absolute(self.mrpc_dir) if column == "MRPC" and self.mrpc_dir else found


def write_sentences(job: DirectionsFlags) -> None:
    """The second sentences of SNLI that are entailed or contradicted, with their labels, as TSV."""
    task = find_task("snli")
    for split in ("train", "dev"):
        examples = read_examples(task, split, task.path(job.snli_dir, split))
        rows = [(example.texts[1], task.labels[example.label]) for example in examples]
        make_folder(job.find(_SENTENCE), "output_dir")
        with write_aside(os.path.join(job.find(_SENTENCE), f"{split}.tsv")) as file:
            writer = csv.writer(file, delimiter="\t", lineterminator="\n")
            writer.writerow(("sentence", "label"))
            writer.writerows(row for row in rows if row[1] in _SENTENCE_LABELS)


def declare(job: DirectionsFlags) -> Table:
    """The table."""
    material = Material(job)
    sentences = [Column(_SENTENCE, "dev/accuracy")] * bool(job.snli_dir)
    try:
        columns = material.columns(*TASKS)
    except InputError:
        if not sentences:
            raise
        columns = []

    def cell(row: str, column: Column, seed: int) -> Cell:
        name, options, has_lstm = SYSTEMS[row]
        flags_of = {"bilstm_size": job.hidden_size} if has_lstm else {}
        epochs = {_SENTENCE: job.sentence_epochs, "SQuAD": job.squad_epochs}.get(
            column.title, job.num_train_epochs)
        if epochs:
            flags_of |= {"num_train_steps": None, "num_train_epochs": epochs}
        if column.title == _SENTENCE:
            flags_of |= {"train_file": "train.tsv", "dev_file": "dev.tsv", "task": None,
                         "text_a_column": _SENTENCE, "label_column": "label",
                         "labels": list(_SENTENCE_LABELS)}
        model = material.pretrained(name, material.records(), seed, **options) / "model.keras"
        return material.tuned(column.title, model, seed, **flags_of)

    return Table(
        "directions", "Two directions, and next sentences", "table 5 of arXiv:1810.04805 "
        "(BERT-Base, dev sets)", list(SYSTEMS), columns + sentences, cell,
        {row: dict(zip(TASKS, figures)) for row, figures in PUBLISHED.items()})


def main(job: DirectionsFlags) -> None:
    """Trains the cells that are missing, and reports."""
    if job.snli_dir:
        write_sentences(job)
    make(declare(job), job)


def run() -> None:
    flags.run(main, DirectionsFlags)


if __name__ == "__main__":
    run()
