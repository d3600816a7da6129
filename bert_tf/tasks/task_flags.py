"""The flags that name a task and its files: a named task, a user's own files, or SQuAD's."""

import contextlib
import dataclasses
import typing
from collections.abc import Mapping

from bert_tf.errors import InputError, choose_from
from bert_tf.files import TABLES, check_input, ending, is_library_name, join_path
from bert_tf.flags import changed, check, check_used, option, without
from bert_tf.tasks import annotations, conllu, forms
from bert_tf.tasks.kinds.table import KINDS
from bert_tf.tasks.libraries import split_of
from bert_tf.tasks.named import SQUAD, TASK_NAMES, TASKS, find_questions, find_task, placed
from bert_tf.tasks.reading import KeptRows, discover_labels, with_tags_judged
from bert_tf.tasks.rows import Omissions, Table
from bert_tf.tasks.split_records import Source
from bert_tf.tasks.tag_schemes import SCHEMES, labels_in, scheme_of
from bert_tf.tasks.task import OWN, Split, Task
from bert_tf.tokenization.encoding import LONG_TEXTS, TRUNCATE

# The columns of tagged words that need no flag, by the format of the file.
COLUMNS = {forms.CONLLU: conllu.DEFAULT_COLUMNS, forms.ANNOTATIONS: annotations.DEFAULT_COLUMNS}
# The keys of tasks/passages.py's PASSAGES, which is not loaded for flags, to train models with.
SQUAD_STYLES = ("bert", "albert", "electra", "xlnet", "cmrc")
_OF_TABLES = {"text_a_column", "multi_label", "tfds_name"}
OF_NUMBERS = ("label_scale", "label_mean")
# Options of one kind of tasks, and the kind.
OF_KINDS = {**dict.fromkeys(OF_NUMBERS, "regression"),
            **dict.fromkeys(("max_qa_length", "carry_choices"), "multiple_choice")}
# Values of options that a trained model does not name.
_KEPT = {"label_scale": 1.0, "label_mean": 0.0, "carry_choices": False, "long_text": TRUNCATE}
_of_own = without("task")       # describes own files
_ABSENT: typing.Any = None     # of a flag that a kind does not have
_TFDS_SPLITS = {"train": "train", "dev": "validation", "test": "test"}


class RunSplits(typing.NamedTuple):
    """The splits that a run needs: {split: `Source`} in the order of making their records; the
    splits to score a model on, and those to predict."""

    sources: dict
    eval_splits: list
    test_splits: list


