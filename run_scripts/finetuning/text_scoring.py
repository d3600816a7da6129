"""A model that writes texts, and a split of its task, with the interface of `scoring`."""

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from bert_tf import analysis
from bert_tf.errors import InputError
from bert_tf.models.t5 import scores as text_scores
from bert_tf.models.t5.records import TextPairs
from bert_tf.models.t5.task_files import SPLITS, TextFlags
from bert_tf.models.t5.tasks import TextExample, TextTask
from bert_tf.opening import open_model
from bert_tf.predictor import Predictor
from bert_tf.tasks.kinds.text_to_text import encode
from bert_tf.tasks.task_flags import TaskFlags, check_only


class ScoredTextModel:
    """The model of a folder, which writes a text for a text. `task_flags` has the task of --tasks,
    and its `data_dir`; or a `dev_file` of pairs, and for importance a `train_file`. Raises
    InputError if there is no such task or file."""

    def __init__(self, model_dir: str, task_flags: TaskFlags, batch_size: int = 32,
                 splits: Mapping[str, str] = MappingProxyType({})) -> None:
        check_only(task_flags, ("task", "data_dir", "train_file", "dev_file"), "texts")
        self._flags = TextFlags(
            tasks=list(filter(None, [task_flags.task])),
            data_dir=list(filter(None, [task_flags.data_dir])),
            train_file=task_flags.train_file, dev_file=task_flags.dev_file)
        for flag, name in splits.items():
            self.split(name, flag=flag)
        model = open_model(model_dir, finetuned=True)
        self.learner, self.saved, self.tokenizer = model.learner(), model.saved, model.tokenizer
        self.batch_size = batch_size
        self.write = Predictor.from_learner(self.learner, self.tokenizer, self.saved, batch_size)
        self.metric = self.split().task.metrics[0]

    def split(self, name: str = "", examples: int = 0, flag: str = "--split") -> "TextSplit":
        """The examples of a split, "dev" if empty; the first ones, or with 0 all."""
        name = name or "dev"
        if name not in SPLITS[:2]:
            raise InputError(f"{flag}: choose from {', '.join(SPLITS[:2])}.")
        file = self._flags.open(name == "train", name == "dev", False).of(name)[0]
        return TextSplit(self, name, file.task, file.examples[:examples or None])


@dataclasses.dataclass
class TextSplit:
    """The examples of a split, and how a model's texts for them are scored."""

    model: ScoredTextModel
    name: str
    task: TextTask
    examples: list[TextExample]

    @property
    def size(self) -> int:
        return len(self.examples)

    records = size      # each is read as one

    def identity(self) -> str:
        content = json.dumps([dataclasses.astuple(example) for example in self.examples])
        return hashlib.sha256(content.encode()).hexdigest()

    def answer(self) -> list[str]:
        return [written["text"] for written in self.model.write(
            [example.input for example in self.examples])]

    def score(self, texts: list[str]) -> float:
        return text_scores.score(self.task, self.examples, texts)[self.model.metric]

    def chance(self, first: list[str], second: list[str]) -> float | None:
        """See `analysis.p_value`; None where an example has several right answers."""
        if any(example.answers for example in self.examples):
            return None
        return analysis.p_value(*(
            text_scores.read_texts(self.task, texts)
            for texts in ([example.target for example in self.examples], first, second)),
            self.model.metric)

    def batches(self, size: int) -> Iterator[dict[str, np.ndarray]]:
        """The features of all examples with targets, in order; the last batch may be smaller."""
        saved, tokenizer = self.model.saved, self.model.tokenizer
        for start in range(0, self.size, size):
            sides: Any = [encode([getattr(example, side) for example in
                                  self.examples[start:start + size]], tokenizer, most)[0]
                          for side, most in (("input", saved.max_seq_length),
                                             ("target", saved.options["max_target_length"]))]
            pairs = TextPairs(*sides, *(int(side.lengths.max()) for side in sides))
            yield pairs.features(pairs.order)
