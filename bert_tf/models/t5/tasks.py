"""Tasks as text: an input that begins with the name of its task, and a target of words
(arXiv:1910.10683, appendix D; google-research's text-to-text-transfer-transformer,
t5/data/preprocessors.py and glue_utils.py).
"""

import dataclasses
import functools
import re
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from bert_tf.errors import InputError, counted, warn
from bert_tf.tasks import forms, super_glue
from bert_tf.tasks.named import TASKS, with_rows
from bert_tf.tasks.reading import read_examples
from bert_tf.tasks.rows import read_lines
from bert_tf.tasks.squad import read_references

UNKNOWN = "<unk>"       # the target of an example without a label
_PUNCTUATION = re.compile(f"([{re.escape(string.punctuation)}])")
_BLANKS = re.compile("[ \t\n\f\r]+")
_BOLD = re.compile("</?b>")
# Of columns of other programs' files: of the input and of the target.
_NAMES = (("input", "inputs", "input_text", "source", "text"),
          ("target", "targets", "target_text", "output", "label"))


@dataclasses.dataclass(frozen=True)
class TextExample:
    """One example: its texts; `answers`, all right texts, where there may be several; and `group`,
    which identifies examples that are scored as one, such as all answers to a question."""

    input: str
    target: str = ""
    answers: tuple[str, ...] = ()
    group: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True)
class TextTask:
    """A task as text.

    Attributes:
        name: of --tasks.
        prefix: the first word of an input.
        columns: the names of an example's texts in its input.
        words: of the labels, in the official task's order; () of numbers and free text.
        metrics: names of `scores.METRICS`.
        official: the key of `named.TASKS` whose files it reads; empty if it has a reader.
        submitted: the key of the task of SuperGLUE that its test file belongs to; empty if none.
        files_of: the key of `named.OF_SUITES` whose files it reads, if neither of these says it.
        read: function of a path and whether there are targets, which yields `TextExample`s.
        files: {split: file}, if no official task has its files.
        learned: function of an example of the training file, which returns those to learn from.
    """

    name: str
    prefix: str = ""
    columns: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ("accuracy",)
    official: str = ""
    submitted: str = ""
    files_of: str = ""
    read: Callable[[str, bool], Iterator[TextExample]] | None = None
    files: Mapping[str, str] = dataclasses.field(default_factory=dict)
    learned: Callable[[TextExample], Sequence[TextExample]] | None = None

    @property
    def same_as(self) -> str:
        """The key in `named.OF_SUITES` of the task whose files it reads; "" without one."""
        return self.official or self.submitted or self.files_of

    @property
    def is_number(self) -> bool:
        return bool(self.columns) and not self.words

    def write(self, texts: Sequence[str], label: int | float | None) -> TextExample:
        """Makes an example from its texts, in the order of `columns`, and its label or None."""
        named = dict(zip(self.columns, texts, strict=True))
        target = UNKNOWN
        if label is not None:
            target = self.words[int(label)] if self.words else round_score(label)
        return TextExample(join_columns(self.prefix, named), target)


def join_columns(prefix: str, texts: Mapping[str, str]) -> str:
    """Returns an example's input: each text after its name, in the order of the names."""
    return " ".join([prefix, *(part for name in sorted(texts)
                               for part in (f"{name}:", texts[name]))])


def round_score(value: float) -> str:
    """Rounds a number to the nearest fifth, half to even, as for STS-B."""
    five = np.float32(5)
    return f"{np.round(np.float32(value) * five) / five:.1f}"


def pad_punctuation(text: str) -> str:
    """Puts blanks around each ASCII mark; runs of blanks become one."""
    return _BLANKS.sub(" ", _PUNCTUATION.sub(r" \1 ", text))


def write_question(question: str, context: str | None, answers: Sequence[str] = ()) -> TextExample:
    """Makes an example of SQuAD; without a context if it is None."""
    question, answers = pad_punctuation(question), tuple(map(pad_punctuation, answers))
    parts = ["squad trivia question:", question]
    if context is not None:
        parts = ["question:", question, "context:", pad_punctuation(context)]
    return TextExample(_BLANKS.sub(" ", " ".join(parts)), next(iter(answers), ""), answers)