@dataclasses.dataclass
class FileFlags:
    """Task, and its files."""

    task: str = option("", f"A task with official files: {', '.join(TASK_NAMES)}. Without --task, "
                           "the flags from --task_kind on describe your own files.",
                       alias="task_name")
    data_dir: str = option(
        "", "Folder of the task's files, or a data set, tfds:NAME or hf://datasets/OWNER/NAME; "
        "names of your own files are relative to this folder.")
    task_kind: str | None = _of_own(
        None, "What is predicted for an example of your own files. Default: multiple_choice with "
        "--choice_columns, tagging for files without columns, such as .txt, .conllu and .ann, else "
        "classification.",
        choices=[name for name, kind in KINDS.items() if kind.own_metrics])
    train_file: str = _of_own(
        "", "File to train on: .tsv, .csv, .jsonl or .json. For tagging: one word per line, and a "
        "blank line between sentences; .conllu; or JSON or .ann of an annotation tool.")
    dev_file: str = _of_own("", "Labelled file to score on; its score chooses the best trial.")
    test_file: str = _of_own("", "File to predict.")
    labelled_test: bool = _of_own(False, "The test file also has the label column.", rare=True)
    text_a_column: str = _of_own(
        "", "Column of the text, by name or number from 0. For tagging: column of the words "
        "(default: 0).")
    text_b_column: str = _of_own(
        "", "Column of a second text; in multiple choice, the beginning that all choices share.")
    label_column: str = _of_own(
        "", "Column of the label; -1 is the last one, the default for tagging. With --multi_label "
        "also several, a 0 or 1 in each. In .conllu: upos (default), feats, feats.NAME for one "
        "feature, or another column. In JSON for tagging: the key of the spans or the tags; "
        "default: the one that the tool writes.")
    headline: str = _of_own(
        "", "Metric that chooses the best trial and the step of --early_stopping, such as macro_f1 "
        "where some labels are rare. Default: the first metric that is printed.", rare=True)
    labels: list[str] = _of_own(
        [], "All labels; default: the labels of the training file. Names of flags, 0 or 1, in "
        "their order.", rare=True)
    train_fraction: float = option(
        1.0, "Train on this share of the training file, drawn with --train_fraction_seed; a "
        "smaller share is a subset of a larger one.", rare=True, above=0, most=1)
    train_fraction_seed: int = option(0, "Seed of --train_fraction.", rare=True, least=0)
    header: bool = _of_own(
        True, "The first line of a .tsv or .csv file names the columns.", rare=True)
    tfds_name: str = _of_own(
        "", "A data set of tensorflow_datasets. --train_file, --dev_file and --test_file then name "
        "its splits (default: train, validation and test).", rare=True)
    skip_malformed_lines: bool = option(
        False, "Skip lines that cannot be read; the manifest counts them. If false, the first such "
        "line is an error, except in QQP, whose old files have some.", rare=True)

    # Of some kinds alone.
    multi_label = both_orders = False
    choice_columns = label_scale = label_mean = max_qa_length = carry_choices = _ABSENT
    tag_scheme = long_text = _ABSENT

    @property
    def names_kind(self) -> bool:
        """Whether a flag decides the kind of the task."""
        return bool(self.task or self.task_kind or self.multi_label)

    def read_task(self, kind: str = "") -> Task:
        """The `Task`. `kind`: the kind of own files if no flag names one; "": see `kind_of_files`.
        Raises InputError if there is no such task, or the flags describe no task."""
        if self.task:
            check(self)
            return self._in_scheme(placed(find_task(self.task), self.data_dir))
        kind = self.task_kind or kind or kind_of_files(changed(self))
        if self.multi_label:
            if kind not in ("classification", "multi_label"):
                raise InputError(f"--multi_label is for classification, not for {kind}; leave out "
                                 "one of the two flags.")
            kind = "multi_label"
        files = {split: file for split in ("train", "dev", "test")
                 if (file := getattr(self, f"{split}_file"))}
        columns = KINDS[kind].default_columns
        if KINDS[kind].format == forms.WORDS and not self.tfds_name:
            columns = COLUMNS.get(_one_format(files, KINDS[kind], self.data_dir), columns)
        text_a, label = self.text_a_column or columns[0], self.label_column or columns[1]
        if not text_a:
            raise InputError(_missing_column(self) or (
                f"--task must be given (one of {', '.join(TASK_NAMES)}), or for your own files "
                "--text_a_column, or --task_kind=tagging if they have a word per line."))
        task = own_task(
            kind, files, [column for column in (text_a, self.text_b_column) if column],
            label or None, choices=self.choice_columns or (), labels=self.labels,
            header=self.header, labelled_test=self.labelled_test, tfds_name=self.tfds_name,
            data_dir=self.data_dir)
        if self.headline and self.headline not in task.metrics:
            raise InputError(f"--headline={self.headline}: "
                             f"{choose_from(self.headline, task.metrics)}")
        metrics = sorted(task.metrics, key=lambda name: name != self.headline)
        return self._in_scheme(dataclasses.replace(task, metrics=tuple(metrics)))

    def with_columns(self, known: Mapping) -> typing.Self:
        """The flags with the columns that a model knows, `Task.columns`, if none is named."""
        if self.task or self.tfds_name or self.text_a_column or not known or "format" in known:
            return self
        text_a, *others = known["texts"]
        flags = dataclasses.replace(
            self, text_a_column=text_a, text_b_column=self.text_b_column or "".join(others),
            header=known.get("header", self.header))
        if known["choices"] and self.choice_columns == []:
            flags.choice_columns = list(known["choices"])
        return flags

    def _in_scheme(self, task):
        if self.tag_scheme and task.kind != KINDS["tagging"]:
            raise InputError(f"--tag_scheme={self.tag_scheme} is for tagging; leave the flag out.")
        if not (task.labels and self.tag_scheme):
            return task
        return dataclasses.replace(task, labels=labels_in(self.tag_scheme, task.labels))

    def with_options(self, task: Task, options: dict) -> Task:
        """The task with all options known, which decide nothing here."""
        return task

    def find_sources(self, task: Task, splits: list) -> list[Source]:
        """The `Source`s of the splits, or of all whose files are there, with the labels in them.
        Raises InputError if a file is not there, or none is."""
        paths = _paths(self, task, splits)
        if task.labels and self.tag_scheme and self.tag_scheme != scheme_of(task.labels):
            raise InputError(f"--tag_scheme={self.tag_scheme}: the model was trained with "
                             f"{scheme_of(task.labels)}; leave the flag out.")
        rows = {split: KeptRows() for split in paths}
        labelled = [split for split, layout in task.splits.items()
                    if split in paths and layout.label is not None]
        if labelled:    # the first is train, where it is there
            task = with_tags_judged(task, {split: paths[split] for split in labelled})
            first, *others = labelled
            # Of features there are some that dev and test alone have, which no model gets right.
            others = [split for split in others if task.split(split).format == forms.CONLLU]
            task = discover_labels(task, first, paths[first], Omissions(self.skip_malformed_lines),
                                   rows[first], [(split, paths[split], rows[split])
                                                 for split in others])
            task = self._in_scheme(task)
        check(self)
        for name, kind in OF_KINDS.items():
            if getattr(self, name) is not None and task.kind != KINDS[kind]:
                raise InputError(f"--{name} is for {KINDS[kind].title}; leave the flag out.")
        check_long_text(self.long_text, task)
        if self.both_orders and (len(task.split("train").texts) != 2 or task.kind.texts[1] != 2):
            raise InputError("--both_orders is for pairs of texts; leave the flag out.")
        sources = []
        for split in splits or paths:
            source = Source(task, split, paths[split], self.skip_malformed_lines, rows=rows[split])
            if split == "train":
                source = dataclasses.replace(
                    source, both_orders=self.both_orders, fraction=self.train_fraction,
                    seed=self.train_fraction_seed)
                source.check_fraction()
            sources.append(source)
        return sources

    def find(self, task: Task, do_train: bool, do_eval: bool, do_predict: bool) -> RunSplits:
        """The splits to train, score and predict on. Raises InputError if a file is not there, or
        no flag names it."""
        sources = {source.split: source for source in self.find_sources(task, [])}
        needed = {}
        if do_train:
            if "train" not in task.splits:
                raise InputError("--do_train needs --train_file, the file to train on.")
            needed["train"] = sources.get("train") or task.path(self.data_dir, "train")
        labelled = [split for split, layout in task.splits.items()
                    if split != "train" and layout.label is not None]
        tests = [split for split in task.splits if split.startswith("test")]
        scored, predicted = [], []
        if do_eval:
            scored = _present("--do_eval", task, labelled, sources, self.data_dir)
        if do_predict:
            predicted = _present("--do_predict", task, tests, sources, self.data_dir)
        needed |= {split: sources[split] for split in (*scored, *predicted)}
        return RunSplits(needed, scored, predicted)


