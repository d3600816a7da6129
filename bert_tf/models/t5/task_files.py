"""The files of tasks as text, and their examples."""

import collections
import dataclasses
import functools
import unicodedata

from bert_tf.errors import InputError, counted
from bert_tf.models.t5.tasks import TextExample, TextTask, read_split
from bert_tf.tasks.kinds.text_to_text import encode
from bert_tf.tasks.named import TASKS
from bert_tf.tasks.task import Task
from bert_tf.tokenization.coverage import Coverage

_MOST_TARGETS = 512     # tokens
_FEW_TARGETS = 32       # so few different targets of a file are labels


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
        examples = list(read_split(self.task, self.official_split, self.path))
        if not examples:
            raise InputError(f"{self.path} holds no example with a target; give a file with "
                             "targets.")
        return examples

    @property
    def official(self) -> Task | None:
        """The official task whose server takes predictions; None without one."""
        return TASKS.get(self.task.official or self.task.submitted)


@dataclasses.dataclass(frozen=True)
class Sources:
    """The files of a run by split, "train", "dev" or "test";
    `mixture.mixing_rates` explains `maximum` and `temperature`."""

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
        from bert_tf.models.t5.mixture import TextMixture, mixing_rates
        files, tasks, cuts = self.of("train"), {}, []
        seen = [(file.name, side, Coverage()) for file in files for side in ("input", "target")]
        sides = iter(seen)
        for file in files:
            (inputs, cut), (targets, more) = (
                encode([getattr(example, side) for example in file.examples],
                       next(sides)[-1].watch(tokenizer), length)
                for side, length in (("input", max_seq_length), ("target", max_target_length)))
            tasks[file.name] = inputs, targets
            cuts.append(f"; cut to fit: {counted(cut, 'input')} (--max_seq_length), "
                        f"{counted(more, 'target')} (--max_target_length)" * bool(cut or more))
        rates = mixing_rates([len(file.examples) for file in files], self.maximum, self.temperature)
        print("training on " + ", ".join(
            f"{file.name} ({len(file.examples):,} examples, {rate:.1%} of a batch{cut})"
            for file, rate, cut in zip(files, rates, cuts)), flush=True)
        for name, side, coverage in seen:
            coverage.report(f"{name}, {side}s")
        return TextMixture(tasks, rates, max_seq_length, max_target_length, padding,
                           by_length=padding != MAX_LENGTH)


def check_labels(sources: Sources, tokenizer, max_target_length: int | None = None) -> None:
    """Checks that labels stay different as tokens. The labels of a file are the words of its task,
    its targets that come more than once, and all targets if these are few.

    Raises:
        InputError: two labels of a task are the same tokens; or become so where they are cut to
            `max_target_length` tokens.
    """
    for split in ("train", "dev"):
        for file in sources.of(split):
            counts = collections.Counter(_spelling(example.target) for example in file.examples)
            labels = sorted({*file.task.words, *(
                target for target, count in counts.items()
                if count > 1 or len(counts) <= _FEW_TARGETS)})
            _check_different(labels, file.path, tokenizer, max_target_length)


def _check_different(labels, path, tokenizer, length):
    ids, lengths = tokenizer.encode_lines(labels)
    ends = lengths.cumsum().tolist()
    known: dict[bytes, str] = {}
    whole: dict[bytes, str] = {}
    for label, end, size in zip(labels, ends, lengths.tolist()):
        row = ids[end - size:end]
        if (other := whole.setdefault(row.tobytes(), label)) != label:
            raise InputError(
                f"{path}: the labels {other!r} and {label!r} are the same tokens, "
                f"{' '.join(tokenizer.tokens(row.tolist())) or 'none'}, so no model can tell them "
                "apart; write them in words that the vocabulary knows.")
        row = row[:length and length - 1]
        if (other := known.setdefault(row.tobytes(), label)) != label:
            raise InputError(f"{path}: the labels {other!r} and {label!r} are the same in their "
                             f"first tokens; raise --max_target_length={length}.")


def _spelling(target):
    """A target without differences that a tokenizer is meant to ignore."""
    return " ".join(unicodedata.normalize("NFKC", target).split())


def longest_target(sources: Sources, tokenizer) -> int:
    """The tokens of the longest target of all files, at most 512; 0 without targets."""
    longest = 0
    for split in ("train", "dev"):
        for file in sources.of(split):
            targets = {example.target for example in file.examples}
            longest = max(longest, 1 + int(tokenizer.encode_lines(sorted(targets))[1].max()))
    return min(longest, _MOST_TARGETS)