def _read_squad(path, has_targets, with_context=True):
    for question, context, answers in read_references(path):
        if answers or not has_targets:
            yield write_question(question, context if with_context else None, answers)


def _super_glue(name, columns, words, *, prefix=None, metrics=("accuracy",), label=None,
                fields=None, **others):
    """A task whose lines have a field for each column, and a label: a word, a number or a bool.
    `label` has the file's labels in the order of `words`, `fields` the columns' fields if they
    differ."""
    values = label or words

    def write(number, row, has_targets):
        target = words[values.index(row["label"])] if has_targets else UNKNOWN
        texts = {column: row[field] for column, field in zip(columns, fields or columns)}
        if not all(isinstance(text, str) for text in texts.values()):
            raise ValueError("a text is not a string")
        yield TextExample(join_columns(prefix or name, texts), target)

    return TextTask(f"super_glue_{name}", words=words, metrics=metrics,
                    read=super_glue.each_line("jsonl")(write), **{"submitted": name, **others})


def _of_rte(name, submitted, **others):
    """Makes RTE of SuperGLUE, or a task that its model answers."""
    return _super_glue(name, ("premise", "hypothesis"), ("entailment", "not_entailment"),
                       prefix="rte", submitted=submitted, **others)


def _read_multirc(path, has_targets):
    for line, question in super_glue.read_questions(path):
        for _, answer, label in question.answers:
            target = UNKNOWN
            if has_targets:
                target = _BOOLEANS[int(super_glue.labelled(label, path, line))]
            text = f"multirc question: {question.question} answer: {answer} paragraph: "
            yield TextExample(_BOLD.sub("", (text + question.text).replace("<br>", " ")), target,
                              group=(question.passage, question.number))


def _read_record(path, has_targets):
    for line, cloze in super_glue.read_clozes(path):
        answers = tuple(sorted(cloze.answers))
        target = super_glue.labelled(answers or None, path, line)[0] if has_targets else UNKNOWN
        yield TextExample(f"record query: {cloze.query} entities: "
                          f"{', '.join(sorted(cloze.candidates))} passage: {cloze.text}",
                          target, answers)


def _write_wsc(line, row, has_targets):
    """Yields a text with its pronoun between stars; `answers` are the label and the referent."""
    *_, before, pronoun, after = super_glue.cut_schema(row)
    label = _BOOLEANS[(False, True).index(row["label"])] if has_targets else UNKNOWN
    if before.endswith(" ") and (not after or after[0] == " "):
        # Any other word X becomes the pronoun too, as in the original.
        text = f"{before}X {after.removeprefix(' ')}".replace(" X ", f" *{pronoun}* ")
    else:       # the pronoun touches other marks
        text = _BLANKS.sub(" ", f"{before} *{pronoun}* {after}").strip()
    referent = super_glue.referent_of(row)
    yield TextExample(f"wsc: {text}", referent, (label, referent))


def _read_tags(path, has_targets):
    task = TASKS["conll2003"]
    ids = {label: index for index, label in enumerate(task.labels)}
    for example in read_examples(task, "dev", path):
        task.kind.check_taught(example.label, ids, path)
        yield TextExample(join_columns(task.name, {"words": " ".join(example.texts)}),
                          " ".join(task.labels[tag] for tag in example.label))


def read_pairs(path: str, has_targets: bool) -> Iterator[TextExample]:
    """Yields the examples of a user's file: input, tab, target; no header; quotes are plain."""
    width, line = 1 + has_targets, 0
    columns = "an input, a tab and a target" if has_targets else "an input"
    if forms.form_of(path) not in ("", "tsv"):
        raise InputError(f"{path} is a table or JSON, and each line must have {columns}; convert "
                         "it.")
    for line, text in read_lines(path):
        row = text.split("\t")
        if len(row) not in (width, 2):
            raise InputError(f"{path}, line {line} has {counted(len(row), 'column')}; give "
                             f"{columns} on each line.")
        if line == 1 and all(cell.strip().lower() in names for cell, names in zip(row, _NAMES)):
            warn(f"{path}: line 1 is read as an example; remove it if it names the columns.")
        yield TextExample(*row)
    if not line:
        raise InputError(f"{path} is empty: it must hold at least one example.")