@dataclasses.dataclass
class LengthFlags(FileFlags):
    """Long texts."""

    long_text: str | None = option(
        None, "How to read a text that is longer than --max_seq_length (in a pair, the longer "
        "text). truncate: cut its end. head_tail: cut its middle; a quarter of the kept tokens are "
        "its first tokens. mean, max: read it in windows that overlap by a quarter, and train on "
        "all windows; then take the mean or the maximum of the windows' probabilities or numbers. "
        "Default: as in training, else truncate.", choices=LONG_TEXTS)


@dataclasses.dataclass
class TextTaskFlags(LengthFlags):
    """Labels and numbers of texts."""

    multi_label: bool = _of_own(
        False, "An example may have several labels or none: a list, names between commas, "
        "semicolons or bars, or a 0 or 1 for each label, in one column or in several.", rare=True)
    label_scale: float | None = option(
        None, "In regression, divide the labels by this number during training. The records do not "
        "change. Default: 1; where not all labels are from -5 to 5, or their standard deviation is "
        "below 0.1, this deviation.", rare=True, above=0)
    label_mean: float | None = option(
        None, "In regression, subtract this number from the labels during training, before they "
        "are divided. Default: 0; for the same labels as in --label_scale, their mean.", rare=True,
        above=float("-inf"))        # any finite number
    both_orders: bool = option(
        False, "Train on each pair of texts in both orders: first all pairs of the training file, "
        "then all pairs with the texts swapped.", rare=True)


