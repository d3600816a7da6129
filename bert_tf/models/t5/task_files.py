"""The files of tasks as text, their examples, and the flags that name them."""

import collections
import dataclasses
import functools
import os
import unicodedata

from bert_tf.errors import InputError, counted, listed, warn
from bert_tf.files import is_file, is_library_name
from bert_tf.flags import check, check_used, option
from bert_tf.models.t5.tasks import TEXT_TASKS, TextExample, TextTask, read_split
from bert_tf.tasks.kinds.text_to_text import encode
from bert_tf.tasks.named import OF_SUITES, TASKS, configuration, placed
from bert_tf.tasks.task import Task, named_folder
from bert_tf.tokenization.coverage import Coverage

_MOST_TARGETS = 512     # tokens
_FEW_TARGETS = 32       # so few different targets of a file are labels


@dataclasses.dataclass(frozen=True)
class TextFile:
    """A file of a task as text, with its `name` in reports and its split of `official`."""

    task: TextTask
    name: str
    path: str
    official_split: str

    @functools.cached_property
    def examples(self) -> list[TextExample]:
        """The examples, which are read once. InputError: the file can't be read, or has none."""
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
    """The files of a run by split, and the arguments of `mixture.mixing_rates`."""

    files: dict[str, list[TextFile]]
    maximum: int | None = None
    temperature: float = 1.0

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys(file.task.name for files in self.files.values()
                                  for file in files))

    def of(self, split: str) -> list[TextFile]:
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
                        f"{counted(more, 'target')} (--max_target_length)" if cut or more else "")
        rates = mixing_rates([len(file.examples) for file in files], self.maximum, self.temperature)
        print("training on " + ", ".join(
            f"{file.name} ({counted(len(file.examples), 'example')}, {rate:.1%} of a batch{cut})"
            for file, rate, cut in zip(files, rates, cuts)), flush=True)
        for name, side, coverage in seen:
            coverage.report(f"{name}, {side}s")
        return TextMixture(tasks, rates, max_seq_length, max_target_length, padding,
                           by_length=padding != MAX_LENGTH)


def check_labels(sources: Sources, tokenizer, max_target_length: int | None = None) -> None:
    """Warns of labels with unknown tokens. The labels of a file are the words of its task, its
    targets that come more than once, and all targets if these are few. Raises InputError if two
    labels are the same tokens, or become so where they are cut to `max_target_length` tokens."""
    for split in ("train", "dev"):
        for file in sources.of(split):
            # A tokenizer is meant to ignore differences of blanks and of forms of characters.
            counts = collections.Counter(
                " ".join(unicodedata.normalize("NFKC", example.target).split())
                for example in file.examples)
            labels = sorted({*file.task.words, *(
                target for target, count in counts.items()
                if count > 1 or len(counts) <= _FEW_TARGETS)})
            _check_different(labels, file.path, tokenizer, max_target_length)


def _check_different(labels, path, tokenizer, length):
    ids, lengths = tokenizer.encode_lines(labels)
    ends = lengths.cumsum().tolist()
    known: dict[bytes, str] = {}
    whole: dict[bytes, str] = {}
    rows = [ids[end - size:end] for end, size in zip(ends, lengths.tolist())]
    lost = [label for label, row in zip(labels, rows) if tokenizer.vocabulary.unk_id in row]
    if lost:
        warn(f"{path}: the vocabulary lacks characters of {listed(map(repr, lost))}, so no model "
             "can write such a label; rename it, or make a vocabulary of a text that has them.")
    for label, row in zip(labels, rows):
        if (other := whole.setdefault(row.tobytes(), label)) != label:
            raise InputError(
                f"{path}: the labels {other!r} and {label!r} are the same tokens, "
                f"{' '.join(tokenizer.tokens(row.tolist())) or 'none'}, so no model can tell them "
                "apart; write them in words that the vocabulary knows.")
        row = row[:length and length - 1]
        if (other := known.setdefault(row.tobytes(), label)) != label:
            raise InputError(f"{path}: the labels {other!r} and {label!r} are the same in their "
                             f"first tokens; raise --max_target_length={length}.")


def longest_target(sources: Sources, tokenizer) -> int:
    """The tokens of the longest target of all files, at most 512; 0 without targets."""
    longest = 0
    for split in ("train", "dev"):
        for file in sources.of(split):
            targets = {example.target for example in file.examples}
            longest = max(longest, 1 + int(tokenizer.encode_lines(sorted(targets))[1].max()))
    return min(longest, _MOST_TARGETS)


