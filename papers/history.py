"""Compares systems from before and after BERT, from an untrained LSTM to T5.

Each system is pre-trained on the same text and fine-tuned on three tasks: single sentences (the
hypotheses of SNLI: does a premise that the model does not see entail or contradict them?), pairs of
sentences (SNLI), and the names in a text (CoNLL-2003, in lower case except for ELMo and T5). ELMo's
network gives features to LSTMs and is not trained further; T5 writes labels and tags as text. A
step costs the systems different times; --pretraining_steps gives each system its number of steps.

Example:
    bert-benchmark history --input_file=text.txt --data_dir=. --output_dir=/tmp/history

Result: After 150 CPU seconds of pre-training, BERT and the left-to-right model lead on names, the
LSTM without pre-training on pairs.

With an earlier form of this program: 15 MB of Wikipedia, one seed, two epochs of 10,000 examples,
for as many steps as 150 CPU seconds allow (--pretraining_steps=658,163,367,1444,533,706): sentence,
SNLI (the largest classes have 50.1 and 33.5), NER: LSTM: 65.5, 52.9, 32.3; LM-LSTM: 64.9, 48.0,
38.3; ELMo: 60.3, 43.4, 24.1; left to right: 70.3, 50.6, 45.6; BERT: 69.4, 46.4, 45.5; XLNet: 59.1,
36.7, 38.8; T5: 58.8, 39.1, 12.1.
"""

import dataclasses
import os
from collections.abc import Callable
from typing import Any

from bert_tf.config import T5Config
from bert_tf.errors import InputError
from bert_tf.files import absolute
from bert_tf.flags import option
from papers.tables.cells import Cell, Made
from papers.tables.making import program
from papers.tables.material import Material, TableFlags
from papers.tables.sentences import FLAGS, write_sentences
from papers.tables.table import Column, Table

_SENTENCE, _PAIR, _NAMES = COLUMNS = (
    Column("sentence", "dev/accuracy"), Column("SNLI", "dev/accuracy"),
    Column("NER", "dev/entity_f1"))
_SENTINELS = 100


@dataclasses.dataclass(kw_only=True)
class HistoryFlags(TableFlags):
    train_batch_size: int = option(16, "Sequences per step of pre-training.", least=1)
    pretraining_steps: list[str] = option(
        [], "Steps of pre-training of each system after the first; default: --num_train_steps.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pretraining_steps and (len(self.pretraining_steps) != len(SYSTEMS) - 1 or not all(
                map(str.isdecimal, self.pretraining_steps))):
            raise InputError(f"--pretraining_steps: give {len(SYSTEMS) - 1} numbers, one for each "
                             "system after the first.")


@dataclasses.dataclass(frozen=True)
class System:
    """A row of the table.

    Attributes:
        sizes: function of `HistoryFlags` that returns {key of the configuration: value}.
        published: scores that its paper reports.
        tokenizer: flags of `bert-build-vocab`.
        records: flags of `bert-create-pretraining-data`.
        pretraining: flags of `bert-run-pretraining`.
        tuning: flags of `bert-finetune`.
        classifier: flags of `bert-finetune` for sentences and pairs alone.
    """

    recipe: str
    sizes: Callable[[HistoryFlags], dict[str, Any]]
    published: str
    tokenizer: dict[str, Any]
    records: dict[str, Any]
    pretraining: dict[str, Any] = dataclasses.field(default_factory=dict)
    tuning: dict[str, Any] = dataclasses.field(default_factory=dict)
    classifier: dict[str, Any] = dataclasses.field(default_factory=dict)
    is_pretrained: bool = True


def _lstm(job):
    return {"model_type": "sequence_lstm", "embedding_size": job.hidden_size,
            "hidden_size": 2 * job.hidden_size, "num_hidden_layers": 1}


