"""The files of tasks as text, and their examples."""

import dataclasses

import numpy as np

from bert_tf.data.denoising.inputs_and_targets import Runs
from bert_tf.errors import InputError, counted
from bert_tf.tasks.named import TASKS
from bert_tf.tasks.task import Task
from bert_tf.tasks.text_tasks import TEXT_TASKS, TextExample, TextTask, read_split

_MOST_TARGETS = 512     # tokens


@dataclasses.dataclass(frozen=True)
class TaskFiles:
    """A task and, by split, its files: (the name in reports, the path, the official split)."""

    task: TextTask
    files: dict[str, tuple[tuple[str, str, str], ...]]


@dataclasses.dataclass(frozen=True)
class Sources:
    """The files of a run; `data.batches.text_mixture.mixing_rates` explains `maximum` and
    `temperature`."""

    tasks: list[TaskFiles]
    maximum: int | None = None
    temperature: float = 1.0
    _read: dict = dataclasses.field(default_factory=dict, compare=False, repr=False)
    _cut: dict = dataclasses.field(default_factory=dict, compare=False, repr=False)

    def of(self, split: str) -> dict[str, tuple[TextTask, list[TextExample]]]:
        """Returns the examples of a split's files, by the name in reports."""
        return {name: (source.task, self._examples(source.task.name, known, path))
                for source in self.tasks for name, path, known in source.files.get(split, ())}

    def _examples(self, task, split, path):
        """The examples of a file, which is read once."""
        key = task, split, path
        if key not in self._read:
            self._read[key] = list(read_split(TEXT_TASKS[task], split, path))
        if not self._read[key]:
            raise InputError(f"{path} holds no example with a target; give a file with targets.")
        return self._read[key]

    def official(self, name: str, split: str) -> tuple[Task, str, str] | None:
        """Returns the official task, the split and the path of a file, by its name in reports; None
        if it has no official task."""
        return next(((TASKS[source.task.official or source.task.submitted], known, path)
                     for source in self.tasks
                     for other, path, known in source.files.get(split, ())
                     if other == name and (source.task.official or source.task.submitted)), None)

    def mixture(self, tokenizer, max_seq_length: int, max_target_length: int,
                is_padded: bool = False):
        """Returns the `TextMixture` to train on."""
        from bert_tf.data.batches.text_mixture import TextMixture, mixing_rates
        tasks = {}
        for name, (_, examples) in self.of("train").items():
            inputs, cut = encode([example.input for example in examples], tokenizer, max_seq_length)
            targets, more = encode([example.target for example in examples], tokenizer,
                                   max_target_length)
            tasks[name], self._cut[name] = (inputs, targets), (cut, more)
        rates = mixing_rates([len(targets) for _, targets in tasks.values()], self.maximum,
                             self.temperature)
        return TextMixture(tasks, rates, max_seq_length, max_target_length, is_padded)

    def describe(self) -> str:
        """Returns the report's line about the training data of `mixture`."""
        from bert_tf.data.batches.text_mixture import mixing_rates
        sizes = {name: len(examples) for name, (_, examples) in self.of("train").items()}
        rates = mixing_rates(list(sizes.values()), self.maximum, self.temperature)
        return "training on " + ", ".join(
            f"{name} ({size:,} examples, {rate:.1%} of a batch{self._of_cut(name)})"
            for (name, size), rate in zip(sizes.items(), rates))

    def _of_cut(self, name):
        inputs, targets = self._cut.get(name, (0, 0))
        return (f"; cut to fit: {counted(inputs, 'input')} (--max_seq_length), "
                f"{counted(targets, 'target')} (--max_target_length)" if inputs or targets else "")


def encode(texts: list[str], tokenizer, length: int) -> tuple[Runs, int]:
    """Returns texts as runs of at most `length` tokens, with a final token, and how many texts were
    cut to fit."""
    ids, lengths = tokenizer.encode_lines(texts)
    ends = lengths.cumsum()
    runs = Runs.join(np.append(ids[end - size:end][:length - 1], tokenizer.vocabulary.sep_id)
                     for end, size in zip(ends.tolist(), lengths.tolist()))
    return runs, int((lengths >= length).sum())


def longest_target(sources: Sources, tokenizer) -> int:
    """Returns the number of tokens of the longest target of all files, at most 512; 0 without
    targets."""
    longest = 0
    for split in ("train", "dev"):
        for _, examples in sources.of(split).values():
            targets = {example.target for example in examples}
            longest = max(longest, 1 + int(tokenizer.encode_lines(sorted(targets))[1].max()))
    return min(longest, _MOST_TARGETS)
