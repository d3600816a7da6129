"""Suites of tasks: their rows, the figures that sum up the scores of all tasks, and the archive for
the server. GLUE is arXiv:1804.07461 with the Average of arXiv:1810.04805, table 1, and the Score of
gluebenchmark.com; SuperGLUE is arXiv:1905.00537. XNLI has the ways of arXiv:1809.05053, with the
average over languages of arXiv:1901.07291, table 1."""

import dataclasses
import itertools
import os
import statistics
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from bert_tf.files import exists, open_file, replace_aside
from bert_tf.tasks.named import OF_SUITES, XNLI_LANGUAGES

ARCHIVE = "submission.zip"
_DATE = (1980, 1, 1, 0, 0, 0)       # of files in the archive, so that equal runs give equal bytes
Scores = Mapping[str, Mapping[str, float]]      # of tasks, by "split/metric"


@dataclasses.dataclass(frozen=True)
class Grid:
    """The settings that are tried for each task: all combinations."""

    learning_rate: tuple[float, ...] = ()
    train_batch_size: tuple[int, ...] = ()
    num_train_epochs: tuple[float, ...] = ()

    def points(self) -> Iterator[dict[str, Any]]:
        """Yields the settings of each point; {} of a grid without values."""
        axes = {name: values for name, values in vars(self).items() if values}
        for chosen in itertools.product(*axes.values()):
            yield dict(zip(axes, chosen))


@dataclasses.dataclass(frozen=True)
class Row:
    """A task of a suite."""

    task: str   # a name of `bert_tf.tasks.named.OF_SUITES`
    # The metrics that the suite reports; their mean counts for its Score.
    metrics: tuple[str, ...] = ("accuracy",)
    average: tuple[str, ...] = ("accuracy",)    # the metrics that are cells of its Average
    shown: tuple[str, ...] = ()     # further metrics in the table
    begins_with: str = ""   # the task whose model this one may begin with, as in arXiv:1907.11692
    counts: bool = True     # whether Score counts the task
    # The task of the same files where a masked LM ranks candidates; "" without one.
    ranking: str = ""
    keeps_head: bool = False    # whether it then begins with the head of that model too
    is_first: bool = False  # whether it is done only where others are to begin with its model
    # Whether every example gets the most frequent label of the training file.
    majority: bool = False

    def cells(self, scores: Scores, metrics: Collection[str]) -> list[float]:
        """The scores of this task in some metrics, of every development set that has them."""
        return [value for name, value in scores.get(self.task, {}).items() if is_of(name, metrics)]


class Published(NamedTuple):
    """Scores of a system on the test sets, in percent, that `source` prints."""

    system: str
    source: str
    # The cells of each row of `Suite.compared`, in their order.
    cells: tuple[tuple[float, ...], ...]
    figure: float   # the Average or the Score