_TSV = {split: f"{split}.tsv" for split in ("train", "dev", "test")}
_BOOLEANS = ("False", "True")
_PAIR = ("sentence1", "sentence2")
_LANGUAGES = {"de": "German", "en": "English", "fr": "French", "ro": "Romanian"}


def _translation(source, target):
    """Makes a task whose files have a text in one language and a tab before it in another."""
    begin = f"translate {_LANGUAGES[source]} to {_LANGUAGES[target]}: "

    def read(path, has_targets):
        for example in read_pairs(path, has_targets):
            yield dataclasses.replace(example, input=begin + example.input)

    return TextTask(f"translate_{source}_{target}", metrics=("bleu",), read=read, files=_TSV)


def _glue(name, columns, metrics=("accuracy",), official=None, prefix=None):
    known = TASKS[official or name]
    return TextTask(name, prefix or name, columns, known.label_names or known.labels, metrics,
                    known.name)


TEXT_TASKS = {task.name: task for task in (
    _glue("cola", ("sentence",), ("matthews",)),
    _glue("sst2", ("sentence",), official="sst-2"),
    _glue("mrpc", _PAIR, ("f1", "accuracy")),
    _glue("stsb", _PAIR, ("pearson", "spearman"), "sts-b"),
    _glue("qqp", ("question1", "question2"), ("f1", "accuracy")),
    _glue("mnli", ("premise", "hypothesis")),
    _glue("qnli", ("question", "sentence")),
    _glue("rte", _PAIR),
    _glue("wnli", _PAIR),
    _glue("ax", ("premise", "hypothesis"), ("matthews",), prefix="mnli"),
    TextTask("squad", metrics=("answer_f1", "em"), read=_read_squad, files_of="squad"),
    TextTask("squad_trivia", metrics=("answer_f1", "em"), files_of="squad",
             read=functools.partial(_read_squad, with_context=False)),
    _super_glue("boolq", ("passage", "question"), _BOOLEANS, label=(False, True)),
    _super_glue("cb", ("premise", "hypothesis"), ("entailment", "contradiction", "neutral"),
                metrics=("mean_f1_of_3", "accuracy")),
    _super_glue("copa", ("choice1", "choice2", "premise", "question"), ("choice1", "choice2"),
                label=(0, 1)),
    _of_rte("rte", "superglue-rte"),
    _of_rte("axb", "ax-b", fields=_PAIR, metrics=("matthews", "accuracy")),
    _of_rte("axg", "ax-g"),
    _super_glue("wic", ("sentence1", "sentence2", "word"), _BOOLEANS, label=(False, True)),
    TextTask("super_glue_multirc", words=_BOOLEANS, metrics=("f1", "group_em"),
             submitted="multirc", read=_read_multirc),
    TextTask("super_glue_record", metrics=("answer_f1", "em"), submitted="record",
             read=_read_record, learned=lambda example: [
                 dataclasses.replace(example, target=answer) for answer in example.answers]),
    TextTask("super_glue_wsc", metrics=("referent_accuracy",), submitted="wsc",
             read=super_glue.each_line("wsc")(_write_wsc),
             learned=lambda example: [example] * (example.answers[0] == "True")),
    TextTask("conll2003", metrics=("entity_f1", "exact_match"), read=_read_tags,
             files_of="conll2003"),
    *(_translation(*pair) for pair in (("en", "de"), ("en", "fr"), ("en", "ro"), ("de", "en"))),
    TextTask("pairs", metrics=("exact_match",), read=read_pairs, files=_TSV),
)}


def text_task(official: str) -> TextTask | None:
    """The task as text of an official task, with its metrics in the same order, or None."""
    return next((task for task in TEXT_TASKS.values()
                 if official in (task.official, task.submitted)), None)


def read_split(task: TextTask, split: str, path: str) -> Iterator[TextExample]:
    has_targets = not split.startswith("test")
    if task.read:
        for text in task.read(path, has_targets):
            yield from task.learned(text) if task.learned and split == "train" else [text]
        return
    official = with_rows(TASKS[task.official], path)
    labelled = official.split(split).label is not None
    for example in read_examples(official, split, path):
        label: Any = example.label if labelled else None
        yield task.write(example.texts, label)
