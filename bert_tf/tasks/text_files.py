"""The files of tasks as text, and their examples."""

import dataclasses
import functools

from bert_tf.errors import InputError, counted
from bert_tf.tasks.kinds.text_to_text import encode
from bert_tf.tasks.named import TASKS
from bert_tf.tasks.task import Task
from bert_tf.tasks.text_tasks import TextExample, TextTask, read_split

_MOST_TARGETS = 512     # tokens


@dataclasses.dataclass(frozen=True)
class TextFile:
    """A file of a task as text.

    Attributes:
        name: in reports.
        official_split: the split of `official` that the file has.
    """

    task: TextTask
    name: str
    path: str
    official_split: str

    @functools.cached_property
    def examples(self) -> list[TextExample]:
        """The examples of the file, which is read once.

        Raises:
            InputError: the file can't be read, or has no example.
        """
        found = list(read_split(self.task, self.official_split, self.path))
        if not found:
            raise InputError(f"{self.path} holds no example with a target; give a file with "
                             "targets.")
        return found

    @property
    def official(self) -> Task | None:
        """The official task whose server takes predictions; None without one."""
        return TASKS.get(self.task.official or self.task.submitted)


@dataclasses.dataclass(frozen=True)
class Sources:
    """The files of a run by split, "train", "dev" or "test";
    `data.batches.text_mixture.mixing_rates` explains `maximum` and `temperature`."""

    files: dict[str, list[TextFile]]
    maximum: int | None = None
    temperature: float = 1.0

    @property
    def names(self) -> list[str]:
        """The names of the tasks."""
        return list(dict.fromkeys(file.task.name for files in self.files.values()
                                  for file in files))

    def of(self, split: str) -> list[TextFile]:
        """Returns the files of a split."""
        return self.files.get(split, [])

    def mixture(self, tokenizer, max_seq_length: int, max_target_length: int, padding: str):
        """Returns the `TextMixture` to train on, and reports on it."""
        from bert_tf.data.batches.bucketing import MAX_LENGTH
        from bert_tf.data.batches.text_mixture import TextMixture, mixing_rates
        files, tasks, cuts = self.of("train"), {}, []
        for file in files:
            (inputs, cut), (targets, more) = (
                encode([getattr(example, side) for example in file.examples], tokenizer, length)
                for side, length in (("input", max_seq_length), ("target", max_target_length)))
            tasks[file.name] = inputs, targets
            cuts.append(f"; cut to fit: {counted(cut, 'input')} (--max_seq_length), "
                        f"{counted(more, 'target')} (--max_target_length)" * bool(cut or more))
        rates = mixing_rates([len(file.examples) for file in files], self.maximum, self.temperature)
        print("training on " + ", ".join(
            f"{file.name} ({len(file.examples):,} examples, {rate:.1%} of a batch{cut})"
            for file, rate, cut in zip(files, rates, cuts)), flush=True)
        return TextMixture(tasks, rates, max_seq_length, max_target_length, padding,
                           by_length=padding != MAX_LENGTH)


def longest_target(sources: Sources, tokenizer) -> int:
    """Returns the number of tokens of the longest target of all files, at most 512; 0 without
    targets."""
    longest = 0
    for split in ("train", "dev"):
        for file in sources.of(split):
            targets = {example.target for example in file.examples}
            longest = max(longest, 1 + int(tokenizer.encode_lines(sorted(targets))[1].max()))
    return min(longest, _MOST_TARGETS)