@dataclasses.dataclass(frozen=True)
class Suite:
    """Tasks whose scores make one figure."""

    rows: tuple[Row, ...]   # a row for each task
    # The grid of a model's paper by `model_type`; other models learn by the defaults of their own
    # papers, one point.
    grids: Mapping[str, Grid] = dataclasses.field(default_factory=dict)
    has_score: bool = True  # whether the mean over tasks is reported
    has_average: bool = False   # whether the mean over cells is reported with the mean over tasks
    # For each way to other languages, the task that has the score of each language.
    ways: Mapping[str, Mapping[str, str]] = dataclasses.field(default_factory=dict)
    published: tuple[Published, ...] = ()   # scores to compare with

    @property
    def compared(self) -> list[tuple[str, tuple[str, ...]]]:
        """The tasks of Average, or else of Score, and the metrics that are their cells."""
        if self.has_average:
            return [(row.task, row.average) for row in self.rows if row.average]
        return [(row.task, row.metrics) for row in self.rows if row.counts]

    def row(self, task: str) -> Row:
        return next(row for row in self.rows if row.task == task)

    def with_ranking(self) -> "Suite":
        """This suite with a masked LM that ranks candidates in every task where it can."""
        return dataclasses.replace(self, rows=tuple(
            dataclasses.replace(row, task=row.ranking or row.task, ranking=row.ranking and row.task,
                                majority=row.majority and not row.ranking) for row in self.rows))

    def missing(self, scores: Scores) -> list[str]:
        """The tasks that Score counts and that have no scores."""
        return [row.task for row in self.rows if row.counts and not row.cells(scores, row.metrics)]

    def average(self, scores: Scores) -> float:
        """The mean over all cells; a task with two splits or two metrics has several cells."""
        return statistics.fmean(value for row in self.rows
                                for value in row.cells(scores, row.average))

    def score(self, scores: Scores) -> float:
        """The mean over tasks of the mean of a task's cells."""
        return statistics.fmean(statistics.fmean(row.cells(scores, row.metrics))
                                for row in self.rows if row.counts)

    def languages(self, scores: Scores, split: str) -> dict[str, dict[str, float]]:
        """The scores of each way by language, on dev or test, and their average; it is left out
        while a language is missing, and a way without scores is too."""
        ways = {}
        for way, tasks in self.ways.items():
            cells = {language: of[name] for language, task in tasks.items()
                     if (name := f"{split}_{language}/{self.row(task).metrics[0]}")
                     in (of := scores.get(task, {}))}
            if len(cells) == len(tasks):
                cells["average"] = statistics.fmean(cells.values())
            if cells:
                ways[way] = cells
        return ways


def is_of(name: str, metrics: Collection[str]) -> bool:
    """Whether a score, "split/metric", is a metric of `metrics` on a development set."""
    split, _, metric = name.rpartition("/")
    return metric in metrics and not split.startswith("test")


_TABLE_1, _TABLE_3 = "arXiv:1810.04805, table 1", "arXiv:1905.00537, table 3"
_BOTH = ("f1", "accuracy")
_NOT_ENGLISH = XNLI_LANGUAGES[1:]
SUITES = {
    "glue": Suite((
        Row("cola", ("matthews",), ("matthews",)),
        Row("sst-2"),
        Row("mrpc", _BOTH, ("f1",), begins_with="mnli"),
        Row("sts-b", ("pearson", "spearman"), ("spearman",), begins_with="mnli"),
        Row("qqp", _BOTH, ("f1",)),
        Row("mnli"),
        Row("qnli"),
        Row("rte", begins_with="mnli"),
        Row("wnli", average=(), ranking="wnli-ranking", majority=True),
        Row("ax", ("matthews",), (), counts=False),
    ), {
        # arXiv:1810.04805, section 4.1; arXiv:1907.11692, table 10.
        "bert": Grid((5e-5, 4e-5, 3e-5, 2e-5), (32,), (3.0,)),
        "roberta": Grid((1e-5, 2e-5, 3e-5), (16, 32), (10.0,)),
    }, has_average=True, published=(
        Published("Pre-OpenAI SOTA", _TABLE_1, (
            (35.0,), (93.2,), (86.0,), (81.0,), (66.1,), (80.6, 80.1), (82.3,), (61.7,)), 74.0),
        Published("BiLSTM+ELMo+Attn", _TABLE_1, (
            (36.0,), (90.4,), (84.9,), (73.3,), (64.8,), (76.4, 76.1), (79.8,), (56.8,)), 71.0),
        Published("OpenAI GPT", _TABLE_1, (
            (45.4,), (91.3,), (82.3,), (80.0,), (70.3,), (82.1, 81.4), (87.4,), (56.0,)), 75.1),
        Published("BERT-Base", _TABLE_1, (
            (52.1,), (93.5,), (88.9,), (85.8,), (71.2,), (84.6, 83.4), (90.5,), (66.4,)), 79.6),
        Published("BERT-Large", _TABLE_1, (
            (60.5,), (94.9,), (89.3,), (86.5,), (72.1,), (86.7, 85.9), (92.7,), (70.1,)), 82.1),
    )),
    # Score of arXiv:1905.00537, table 3, whose BERT++ begins with the same tasks.
    "superglue": Suite((
        Row("boolq", begins_with="mnli"),
        Row("cb", ("macro_f1", "accuracy"), begins_with="mnli"),
        Row("copa", begins_with="swag"),
        Row("multirc", ("f1", "group_em")),
        Row("record", ("f1", "em")),
        Row("superglue-rte", begins_with="mnli"),
        Row("wic"),
        Row("wsc", ranking="wsc-ranking"),
        Row("ax-b", ("matthews",), (), counts=False),
        Row("ax-g", average=(), shown=("gender_parity",), counts=False),
        Row("mnli", counts=False, is_first=True),
        Row("swag", counts=False, is_first=True),
    ), published=(
        Published("BERT-Large", _TABLE_3, (
            (77.4,), (75.7, 83.6), (70.6,), (70.0, 24.1), (72.0, 71.3), (71.7,), (69.6,), (64.4,)),
            69.0),
        Published("T5-11B", "arXiv:1910.10683, table 14", (
            (91.2,), (93.9, 96.8), (94.8,), (88.1, 63.3), (94.1, 93.4), (92.5,), (76.9,), (93.8,)),
            89.3),
    )),
    # TriviaQA comes first in the last rows of arXiv:1810.04805, table 2.
    "squad": Suite((
        Row("squad", ("f1", "exact_match"), begins_with="triviaqa", keeps_head=True),
        Row("squad_v2", ("f1", "exact"), begins_with="triviaqa", keeps_head=True),
        Row("triviaqa", ("f1", "exact_match"), counts=False, is_first=True),
    ), has_score=False),
    # In English nothing is translated: every way has the score of zero-shot.
    "xnli": Suite((
        Row("xnli"),
        *(Row(f"xnli-{language}") for language in _NOT_ENGLISH),
        Row("xnli-translate-test"),
    ), {"bert": Grid((5e-5,), (32,), (2.0,))},      # google-research/bert, multilingual.md
        has_score=False, ways={
            "zero-shot": dict.fromkeys(XNLI_LANGUAGES, "xnli"),
            "translate-train": {"en": "xnli"} | {
                language: f"xnli-{language}" for language in _NOT_ENGLISH},
            "translate-test": {"en": "xnli"} | dict.fromkeys(_NOT_ENGLISH, "xnli-translate-test")}),
    "race": Suite((Row("race", shown=("middle_accuracy", "high_accuracy")),)),
}