def _elmo(job):
    return {"model_type": "elmo", "projection_dim": job.hidden_size // 2,
            "dim": 2 * job.hidden_size, "n_layers": job.num_hidden_layers, "n_highway": 1,
            "max_characters_per_token": 24,
            "filters": [[width, job.hidden_size // 4] for width in range(1, 6)]}


def _bert(job):
    return {"hidden_size": job.hidden_size, "num_hidden_layers": job.num_hidden_layers,
            "num_attention_heads": job.hidden_size // 64, "intermediate_size": 4 * job.hidden_size,
            "max_position_embeddings": job.max_seq_length, "type_vocab_size": 2}


def _xlnet(job):
    return {"model_type": "xlnet", "d_model": job.hidden_size, "n_layer": job.num_hidden_layers,
            "n_head": job.hidden_size // 64, "d_head": 64, "d_inner": 4 * job.hidden_size,
            "mem_len": job.max_seq_length // 2}


def _t5(job):
    rows = job.vocab_size + _SENTINELS
    return {"model_type": "t5", "d_model": job.hidden_size, "num_layers": job.num_hidden_layers,
            "d_kv": 64, "num_heads": job.hidden_size // 64, "d_ff": 4 * job.hidden_size,
            "vocab_size": rows + -rows % T5Config.vocab_multiple}


_CASED = {"do_lower_case": None}
_STATIC = {"masking": None}     # the recipe's
_ADAM = {"learning_rate": 1e-3, "optimizer": "adamw"}
_TUNED = {"learning_rate": 3e-4}
_WORDS: dict[str, Any] = {
    "tokenizer": {"tokenizer": "sequence_words"}, "records": {**_STATIC, **_CASED},
    "pretraining": {"learning_rate": None}, "tuning": {"learning_rate": 1e-3, **_CASED}}
# The figures are from arXiv:1511.01432, 1810.04805 (tables 1 and 7), 1906.08237 (table 3) and
# 1910.10683 (table 1).
SYSTEMS = {
    "LSTM": System("lm_lstm", _lstm, "IMDB: 13.50% wrong", is_pretrained=False, **_WORDS),
    "LM-LSTM": System("lm_lstm", _lstm, "IMDB: 7.64% wrong", **_WORDS),
    "ELMo": System("elmo", _elmo, "GLUE 71.0, CoNLL-2003 92.2", {"tokenizer": "elmo_words"},
                   {**_STATIC, **_CASED}, {"learning_rate": None},
                   {"feature_layers": "elmo", "lstm_size": 128, "lstm_layers": 1,
                    "learning_rate": None, **_CASED}, {"head": "attentive", "head_size": 128}),
    "left to right": System("ltr", lambda job: {**_bert(job), "directionality": "left_to_right"},
                            "GLUE 75.1 (GPT)", {"do_lower_case": True}, _STATIC, _ADAM, _TUNED),
    "BERT": System("bert", _bert, "GLUE 79.6, CoNLL-2003 92.4 (base)", {"do_lower_case": True}, {},
                   _ADAM, _TUNED),
    "XLNet": System("xlnet", _xlnet, "IMDB: 3.20% wrong (large; BERT 4.51)",
                    {"tokenizer": "sentencepiece", "sentencepiece_style": "xlnet"},
                    _STATIC, _ADAM, _TUNED),
    "T5": System("t5", _t5, "GLUE 83.3 (dev, base)",
                 {"tokenizer": "sentencepiece", "sentencepiece_style": "t5"},
                 {**_STATIC, **_CASED}, {"learning_rate": None}, {"learning_rate": None}),
}
_IN_STREAMS, _MASKED = ("elmo", "lm_lstm", "xlnet"), ("bert", "xlnet")


class Chain:
    """The cells of a system."""

    def __init__(self, job: HistoryFlags, name: str) -> None:
        self.system = system = SYSTEMS[name]
        self._job, self._material, self.name = job, Material(job), name.lower().replace(" ", "-")
        self.config = {"vocab_size": job.vocab_size, **system.sizes(job)}
        self.vocabulary = self._material.vocabulary(f"vocab-{self.name}",
                                                    **{**_CASED, **system.tokenizer})
        numbers = dict(zip(list(SYSTEMS)[1:], job.pretraining_steps))
        self._steps = int(numbers.get(name, job.num_train_steps))

    def pretrained(self, seed: int) -> Made:
        """The pre-trained model."""
        own, steps = self.system, self._steps
        slots = {} if own.recipe in _MASKED else {"max_predictions_per_seq": None}
        rows = self._job.train_batch_size if own.recipe in _IN_STREAMS else None
        records = self._material.records(self.name, recipe=own.recipe, bsz_per_host=rows,
                                         vocab_file=self.vocabulary, **slots, **own.records)
        model = self._material.pretrained(self.name, records, seed, **{
            "first_weights": None, "num_train_steps": steps, "num_warmup_steps": steps // 10,
            **slots, **own.pretraining})
        return dataclasses.replace(model, files={"sizes.json": self.config}) / "model.keras"

    def tuned(self, column: Column, seed: int, sentences: str) -> Cell:
        """The model's score on a task."""
        own = self.system
        if own.recipe == "t5":
            return self._written(column, seed, sentences)
        flags = {"vocab_file": self.vocabulary, "encoder_dropout": None, **own.tuning,
                 **(own.classifier if column != _NAMES else {}),
                 **({**FLAGS, "data_dir": sentences} if column == _SENTENCE else {})}
        if own.is_pretrained:
            return self._material.tuned(column.title, self.pretrained(seed), seed, **flags)
        cell = self._material.tuned(column.title, None, seed,
                                    bert_config_file=Made("sizes.json"), **flags)
        return dataclasses.replace(cell, files={"sizes.json": self.config})

    def _written(self, column, seed, sentences):
        """T5's score."""
        task = {_SENTENCE: "sentence", _PAIR: "pair"}.get(column)
        files = ({f"{split}_file": os.path.join(sentences, f"{task}_{split}.txt")
                  for split in ("train", "dev")} if task else
                 {"tasks": ["conll2003"], "data_dir": [self._job.find(column.title)]})
        cell = Cell(f"t5-{column.title.lower()}-seed{seed}", "bert-finetune", {
            **files, "task_kind": "text_to_text",
            "init_checkpoint": self.pretrained(seed), "vocab_file": self.vocabulary,
            "do_train": True, "do_eval": True, "output_dir": Made("."), "random_seed": seed,
            "max_seq_length": self._job.max_seq_length, "eval_batch_size": 64,
            "num_train_steps": self._job.finetuning_steps,
            "train_batch_size": self._job.finetuning_batch_size})
        metric = "pairs/exact_match" if task else "conll2003/entity_f1"
        return dataclasses.replace(cell, scored_by=Column(column.title, metric, 1.0))


@program
def main(job: HistoryFlags) -> Table:
    """The table."""
    sentences = absolute(os.path.join(job.output_dir, "sentences"))
    columns = Material(job).columns(_PAIR.title, _NAMES.title)
    if snli := job.find(_PAIR.title):
        write_sentences(snli, sentences)
        columns.insert(0, _SENTENCE)
    chains = {name: Chain(job, name) for name in SYSTEMS}

    def cell(row: str, column: Column, seed: int) -> Cell:
        return chains[row].tuned(column, seed, sentences)

    return Table(
        "history", "Systems from before and after BERT", "", list(SYSTEMS), columns, cell, {},
        baseline="BERT", notes=["Published: " + "; ".join(
            f"{name}: {system.published}" for name, system in SYSTEMS.items()) + "."])