@dataclasses.dataclass
class ChoiceTaskFlags(LengthFlags):
    """Choices."""

    choice_columns: list[str] = _of_own(
        [], "Columns of the choices in multiple choice, such as ending*.")
    max_qa_length: int | None = option(
        None, "In multiple choice, keep the last tokens of each choice, at most this many, and "
        "then shorten only the context, as XLNet does for RACE. Default: shorten the longer of the "
        "two.", rare=True, least=1)
    carry_choices: bool | None = option(
        None, "With --max_qa_length, repeat a mistake of XLNet's code: if a context and a choice "
        "fit, both become the context of the next choices. Default: false; for RACE true, as in "
        "XLNet.", rare=True)


@dataclasses.dataclass
class WordTaskFlags(FileFlags):
    """Tags of words."""

    tag_scheme: str | None = option(
        None, "Tags of entities that a tagger learns. bio: B- for the first word, I- for the "
        "others. bioes: S- for an entity of one word; B-, I- and E- for the first, inner and last "
        "words of longer entities, as in ELECTRA. Files, predictions and scores keep their format. "
        "Default: as in training, else bio.", choices=SCHEMES, rare=True)


@dataclasses.dataclass
class TaskFlags(TextTaskFlags, ChoiceTaskFlags, WordTaskFlags):
    """The flags of all kinds of tasks, for commands that learn the kind from a model."""


def kind_of_files(given: Mapping[str, typing.Any]) -> str:
    """Returns the name of the kind of a user's files, from the flags that are given, by name."""
    if "choice_columns" in given:
        return "multiple_choice"
    paths = [join_path(given.get("data_dir", ""), given[name])
             for name in ("train_file", "dev_file", "test_file") if given.get(name)]
    has_words = any(forms.is_brat(path) or ending(path) not in TABLES
                    for path in paths if not is_library_name(path))
    return "tagging" if has_words and not given.keys() & _OF_TABLES else "classification"


def _paths(flags, task, splits):
    """{split: path} of the files that must be there, and of the task's others that are."""
    paths: dict[str, str] = {}
    problems = []
    for split in dict.fromkeys([*splits, *task.splits]):
        try:
            paths[split] = task.path(flags.data_dir, split)
        except InputError as error:
            problems.append(error)
            if split in splits or not flags.task:        # a flag names the file
                raise
    if not paths:
        raise problems[0]
    return paths


_OWN_FILES = {"--do_eval": "a file that has labels with --dev_file",
              "--do_predict": "the file to predict with --test_file"}


def _present(flag, task, possible, sources, data_dir):
    if there := [split for split in possible if split in sources]:
        return there
    names = " or ".join(task.splits[split].files[0] for split in possible)
    if not names and task.name in TASKS:
        raise InputError(f"{flag}: {task.name} has no test file of its own; --do_eval scores the "
                         f"official test set. Leave out {flag}.")
    if not names:
        raise InputError(f"{flag}: name {_OWN_FILES[flag]}, or give {flag}=False.")
    raise InputError(f"{flag}: there is no {names} in {data_dir!r}; put it there, or leave out "
                     f"{flag}.")


def check_long_text(way: str | None, task: Task) -> None:
    if way and not getattr(task.kind, "labels_may_be_far", False):
        raise InputError(f"--long_text={way} is not for {task.kind.title}; leave the flag out.")


def check_kept(flags: TaskFlags, options: dict, *more: str) -> None:
    """Raises InputError for flags that differ from the options of a trained model, where they can't
    change. `more` are names of further flags."""
    for name in (*OF_KINDS, *more):
        if getattr(flags, name) not in (None, options.get(name, _KEPT.get(name))):
            raise InputError(f"--{name} stays as in the training of the model; leave the flag out.")


def check_only(flags: TaskFlags, names: tuple[str, ...], what: str) -> None:
    """Raises InputError for all flags of a task but some, for a model that has no use for them."""
    for name, default in vars(TaskFlags()).items():
        if name not in names and getattr(flags, name) != default:
            raise InputError(f"--{name} is not for a model of {what}; leave the flag out.")


