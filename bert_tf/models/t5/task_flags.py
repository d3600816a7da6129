"""The flags that name tasks as text and their files."""

import dataclasses
import os

from bert_tf.errors import InputError, choose_from
from bert_tf.files import is_file
from bert_tf.flags import check, check_used, option
from bert_tf.models.t5.task_files import Sources, TextFile
from bert_tf.models.t5.tasks import TEXT_TASKS
from bert_tf.tasks.libraries import is_library_name
from bert_tf.tasks.named import OF_SUITES, TASKS, configuration, placed
from bert_tf.tasks.task import named_folder

_PAIRS = TEXT_TASKS["pairs"]
_NAMES = [name for name in TEXT_TASKS if name != _PAIRS.name]
SPLITS = ("train", "dev", "test")
# Tasks that are official ones although their tests are not submitted.
_READ_FILES_OF = {"squad": "squad", "squad_trivia": "squad", "conll2003": "conll2003"}


@dataclasses.dataclass
class TextFlags:
    """Tasks, their files, and their mixture."""

    tasks: list[str] = option([], f"Any of {', '.join(_NAMES)}.", alias="task")
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

    def __post_init__(self):
        check(self)

    def open(self, do_train: bool, do_eval: bool, do_predict: bool) -> "Sources":
        """The files that a run needs.

        Raises:
            InputError: there is no such task, or a file is not there.
        """
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
        for name in self.tasks:
            if name not in _NAMES:
                raise InputError(f"--tasks: there is no task {name!r}; {choose_from(name, _NAMES)}")
        if len(set(self.tasks)) < len(self.tasks):
            raise InputError("--tasks names a task twice; name each task once.")
        if len(self.data_dir) == len(self.tasks) > 1:
            return self.data_dir
        if len(self.data_dir) != 1:
            raise InputError(f"--data_dir names {len(self.data_dir)} folders for {len(self.tasks)} "
                             "tasks; give one folder, or one for each task.")
        return [_folder_of(self.data_dir[0], TEXT_TASKS[name], len(self.tasks))
                for name in self.tasks]


def _find(name, folder, split):
    """The files of a task's split in a folder; MNLI has two to score on, and one may be absent."""
    task = TEXT_TASKS[name]
    if task.official or is_library_name(folder):
        paths = _official_paths(task, folder, split)
    else:
        files = [task.files[split]] if split in task.files else []
        paths = [(split, path) for file in files if is_file(path := os.path.join(folder, file))]
    if not paths:
        raise InputError(f"--data_dir: there is no {split} file of {name} in {folder!r}; "
                         "name its folder, or leave the task out.")
    return [TextFile(task, name if len(paths) == 1 else f"{name}_{known.partition('_')[2]}",
                     path, known) for known, path in paths]


def _folder_of(folder, task, count):
    """The folder in `folder` that is named as the task, in capitals or not; else `folder`. A data
    set for several tasks has a configuration for each."""
    if is_library_name(folder):
        known = _same_as(task)
        return configuration(folder, OF_SUITES[known]) if known and count > 1 else folder
    official = TASKS.get(task.official or task.submitted)
    names = (official.name, official.folder_of or official.name) if official else ()
    return named_folder(folder, task.name, *names, task.name.removeprefix("super_glue_")) or folder


def _same_as(task):
    """The key in `OF_SUITES` of the task whose files a task as text reads, or None."""
    return task.official or task.submitted or _READ_FILES_OF.get(task.name)


def _official_paths(task, folder, split):
    """(split, file or rows) of all official splits that a folder or a data set has for a split."""
    known = _same_as(task)
    if not known:
        raise InputError(f"--data_dir: {task.name} can't be read from {folder}; give the folder of "
                         "its files.")
    official = placed(OF_SUITES[known], folder)
    return [(name, official.path(folder, name)) for name in official.splits
            if name.split("_")[0] == split and official.has_file(folder, name)]
