"""Measures the effect of the shares of [MASK], kept and random tokens.

This is table 8 of BERT's paper (arXiv:1810.04805). Six models are pre-trained on the same text with
the same sizes and steps. They differ in the shares of the predicted tokens that become [MASK], stay
unchanged, or become a random token. Each is fine-tuned on MNLI and on CoNLL-2003's names. For the
last column the model is frozen, and LSTMs read its last four layers, or only the last layer of a
smaller model.

Example:
    bert-benchmark masking-rates --data_dir=glue,. --input_file=text.txt --output_dir=/tmp/tables

Result: Of 15 differences from 80/10/10, 2 have the published direction, 1 the other, and 12 are not
told from 0.

Defaults, 15 MB of Wikipedia, --pretraining_seeds=1, 9,888 pairs of MNLI (33% is chance): MNLI-m,
NER, NER features: 80/10/10: 37.6 ± 3.1, 39.8 ± 0.9, 6.5 ± 0.3; 100/0/0: 33.5 ± 0.5, 32.6 ± 3.5, 8.2
± 0.2; 80/0/20: 33.1 ± 0.6, 31.8 ± 3.4, 10.0 ± 2.6; 80/20/0: 34.9 ± 0.1, 23.6 ± 6.0, 2.7 ± 0.6;
0/20/80: 34.6 ± 1.2, 39.2 ± 0.4, 4.5 ± 1.2; 0/0/100: 33.6 ± 0.5, 30.5 ± 3.6, 9.4 ± 1.9.
"""

from papers.tables.making import program
from papers.tables.material import COLUMNS, Material, TableFlags
from papers.tables.table import Column, Table

# Share of [MASK], of the same token, and of random tokens; MNLI, NER fine-tuned, NER by features.
PUBLISHED = {
    (80, 10, 10): (84.2, 95.4, 94.9), (100, 0, 0): (84.3, 94.9, 94.0),
    (80, 0, 20): (84.1, 95.2, 94.6), (80, 20, 0): (84.4, 95.2, 94.7),
    (0, 20, 80): (83.7, 94.8, 94.6), (0, 0, 100): (83.6, 94.9, 94.6)}
ROWS = {"{}/{}/{}".format(*rates): rates for rates in PUBLISHED}
_FEATURES = "NER features"


@program
def main(job: TableFlags) -> Table:
    """The table."""
    material = Material(job)
    columns = material.columns("MNLI-m", "NER")
    if any(column.title == "NER" for column in columns):
        columns.append(Column(_FEATURES, COLUMNS["NER"][1]))
    layers = "concat_last_4" if job.num_hidden_layers >= 4 else "last"

    def cell(row, column, seed):
        masked, _, random = ROWS[row]
        rates = "-".join(map(str, ROWS[row]))
        model = material.pretrained(rates, material.records(
            rates, mask_shares=[f"{masked / 100:g}", f"{random / 100:g}"]), seed) / "model.keras"
        if column.title != _FEATURES:
            return material.tuned(column.title, model, seed)
        return material.tuned("NER", model, seed, feature_layers=layers, lstm_size=64,
                              learning_rate=1e-3)

    return Table(
        "masking-rates", "Masking rates: [MASK], the same, a random token",
        "table 8 of arXiv:1810.04805 (BERT-Base)", list(ROWS), columns, cell,
        {row: dict(zip(("MNLI-m", "NER", _FEATURES), PUBLISHED[rates]))
         for row, rates in ROWS.items()})