def own_task(kind: str, files: dict, texts, label: str | None, *, choices=(), labels=(),
             header: bool = True, labelled_test: bool = False,
             tfds_name: str | None = None, data_dir: str = "") -> Task:
    """The `Task` of files that no table knows; for columns and labels, which may be discovered
    later, see `Split` and `Task`. Raises InputError if the files have another ending, or a column
    is missing.

    Args:
        kind: name of a kind that takes own files.
        files: {split: file}, of train, dev and test, in forms that `bert_tf.tasks.forms` knows;
            with `tfds_name`, a set of tensorflow_datasets, splits' names there, all if empty.
        labelled_test: whether the test file has the label's column too.
    """
    owned = KINDS[kind]
    if tfds_name:
        files = {split: f"{tfds_name}:{name}" for split, name in (files or _TFDS_SPLITS).items()}
    if not files:
        raise InputError("no file is named; give --train_file, --dev_file or --test_file, or the "
                         "name of a task with --task.")
    if label is None and (labelled_test or set(files) != {"test"}):
        raise InputError("--label_column must be given; only a test file may have no labels.")
    if owned.needs_choices != bool(choices):
        raise InputError("--choice_columns must be given for multiple choice, and "
                         "for nothing else.")
    if len(texts) > 1 and owned.format == "words":
        raise InputError("--text_b_column is for two texts, and tagging reads words; leave the "
                         "flag out.")
    names = [label.strip() for label in labels]
    if "" in names:
        raise InputError(f"--labels={','.join(labels)}: a label is empty; leave out the surplus "
                         "comma.")
    if len(set(names)) < len(names):
        raise InputError(f"--labels={','.join(labels)}: a label comes twice; name each once.")
    if labels and not owned.has_labels:
        raise InputError(f"--labels names labels, and {owned.title} has none; leave the flag out.")
    splits = {split: Split(
        (file,), tuple(texts), label if split != "test" or labelled_test else None, tuple(choices),
        "tfds" if tfds_name else _format(file, owned, data_dir), header, tag_names=tuple(labels))
        for split, file in files.items()}
    if not header and not {"tsv", "csv"}.intersection(split.format for split in splits.values()):
        raise InputError("--header=false is for .tsv and .csv; leave the flag out.")
    return owned.with_labels(Task(OWN, owned, splits, metrics=owned.own_metrics), names)


def _format(file, kind, data_dir):
    path = join_path(data_dir, file)
    return forms.form_of_words(path) if kind.format == forms.WORDS else forms.form_of_table(path)


def _missing_column(flags):
    """The sentence that asks for the text's column in the user's tables; "" without one."""
    for split in ("train", "dev", "test"):
        file = getattr(flags, f"{split}_file")
        if file and ending(file) in TABLES:
            names = None
            with contextlib.suppress(InputError, OSError):      # whoever reads the file names it
                names = Table(join_path(flags.data_dir, file), Split(
                    (), (), format=TABLES[ending(file)], header=flags.header),
                    Omissions(True)).names
            known = f" (its columns are {', '.join(names)})" if names else ""
            return (f"--text_a_column must be given: the column of the text in --{split}_file"
                    f"={file}, by name or number from 0{known}; --label_column names the "
                    "column of the label.")
    return ""


def _one_format(files, kind, data_dir):
    formats = {f"--{split}_file={file}": _format(file, kind, data_dir)
               for split, file in files.items()}
    (first, one), *others = formats.items() or [("", forms.WORDS)]
    for name, form in others:
        if form != one:
            raise InputError(f"{first} is read as {one} and {name} as {form}, by their extensions "
                             "and their content; give files of one format, since --label_column "
                             "names the column in all files.")
    return one


def _question_file(task, data_dir, split):
    if task.has_file(data_dir, split):
        return task.path(data_dir, split)
    return join_path(data_dir, task.split(split).files[0])


