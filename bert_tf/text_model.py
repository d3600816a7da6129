"""A model that is trained on texts in memory, used and saved, in a few lines of Python."""

import collections
import dataclasses
import json
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self

import numpy as np

from bert_tf import checkpoints
from bert_tf.checkpoints.names import MODEL_FILE
from bert_tf.errors import InputError, calling, counted
from bert_tf.files import absolute, exists, fetched, folder_aside
from bert_tf.finetuning.jobs import finetune
from bert_tf.model_card import write_card
from bert_tf.opening import task_of_labels
from bert_tf.predictor import Predictor
from bert_tf.tasks.kinds.table import KINDS
from bert_tf.tasks.rows import plain_label
from bert_tf.tasks.saved_task import SavedTask
from bert_tf.tokenization.base import as_tuple, listed

_KINDS = ("classification", "multi_label", "regression")
_TEXTS, _LABEL = ("text_a", "text_b"), "label"
_LEFT_OUT = ("records", "trials", "tensorboard")      # of the folder of a run


class TextModel:
    """Learns labels or numbers for texts.

        model = bert_tf.TextModel.from_pretrained("bert-tiny")
        model.fit(texts, labels, num_train_epochs=3)        # lists of str
        model.predict(["Where is it?"])                     # [{"label": ..., ...}]
        model.save("questions")                             # Predictor("questions") opens it

    A text is a str, or a tuple of two. Training equals `bert-finetune`: the same features, the same
    weights.

    Attributes:
        path: the folder of the model; before `fit`, the folder of the pre-trained model.
        kind: "classification", one label each; "multi_label", a list of labels each; or
            "regression", a number each.
        scores: the scores on `dev_texts` after `fit`, by name.
    """

    def __init__(self, path: str | os.PathLike, kind: str = "classification"):
        if kind not in _KINDS:
            raise InputError(f"kind is {kind!r}; choose from {', '.join(_KINDS)}.")
        self.path, self.kind = absolute(fetched(path)), kind
        self._base = self.path
        self.scores: dict[str, float] = {}
        self._discard: weakref.finalize | None = None       # removes the folder of `fit`
        self._predictor: Predictor | None = None

    @classmethod
    def from_pretrained(cls, path: str | os.PathLike, kind: str | None = None) -> Self:
        """Opens a pre-trained or a fine-tuned model.

        Args:
            path: a folder of any format, or hf://OWNER/NAME.
            kind: the task's kind; None: the fine-tuned model's kind, also as a config.json of
                Hugging Face names it, else "classification".

        Raises:
            InputError: there is no model at `path`, or its task has another kind.
        """
        folder = fetched(path)
        checkpoints.read_config(folder)
        model = cls(folder, kind or "classification")
        saved = SavedTask.read(model.path)
        known = {KINDS[name]: name for name in _KINDS}
        if saved and saved.task.kind not in known:
            raise InputError(f"{path} is a model for {saved.task.kind.title}; train it with "
                             "bert_tf.finetune, and use it with bert_tf.Predictor.")
        if saved and kind not in (None, known[saved.task.kind]):
            raise InputError(f"{path} was fine-tuned for {known[saved.task.kind]}, not for {kind}; "
                             "leave kind out, or start from the pre-trained model.")
        learned = model._saved()
        if kind is None and learned and learned.task.kind in known:
            model.kind = known[learned.task.kind]
        return model

    def _saved(self) -> SavedTask | None:
        """The task that the model was fine-tuned for, by us or in Hugging Face's format."""
        return SavedTask.read(self.path) or task_of_labels(self.path)

    def _knows(self, labels: Sequence, names: Sequence[str]) -> bool:
        """Whether the model has learned these labels; new examples may lack some of its labels.
        `names` are those of flags. Numbers are left to `finetune`."""
        saved = self._saved()
        if not saved or saved.task.kind != KINDS[self.kind]:
            return False
        known = saved.task.labels
        if names:
            return tuple(names) == tuple(known)
        if self.kind == "multi_label" and len(labels) and all(
                isinstance(label, (list, tuple)) and len(label) == len(known)
                and all(one in (0, 1) for one in label) for label in labels):
            return True
        return _by_name(labels).keys() <= {*known}

    def __getstate__(self) -> dict[str, Any]:
        if self._discard:
            raise InputError("a model that was just trained can't be copied, since its files last "
                             "as long as it does; save the model, and open the folder with "
                             "from_pretrained.")
        return {**self.__dict__, "_predictor": None}

    def __repr__(self) -> str:
        saved, what = self._saved(), "not trained for a task yet: call fit"
        if saved:
            labels = ", ".join(map(str, saved.task.labels))
            what = f"labels {labels}" if labels else "trained"
        return f"TextModel({self.path!r}, {self.kind}; {what})"

    def fit(self, texts: Sequence, labels: Sequence, dev_texts: Sequence | None = (),
            dev_labels: Sequence | None = (), label_names: Sequence[str] = (),
            **settings: Any) -> dict[str, float]:
        """Trains the model, and returns its scores on `dev_texts`, if there are such.

        If the model was fine-tuned before, and knows all of these labels, its head is trained
        further; for other labels, or with `keep_head=False`, it gets a new head.

        Args:
            texts: str, or tuples of two; a list, an array, or a column or a table of pandas.
            labels: one for each text: str or int, which answers have too; or numbers. Of several
                labels lists of such; or flags, a 0 or 1 for each label, as lists, an array or a
                table of pandas, whose columns name the labels.
            label_names: the names of flags, in their order.
            dev_texts, dev_labels: the same, to score the model on; None or empty: no such.
            settings: flags of `bert-finetune`, such as `learning_rate`, `train_batch_size`,
                `num_train_epochs`, `max_seq_length`, `random_seed`; None is the default.

        Raises:
            InputError: texts and labels do not go together, or a setting is wrong.
        """
        texts, labels = _lasting(texts), _lasting(labels)
        dev_texts, dev_labels = (
            () if dev is None else _lasting(dev) for dev in (dev_texts, dev_labels))
        folder = tempfile.mkdtemp(prefix="bert_tf_")
        discard = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        files = {"train_file": os.path.join(folder, "train.jsonl")}
        saved, before = settings.get("keep_head") is not False and self._saved(), {}
        if saved:
            before = dict(zip(saved.task.labels, saved.task.answers))
        labels, names = _label_rows(self.kind, labels, label_names, saved and saved.task.labels)
        width = _write(files["train_file"], texts, labels)
        dev_labels, columns = _label_rows(self.kind, dev_labels, (), names)
        if columns and columns != names:
            raise InputError(f"dev_labels: the columns of labels are {', '.join(columns)}, but the "
                             f"labels are {', '.join(names) or 'given without columns'}; give both "
                             "in the same form.")
        if len(dev_texts) or len(dev_labels):
            files["dev_file"] = os.path.join(folder, "dev.jsonl")
            if (dev_width := _write(files["dev_file"], dev_texts, dev_labels)) != width:
                raise InputError(f"an example of dev_texts has {counted(dev_width, 'text')}, but "
                                 f"an example of texts has {width}; give both the same number.")
        output = os.path.join(folder, "model")
        chosen = {"keep_head": True} if self._knows(labels, names) else {}
        chosen |= {name: value for name, value in settings.items() if value is not None}
        called = dict(zip(files.values(), ("texts and labels", "dev_texts and dev_labels")))
        task = {**files, **dict(zip(("text_a_column", "text_b_column"), _TEXTS[:width])),
                "label_column": _LABEL, "task_kind": self.kind, "labels": list(names)}
        _check_settings(chosen, {*task, "task", "init_checkpoint", "output_dir"})
        with calling({**called, "--multi_label": "kind='multi_label' to from_pretrained"}):
            self.scores = finetune(task, self.path, output, **chosen)
        if not exists(os.path.join(output, MODEL_FILE)):
            raise InputError("stop_at_step ended the training before a model was saved; leave it "
                             "out.")
        if not names:       # of flags
            _keep_values(output, {**before, **_by_name(labels)})
        if self._discard:
            self._discard()
        self.path, self._discard, self._predictor = output, discard, None
        return self.scores

    def predict(self, texts: Any) -> Any:
        """Returns the predictions of `bert_tf.Predictor`: a dict, or a list of dicts for a list, an
        array, or a column or a table of pandas."""
        if not self._predictor:
            checkpoints.check_exists(self.path)
            if not self._saved():
                raise InputError(f"{self.path} is not trained for a task yet; call fit first.")
            self._predictor = Predictor(self.path)
        return self._predictor(texts)

    def save(self, folder: str | os.PathLike) -> None:
        """Writes the model to a folder of its own, which `Predictor`, `from_pretrained` and all
        commands open. InputError if the folder has other files, or the model was not trained."""
        if self._discard is None:
            raise InputError("there is nothing to save yet; call fit first.")
        with folder_aside(os.fspath(folder)) as aside:
            shutil.copytree(self.path, aside, dirs_exist_ok=True,
                            ignore=shutil.ignore_patterns(*_LEFT_OUT))
            write_card(aside, self._base, source=self.path, temporary=os.path.dirname(self.path),
                       name=os.path.basename(absolute(os.fspath(folder))))