def write_archive(folder: str, suite: Suite, folders: Mapping[str, str]
                  ) -> tuple[list[str], list[str]]:
    """Writes submission.zip to a folder; returns the names of its files, and the names of official
    files that are missing. Without a file there is no archive. `folders`: of a task's file, by the
    name of the task."""
    # The task of each file that the server takes, in the suite's order.
    tasks = {layout.submission: row.task for row in suite.rows if not row.is_first
             for layout in OF_SUITES[row.task].splits.values() if layout.submission}
    files = {name: path for name, task in tasks.items() if task in folders
             and exists(path := os.path.join(folders[task], name))}
    if files:
        with (replace_aside(os.path.join(folder, ARCHIVE)) as aside,
              zipfile.ZipFile(aside, "w", zipfile.ZIP_DEFLATED) as archive):
            for name, path in sorted(files.items()):
                with open_file(path, "rb") as file:
                    archive.writestr(zipfile.ZipInfo(name, _DATE), file.read(),
                                     zipfile.ZIP_DEFLATED)
    return sorted(files), [name for name in tasks if name not in files]


def describe_archive(folder: str, names: list[str], missing: list[str]) -> str:
    """Returns a line on the files of the archive in a folder, and on the server's missing files."""
    line = f"wrote {os.path.join(folder, ARCHIVE)} with {', '.join(names)}"
    return f"{line}; the server also wants {', '.join(missing)}" if missing else line


def write_archives(folder: str, suites: Iterable[str]) -> None:
    """Writes the archives of suites whose files are in a folder, and reports on them."""
    for suite in (SUITES[name] for name in sorted(suites)):
        print(describe_archive(folder, *write_archive(
            folder, suite, {row.task: folder for row in suite.rows})), flush=True)