_PAIRS = TEXT_TASKS["pairs"]
_NAMES = [name for name in TEXT_TASKS if name != _PAIRS.name]
SPLITS = ("train", "dev", "test")


@dataclasses.dataclass
class TextFlags:
    """Tasks, their files, and their mixture."""

    tasks: list[str] = option([], "Tasks of T5.", choices=_NAMES, alias="task")
    data_dir: list[str] = option(
        [], "Folder of each task's files, in the order of --tasks; or one folder with a subfolder "
        "per task, named like the task; or a data set, tfds:NAME or hf://datasets/OWNER/NAME.")
    train_file: str = option(
        "", "Instead of --tasks: a file to train on, without a header. Each line has an input, a "
        "tab and a target.")
    dev_file: str = option("", "File to score on, in the same format.")
    test_file: str = option("", "File to predict, in the same format or with inputs only.")
    mixing_maximum: int | None = option(
        None, "Tasks are mixed in proportion to their examples; count at most this many examples "
        "of a task. Default: all.", least=1, rare=True)
    mixing_temperature: float = option(
        1.0, "Raise the proportions to the power 1 / temperature; with a high temperature, all "
        "tasks come equally often.", above=0, rare=True)
    task_kind: str = option("text_to_text", "Texts that T5 writes.", choices=("text_to_text",))

    __post_init__ = check

    def open(self, do_train: bool, do_eval: bool, do_predict: bool) -> "Sources":
        """The files that a run needs. InputError: there is no such task, or a file is not there."""
        splits = [split for split, needed in zip(SPLITS, (do_train, do_eval, do_predict)) if needed]
        paths = {split: getattr(self, f"{split}_file") for split in SPLITS}
        if bool(self.tasks) == any(paths.values()):
            raise InputError("give either --tasks, or your own files: --train_file, --dev_file, "
                             "--test_file.")
        if not self.tasks:
            if self.data_dir:
                raise InputError("--data_dir is for --tasks, and your own files are named without "
                                 "it; leave the flag out.")
            for split in splits:
                if not paths[split]:
                    raise InputError(f"--{split}_file must be given.")
            files = {split: [TextFile(_PAIRS, _PAIRS.name, paths[split], split)]
                     for split in splits}
        else:
            folders = self._folders()
            files = {split: [file for name, folder in zip(self.tasks, folders, strict=True)
                             for file in _find(name, folder, split)] for split in splits}
        check_used(self, *((name, len(files.get("train", (1, 2))) > 1, "several tasks")
                           for name in ("mixing_maximum", "mixing_temperature")))
        return Sources(files, self.mixing_maximum, self.mixing_temperature)

    def _folders(self):
        if len(set(self.tasks)) < len(self.tasks):
            raise InputError("--tasks names a task twice; name each task once.")
        if len(self.data_dir) == len(self.tasks) > 1:
            return self.data_dir
        if len(self.data_dir) != 1:
            raise InputError(f"--data_dir names {counted(len(self.data_dir), 'folder')} for "
                             f"{counted(len(self.tasks), 'task')}; give one folder, or one for "
                             "each task.")
        return [_folder_of(self.data_dir[0], TEXT_TASKS[name], len(self.tasks))
                for name in self.tasks]


def _find(name, folder, split):
    """The files of a task's split; MNLI has two to score on, and one may be absent."""
    task = TEXT_TASKS[name]
    if task.same_as:
        official = placed(OF_SUITES[task.same_as], folder)
        paths = [(part, official.path(folder, part)) for part in official.splits
                 if part.split("_")[0] == split and official.has_file(folder, part)]
    elif is_library_name(folder):
        raise InputError(f"--data_dir: {task.name} can't be read from {folder}; give the folder of "
                         "its files.")
    else:
        paths = [(part, path) for part, file in task.files.items()
                 if part == split and is_file(path := os.path.join(folder, file))]
    if not paths:
        raise InputError(f"--data_dir: there is no {split} file of {name} in {folder!r}; "
                         "name its folder, or leave the task out.")
    return [TextFile(task, name if len(paths) == 1 else f"{name}_{part.partition('_')[2]}",
                     path, part) for part, path in paths]


def _folder_of(folder, task, count):
    """The folder in `folder` that is named as the task, in capitals or not; else `folder`. A data
    set for several tasks has a configuration for each."""
    if is_library_name(folder):
        if task.same_as and count > 1:
            return configuration(folder, OF_SUITES[task.same_as])
        return folder
    official = TASKS.get(task.official or task.submitted)
    names = (official.name, official.folder_of or official.name) if official else ()
    return named_folder(folder, task.name, *names, task.name.removeprefix("super_glue_")) or folder