def _check_settings(chosen, own):
    if wrong := sorted(own.intersection(chosen)):
        raise InputError(f"{wrong[0]} is no setting of fit, which takes texts and labels, and "
                         "whose model save writes; leave it out.")
    if chosen.get("num_train_epochs") == 0 and not chosen.get("num_train_steps"):
        raise InputError("num_train_epochs is 0, so nothing would be learned; give more.")


def _lasting(values):
    """The values of a generator in a list, others as they are."""
    return list(values) if isinstance(values, Iterator) else values


def _label_rows(kind, labels, names, known):
    """The labels, and the names of flags, () without any. The rows of an array or a table become
    lists, in the order of the `known` labels if its columns are these; a single column without
    flags becomes the labels."""
    if len(names) and all(isinstance(row, (list, tuple)) and len(row) == len(names)
                          for row in labels):
        labels = np.array(list(map(list, labels)), object)      # flags, as in an array
    if len(getattr(labels, "shape", ())) != 2:
        return labels, tuple(names)
    columns, width = names, labels.shape[1]
    if not len(names):
        columns = getattr(labels, "columns", ())
    columns = tuple(str(name).strip() for name in columns)
    if hasattr(labels, "toarray"):
        labels = labels.toarray()
    rows = np.asarray(labels).tolist()
    if width == 1 and (kind != "multi_label" or not all(
            isinstance(flag, (bool, int, float)) and flag in (0, 1) for flag, in rows)):
        return [row[0] for row in rows], tuple(names)
    if kind != "multi_label":
        raise InputError(f"labels have {width} columns; give one label for each text, or open the "
                         "model with kind='multi_label', for flags.")
    if columns and len(columns) != width:
        raise InputError(f"label_names are {', '.join(columns)}, but labels have "
                         f"{counted(width, 'column')}; give a name for each.")
    if not columns or sorted(columns) != sorted(known or ()):
        return rows, columns
    order = list(map(columns.index, known))
    return [[row[place] for place in order] for row in rows], tuple(known)