@dataclasses.dataclass
class SquadFlags:
    """Questions, and how they are answered; by default as the model was trained."""

    task: str = option(
        "", "squad, squad_v2 or triviaqa, whose official files are in --data_dir; without --task, "
        "--train_file and --predict_file name the files.", alias="task_name")
    data_dir: str = option("", "Folder of the files of --task, or a data set such as tfds:squad.")
    task_kind: str = option("span", "Answers to questions.", choices=("span",))
    train_file: str = option(
        "", "SQuAD JSON to train on, or a data set, tfds:squad/v1.1 or hf://datasets/OWNER/NAME.")
    predict_file: str = option("", "SQuAD JSON with the questions to answer, or a data set.")
    version_2_with_negative: bool | None = option(
        None, "Questions may have no answer, as in SQuAD v2.0.")
    squad_style: str | None = option(
        None, "The system whose way of answering is used. bert: answers consist of words; starts "
        "and ends are predicted separately. albert: answers consist of SentencePiece pieces; in "
        "v2.0, ends are predicted from starts, and an output predicts whether there is an answer. "
        "electra: as albert's v2.0, also for v1.1, but with answers of words. xlnet: as albert's "
        "v2.0, also for v1.1, with the passage before the question. cmrc: as bert, but each "
        "Chinese character is a word. Default: the style of the model.", choices=SQUAD_STYLES)
    start_n_top: int | None = option(
        None, "Number of starts from which ends are predicted (default: albert and xlnet 5, "
        "electra 20; not for bert).", rare=True, least=1)
    end_n_top: int | None = option(
        None, "Number of ends considered for each of these starts (default: --start_n_top).",
        rare=True, least=1)
    doc_stride: int | None = option(
        None, "Tokens between the starts of two successive windows of a long paragraph (default: "
        "128); in transformers, doc_stride is their overlap.", least=1)
    max_query_length: int | None = option(
        None, "Maximum tokens of a question; longer questions are cut at their end (default: 64).",
        least=1)
    n_best_size: int | None = option(
        None, "Number of starts and ends to consider in each window, and number of answers to keep "
        "for each question (default: 20).", least=1)
    max_answer_length: int | None = option(
        None, "Maximum tokens of an answer (default: 30).", least=1)
    null_score_diff_threshold: float | None = option(
        None, "Give no answer if the score of no answer exceeds the best answer's score by more "
        "than this (default: the threshold that --do_eval found, else 0).", rare=True)
    scorer: str | None = option(
        None, "The official script whose scores are computed. squad: F1 of words. korquad: F1 of "
        "characters. cmrc: F1 of the longest common run of Chinese characters and words (pip "
        "install 'bert_tf[cmrc]'). Default: as for the model, else squad or, for its files, the "
        "script of TriviaQA.", choices=("squad", "korquad", "cmrc"), rare=True)

    names_kind = True

    def __post_init__(self):
        if not self.task:
            return
        task = find_questions(self.task)
        if task is None:
            raise InputError(f"--task={self.task} is no task of questions; give squad, squad_v2 or "
                             "triviaqa, or leave the flag out.")
        if self.version_2_with_negative is None:
            self.version_2_with_negative = task is SQUAD[True] or None
        task = placed(task, self.data_dir)
        self.train_file = self.train_file or _question_file(task, self.data_dir, "train")
        self.predict_file = self.predict_file or _question_file(task, self.data_dir, "dev")

    @property
    def options(self) -> dict:
        """All options but the files, None where a flag is not given."""
        return {name: value for name, value in dataclasses.asdict(self).items()
                if not (name.endswith("_file") or name in ("task", "task_kind", "data_dir"))}

    def read_task(self, kind: str = "") -> Task:
        """The `Task` of SQuAD v1.1, as long as the options are not known."""
        check(self)
        return SQUAD[False]

    def with_options(self, task: Task, options: dict) -> Task:
        """The `Task` of the version that the options name. Raises InputError if a flag is for
        another version or another head."""
        has_negatives = options["version_2_with_negative"]
        task = SQUAD[has_negatives]
        has_beams = task.kind.head(task, options)[0] == "conditional_span"
        check_used(self,
                   ("start_n_top", has_beams, "heads that predict ends from starts"),
                   ("end_n_top", has_beams, "heads that predict ends from starts"),
                   ("null_score_diff_threshold",
                    has_negatives or not self.null_score_diff_threshold,
                    "--version_2_with_negative"))
        return task

    def find(self, task: Task, do_train: bool, do_eval: bool, do_predict: bool) -> RunSplits:
        """The files to predict and to train on, as splits. Raises InputError if a file is not
        there, or no flag names it."""
        predicts, sources = do_eval or do_predict, {}
        for split, what, is_wanted in (("predict", "--do_eval and --do_predict", predicts),
                                       ("train", "--do_train", do_train)):
            path = getattr(self, f"{split}_file")
            if is_library_name(path):
                path = ":".join(split_of(path, {"predict": "validation"}.get(split, split)))
            elif is_wanted and not path:
                raise InputError(f"--{split}_file must be given for {what}.")
            elif is_wanted:
                check_input(path, f"{split}_file")
            if is_wanted:
                sources[split] = Source(task, split, path)
        return RunSplits(sources, ["predict"] * do_eval, ["predict"] * predicts)
