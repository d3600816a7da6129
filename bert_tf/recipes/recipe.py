"""A kind of pre-training: how records are made, and which network and losses learn from them."""

import dataclasses
import importlib
from collections.abc import Mapping
from typing import Any

from bert_tf.recipes.corruption import MaskTokens, Segments


def load(name: str) -> Any:
    """Returns what a row names by its dotted name in `bert_tf`."""
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(f"bert_tf.{module}"), attribute)


@dataclasses.dataclass(frozen=True)
class Term:
    """One term of the loss.

    Attributes:
        objective: class name of the objective in `bert_tf.objectives`.
        options: arguments of the objective in addition to the configuration.
        of_records: further arguments, each the value of a field of the records' masking or
            segments.
        network: "encoder", or another network of the learner, whose outputs the objective reads.
        optional: whether it is left out where the records lack features that it reads.
        by_name: whether it is trained only where --terms names it.
        task: the recipe's task whose records it learns from; the term is left out where there are
            no such records. Empty: all records.
    """

    objective: str
    weight: float = 1.0
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    network: str = "encoder"
    optional: bool = False
    by_name: bool = False
    of_records: Mapping[str, str] = dataclasses.field(default_factory=dict)
    task: str = ""

    def for_records(self, masking: MaskTokens, segments: Segments) -> "Term":
        return dataclasses.replace(self, options={**self.options, **{
            name: getattr(masking if hasattr(masking, field) else segments, field)
            for name, field in self.of_records.items()}})


@dataclasses.dataclass(frozen=True)
class Task:
    """One of the tasks of a recipe that has several kinds of records.

    Attributes:
        token_labels: the tokens' labels, a key of `data.instances.pretraining.TOKEN_LABELS`; empty
            if they have none.
        labels: of pairs of texts in a user's file, in the order of their ids; empty: the file's.
    """

    segments: Segments
    masked: bool = False
    token_labels: str = ""
    labels: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Recipe:
    """A kind of pre-training.

    Attributes:
        paper: arXiv number, or where it is not there, its name.
        tokenizer: kind of tokenizer, as `tokenizer.describe()` names it.
        tokenizer_settings: further settings of the tokenizer, see `tokenizer.describe()`.
        instances: class of the instances that the records are made from, by its dotted name in
            `bert_tf`.
        denoising: how the records' inputs and targets are made; None: they have none.
        network: class name of the network, as `bert_tf.networks` exports it.
        learner: class of the learner, by its dotted name in `bert_tf`.
        settings: the dataclasses of flags that only such recipes have in training, by their dotted
            names in `bert_tf`. The learner takes an object of the first.
        counts_tokens: whether training needs the number of each token in the text.
        tasks: {name: `Task`} where there are several kinds of records, which have the features of
            all of them.
        mixture: class of the records of all tasks together, by its dotted name in `bert_tf`.
        task: the task whose records are meant; empty if it is open, or if there is one kind.
        defaults: {flag: its default under this recipe}.
        sizes: {key of the configuration: value} that it gives every size of BERT.
        presets: {size: {key of the configuration: value}}, its own published sizes; these values
            come before `sizes`.
    """

    name: str
    paper: str
    tokenizer: str = "wordpiece"
    tokenizer_settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    segments: Segments = Segments()
    corruption: MaskTokens = MaskTokens()
    instances: str = "data.instances.pretraining.Instances"
    denoising: Any = None
    network: str = "BertEncoder"
    terms: tuple[Term, ...] = (Term("MaskedLM"), Term("SentencePrediction"))
    learner: str = "training.learners.learner.Learner"
    settings: tuple[str, ...] = ()
    counts_tokens: bool = False
    tasks: Mapping[str, Task] = dataclasses.field(default_factory=dict)
    mixture: str = ""
    task: str = ""
    defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    sizes: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    presets: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)

    @property
    def source(self) -> str:
        return f"arXiv:{self.paper}" if self.paper[0].isdigit() else self.paper

    def describe(self) -> dict[str, Any]:
        """The data half as a JSON value, for the manifest of the records."""
        return {"name": self.name, "tokenizer": self.tokenizer,
                "tokenizer_settings": dict(self.tokenizer_settings), "task": self.task,
                "segments": dataclasses.asdict(self.segments),
                "corruption": self.corruption.describe(),
                "denoising": self.denoising and dataclasses.asdict(self.denoising)}

    @property
    def chooses_tokens(self) -> bool:
        """Whether it chooses tokens to predict: language models predict all, decoders targets."""
        return not self.denoising and self.corruption.masking != "next_token"

    def of_task(self, name: str) -> "Recipe":
        task = self.tasks[name]
        return self.vary(corruption={} if task.masked else {"masking": "none"}, task=name,
                         segments=dataclasses.asdict(task.segments))

    @property
    def token_labels(self) -> str:
        return self.tasks[self.task].token_labels if self.task else ""

    @property
    def task_id(self) -> int:
        """The number of the task, the value of the feature `task_ids`."""
        return list(self.tasks).index(self.task)

    def vary(self, segments: Mapping[str, Any] | None = None,
             corruption: Mapping[str, Any] | None = None, **fields: Any) -> "Recipe":
        """An ablation: this recipe with other values.

        Args:
            segments, corruption: {field of `Segments`, or field or setting of `MaskTokens`: value}.
        """
        return dataclasses.replace(
            self, segments=dataclasses.replace(self.segments, **(segments or {})),
            corruption=self.corruption.vary(corruption or {}), **fields)