def _write(path, texts, labels):
    """Writes texts with their labels as JSON lines; returns the number of texts of each."""
    for name, values in {"texts": texts, "labels": labels}.items():
        # Letters or keys would be taken, or elements in any order.
        if isinstance(values, (str, collections.UserString, bytes, dict, set, frozenset)) or not (
                isinstance(values, Iterable)):
            raise InputError(f"{name} is one {type(values).__name__}; give a list of {name}.")
    rows = list(map(as_tuple, listed(texts)))
    labels = list(labels)
    if len(rows) != len(labels) or not rows:
        raise InputError(f"there must be a label for each text, but here are "
                         f"{counted(len(rows), 'text')} and {counted(len(labels), 'label')}.")
    width = len(rows[0])
    for number, row in enumerate(rows):
        if len(row) != width or not 1 <= width <= 2 or not all(isinstance(t, str) for t in row):
            shown = row[0] if len(row) == 1 else row
            raise InputError(f"text {number} is {shown!r}; give a text, or a tuple of two texts.")
    with open(path, "w", encoding="utf-8") as file:
        for number, (row, label) in enumerate(zip(rows, labels)):
            file.write(json.dumps({**dict(zip(_TEXTS, row)), _LABEL: _plain(label, number)}) + "\n")
    return width


def _by_name(labels):
    """The labels as they were given, {name: label}; a list of labels gives each of them."""
    rows = [_plain(label, number) for number, label in enumerate(labels)]
    each = [one for row in rows for one in (row if isinstance(row, list) else [row])]
    return {plain_label(one): one.strip() if isinstance(one, str) else one for one in each}


def _keep_values(folder, values):
    """Writes the values of labels, {label: value}, into a task: none if one is a text, or two are
    equal, as 1 and True are in Python."""
    saved = SavedTask.read(folder)
    kept = tuple(values.get(label, label) for label in saved.task.labels)
    if len({*kept}) < len(kept) or any(isinstance(value, str) for value in kept):
        kept = ()
    task = dataclasses.replace(saved.task, label_values=kept)
    dataclasses.replace(saved, task=task).write(folder)


def _plain(label, number):
    value = label.tolist() if hasattr(label, "tolist") else label
    if isinstance(value, (list, tuple)):
        return [_plain(one, number) for one in value]
    # A value that differs from itself is NaN, which pandas has where there is no label.
    if not isinstance(value, (str, int, float)) or value != value:
        raise InputError(f"label {number} is {value!r}; give a label, a number, or a list of label "
                         "names or flags.")
    return value
