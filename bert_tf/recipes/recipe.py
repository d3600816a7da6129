"""A kind of pre-training: how records are made, and which network and losses learn from them."""

import dataclasses
import importlib
import json
from collections.abc import Mapping
from typing import Any


def load(name: str) -> Any:
    """Returns what a row names by its dotted name in `bert_tf`."""
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(f"bert_tf.{module}"), attribute)


@dataclasses.dataclass(frozen=True)
class Segments:
    """Settings of cutting sequences from documents.

    Attributes:
        pairing: a key of `data.segments.pairing.PAIRINGS`; the value of --segments.
        negatives: the pairs of the other label: "random", B is text from elsewhere; "swapped", A
            and B are in the wrong order; or "three_way", both kinds, with a label each.
        sentence_ends: whether a separator follows every sentence, and one more every document.
        random_share: share of the pairs that get a B from elsewhere, where B may be in order.
        swapped_share: share of the other pairs that are swapped, with negatives="three_way".
        next_label: the label of a pair in order, 0 for BERT.
        autoencoder: whether a text is read once more to predict the text itself, not only the text
            that follows (arXiv:1511.01432).
        num_labels: classes of the labels that a user's file gives; 0 without such labels.
    """

    pairing: str = "segment_pairs"
    negatives: str = "random"
    sentence_ends: bool = False
    random_share: float = 0.5
    swapped_share: float = 0.5
    next_label: int = 0
    bare: bool = False
    autoencoder: bool = False
    reverse: bool = False
    num_labels: int = 0


@dataclasses.dataclass(frozen=True)
class MaskTokens:
    """Settings of predicted tokens, and of the tokens that the model sees in their place.

    Attributes:
        masking: a key of `data.masking.MASKINGS`, which chooses and hides tokens.
        units: the tokens that are predicted together or not at all: "subwords", one at a time;
            "words", with all their sub-words; "tags", words that follow each other under one tag;
            or "phrases" of a list. A word outside of tags and phrases is a unit by itself.
        replace_from: the source of random tokens: "vocabulary"; "words", all but special tokens,
            [MASK] included; "corpus", as often as the text has them; or "tokens", any but padding,
            id 0.
        shares: share of the predicted tokens that become [MASK], and share that become a random
            token. The others keep their token.
        dynamic: whether masks are drawn while training; the records then hold the whole text.
        settings: {field of the masking's class: value}, where it has not its default.
    """

    masking: str = "bert"
    units: str = "subwords"
    replace_from: str = "vocabulary"
    shares: tuple[float, float] = (0.8, 0.1)
    dynamic: bool = False
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict, hash=False)

    def vary(self, values: Mapping[str, Any]) -> "MaskTokens":
        shared = {field.name for field in dataclasses.fields(MaskTokens)}
        settings = {name: value for name, value in values.items() if name not in shared}
        changes: dict[str, Any] = {name: values[name] for name in values if name in shared}
        return dataclasses.replace(self, **{"settings": {**self.settings, **settings}, **changes})

    def describe(self) -> dict[str, Any]:
        return json.loads(json.dumps(dataclasses.asdict(self)))

    @classmethod
    def from_description(cls, values: Mapping[str, Any]) -> "MaskTokens":
        def with_tuples(values):
            return {name: tuple(value) if isinstance(value, list) else value
                    for name, value in values.items()}

        return cls(**with_tuples({**values, "settings": with_tuples(values.get("settings", {}))}))


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
        also: class names of other networks that go on learning by the recipe.
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
    also: tuple[str, ...] = ()
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
        """An ablation: this recipe with other values, {field of `Segments`: value} and {field or
        setting of `MaskTokens`: value}."""
        return dataclasses.replace(
            self, segments=dataclasses.replace(self.segments, **(segments or {})),
            corruption=self.corruption.vary(corruption or {}), **fields)
