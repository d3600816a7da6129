"""A task as `task.json` in the folder of a fine-tuned model holds it."""

import collections
import dataclasses
import os

from bert_tf.errors import InputError, counted, nearest
from bert_tf.files import is_file, is_folder, write_json
from bert_tf.files.reading import Values, check_shape
from bert_tf.heads import CHOICES
from bert_tf.kept import read_kept
from bert_tf.tasks.kinds.table import KINDS
from bert_tf.tasks.passages import PASSAGES
from bert_tf.tasks.squad_scorer import SCORERS
from bert_tf.tasks.task import Kind, Task
from bert_tf.tokenization.encoding import LONG_TEXTS

TASK_FILE = "task.json"
_LONGEST = 1 << 20      # tokens
_NEAR = 0.8             # likeness of a misspelled name; other unknown names are other versions'


def _is_count(value):
    return type(value) is int and 0 <= value < 1 << 40


def _is_number(value):
    return type(value) in (int, float) and value == value


def _or_none(what, fits):
    return Values(what, lambda value: value is None or fits(value))


_VALUE = Values("a text, a number, true or false",
                lambda value: type(value) in (str, int, float, bool))
_OPTIONS = {
    # Of the options of kinds and heads, those without a row of their own.
    **dict.fromkeys((name for kind in KINDS.values() for name in (
        *kind.head_options, *kind.input_options, "start_n_top", "end_n_top", "answer_turns")),
        _or_none("a whole number from 0, or null", _is_count)),
    **dict.fromkeys(("doc_stride", "max_query_length", "n_best_size", "max_answer_length",
                     "max_target_length", "beams"), Values("a whole number from 0", _is_count)),
    **dict.fromkeys(("null_score_diff_threshold", "alpha"), Values("a number", _is_number)),
    **dict.fromkeys(("label_scale", "label_mean"), _or_none("a number, or null", _is_number)),
    **dict.fromkeys(("version_2_with_negative", "hypothesis_first", "carry_choices",
                     "document_context", "label_gain"),
                    _or_none("true, false or null", lambda value: type(value) is bool)),
    "feature_layers": _or_none("the name of layers, or null", lambda value: type(value) is str),
    "squad_style": Values(" or ".join(PASSAGES), [*PASSAGES].__contains__),
    "scorer": Values(" or ".join(SCORERS), [None, *SCORERS].__contains__),
    "head": Values(" or ".join(CHOICES), [None, *CHOICES].__contains__),
    "long_text": Values(" or ".join(LONG_TEXTS), [None, *LONG_TEXTS].__contains__)}
_SHAPE = {"task": {"name": str, "labels": [str], "metrics": [str], "label_names": [str],
                   "label_values?": [_VALUE]},
          "options": {f"{name}?": values for name, values in _OPTIONS.items()},
          "max_seq_length": Values(f"a whole number of tokens from 1 to {_LONGEST}", lambda value: (
              _is_count(value) and 0 < value <= _LONGEST)),
          "do_lower_case": Values("true or false", lambda value: type(value) is bool),
          "num_texts": (int, type(None)), "columns": {}}


def kind_on_disk(described: dict) -> Kind:
    """The kind that `task.json` or a manifest describes with `kind` and `multi_label`."""
    on_disk = {name: described[name] for name in ("kind", "multi_label")}
    for kind in KINDS.values():
        if kind.on_disk == on_disk:
            return kind
    raise InputError(f"this version has no task of the kind {described['kind']!r}; use the version "
                     "of bert_tf that wrote the model.")


@dataclasses.dataclass(frozen=True)
class SavedTask:
    """A task without its files, as in `task.json` in the folder of a fine-tuned model."""

    task: Task                  # without splits
    max_seq_length: int         # S
    do_lower_case: bool
    # Other settings of the input and the head.
    options: dict = dataclasses.field(default_factory=dict)
    num_texts: int | None = None        # of a training example; None if unknown or of no matter
    # `Task.columns` of the user's training file; else {}.
    columns: dict = dataclasses.field(default_factory=dict)

    def is_of(self, task: Task) -> bool:
        """Whether this is the task; length, case and options may differ."""
        return _described(task) == _described(self.task)

    def check_texts(self, num_texts: int | None, where: str) -> None:
        """Raises InputError, naming `where`, if examples have more or fewer texts than those
        trained on. None: any number will do."""
        if num_texts is None or self.num_texts is None:
            return
        if num_texts != self.num_texts:
            raise InputError(f"{where} has {counted(num_texts, 'text')}, but the model was trained "
                             f"on examples of {counted(self.num_texts, 'text')}; give as many "
                             "texts.")

    def write(self, folder: str) -> None:
        write_json(os.path.join(folder, TASK_FILE), {
            "task": {**_described(self.task), "label_names": self.task.label_names,
                     "label_values": self.task.label_values},
            "max_seq_length": self.max_seq_length, "do_lower_case": self.do_lower_case,
            "options": self.options, "num_texts": self.num_texts, "columns": self.columns})

    @classmethod
    def require(cls, folder: str, flag: str) -> "SavedTask":
        """The task saved with the model in a folder, or InputError that names the flag."""
        saved = cls.read(folder)
        if saved is None:
            what = "folder"
            if is_folder(folder):
                what = f"{TASK_FILE} in"
            raise InputError(f"--{flag}: there is no {what} {folder!r}; name the --output_dir of a "
                             "fine-tuning run with one task.")
        return saved

    @classmethod
    def read(cls, folder: str) -> "SavedTask | None":
        """Returns the task saved with the model in a folder, or None if there is no file. A preset
        of keras-hub has a file of the same name, which is none."""
        path = os.path.join(folder, TASK_FILE)
        if not is_file(path):
            return None
        saved = read_kept(path)
        if "registered_name" in saved:
            return None
        try:
            check_shape(saved, _SHAPE)
            for name in saved["options"].keys() - _OPTIONS.keys():
                if meant := nearest(name, _OPTIONS, _NEAR):
                    raise ValueError(f"options.{name} is not an option; write {meant}")
            task = saved["task"]
            kind, labels = kind_on_disk(task), task["labels"]
            names, values = task["label_names"], task.get("label_values", ())
            if kind.has_labels and kind.labels_are_classes and not labels:
                raise ValueError("task.labels is empty; write the labels in the order of their ids")
            for label, count in collections.Counter(labels).items():
                if count > 1:
                    raise ValueError(f"task.labels has {label!r} {count} times; write each label "
                                     "once")
            for name, each in {"names": names, "values": values}.items():
                if len(each) not in (0, len(labels)):
                    raise ValueError(f"task.label_{name} has {len(each)} {name} for {len(labels)} "
                                     "labels; write one for each")
            task = Task(task["name"], kind, {}, tuple(labels), tuple(task["metrics"]),
                        task["bounds"] and tuple(task["bounds"]), label_names=tuple(names),
                        label_values=tuple(values))
            return cls(task, saved["max_seq_length"], saved["do_lower_case"],
                       dict(saved["options"]), saved["num_texts"], dict(saved["columns"]))
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path} does not describe a task ({error}); correct it, or fine-tune "
                             "the model again.") from error


def _described(task):
    return {"name": task.name, "kind": task.kind.on_disk["kind"], "labels": task.labels,
            "metrics": task.metrics, "multi_label": task.kind.on_disk["multi_label"],
            "bounds": task.bounds}
