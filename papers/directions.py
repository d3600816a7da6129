"""Measures the effect of two directions and of sentence prediction, at small size.

This is table 5 of BERT's paper (arXiv:1810.04805). Four systems are trained on the same text, with
the same sizes and steps: BERT; the same without next sentence prediction; a left-to-right network
that predicts every next token, without sentence prediction; and that network with a bidirectional
LSTM on top in fine-tuning. Each is fine-tuned on the tasks in the columns, if their files are
there. Single sentences are the hypotheses of SNLI: does a premise that the model does not see
entail or contradict the sentence? The losses of pre-training are not compared: one system predicts
15% of the tokens, the other all.

Example:
    bert-benchmark directions --input_file=text.txt --data_dir=glue \\
        --squad_train_file=train.json --squad_predict_file=dev.json --output_dir=/tmp/tables

Result: On MNLI-m the left-to-right model is ahead by 7.4 ± 1.6 points, unlike in the paper.

Defaults, 15 MB of Wikipedia, --pretraining_seeds=1, 9,888 pairs of MNLI, SQuAD on 8,859 questions:
MNLI-m, MRPC, SQuAD F1; BERT: 37.6 ± 3.1, 70.4 ± 1.3, 9.0 ± 0.6; No NSP: 38.0 ± 3.2, 71.2 ± 1.0, 9.2
± 0.5; LTR & No NSP: 45.0 ± 0.3, 70.8 ± 0.4, 9.7 ± 0.5; + BiLSTM: 44.1 ± 1.2, 70.4 ± 1.4, 9.9 ± 0.1.
In 1,000 steps the left-to-right model has learned from six times as many predictions.
"""

import os

from bert_tf.files import absolute
from papers.tables.cells import Cell
from papers.tables.making import program
from papers.tables.material import Material, TableFlags
from papers.tables.sentences import FLAGS, write_sentences
from papers.tables.table import Column, Table

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
_SENTENCE = Column("sentence", "dev/accuracy")


@program
def main(job: TableFlags) -> Table:
    """The table."""
    material, snli = Material(job), job.find("SNLI")
    folder = absolute(os.path.join(job.output_dir, "sentences"))
    columns = material.columns(*TASKS, may_lack=bool(snli))
    if snli and (not job.columns or _SENTENCE.title in job.columns):
        write_sentences(snli, folder)

    def cell(row: str, column: Column, seed: int) -> Cell:
        name, options, has_lstm = SYSTEMS[row]
        flags = {"bilstm_size": job.hidden_size} if has_lstm else {}
        if column == _SENTENCE:
            flags |= {**FLAGS, "data_dir": folder}
        model = material.pretrained(name, material.records(), seed, **options) / "model.keras"
        return material.tuned(column.title, model, seed, **flags)

    return Table(
        "directions", "Two directions, and next sentences", "table 5 of arXiv:1810.04805 "
        "(BERT-Base, dev sets)", list(SYSTEMS), columns + [_SENTENCE] * bool(snli), cell,
        {row: dict(zip(TASKS, figures)) for row, figures in PUBLISHED.items()})
