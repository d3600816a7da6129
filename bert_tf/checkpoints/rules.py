"""Tables of names, each read in both directions."""

import dataclasses
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from bert_tf.checkpoints import names
from bert_tf.config import EncoderConfig, read_config
from bert_tf.config.sizes import numbers
from bert_tf.files import is_file, is_folder
from bert_tf.tokenization import find_vocabulary

# The configuration next to the weights in Google's folders, and in similar ones.
CONFIG = "bert_config.json"
# The names of our own training checkpoints, which end as Hugging Face's files do.
OWN = r"checkpoint-\d+\.safetensors"
# The file of integers; see quantised.py.
QUANTISED = "quantised.safetensors"
# Endings of rows, see `Format`, of TensorFlow's names, which are also ours.
SELF = (("", ""),)
DENSE = (("/kernel", "/kernel"), ("/bias", "/bias"))
NORM = (("/gamma", "/gamma"), ("/beta", "/beta"))
KINDS = {"table": SELF, "norm": NORM, "dense": DENSE}


@dataclasses.dataclass(frozen=True)
class Tensor:
    """A tensor of a file: its name there, its shape and dtype, and the functions that read it and
    the rows that `cut` removed."""

    name: str
    shape: tuple
    dtype: str
    read: Callable[[], np.ndarray]
    read_cut: Callable[[], np.ndarray] | None = None

    def changed(self, change: Callable[[np.ndarray], np.ndarray], **fields: Any) -> "Tensor":
        """Returns the tensor with the values that a function makes of these, and other `fields`."""
        return dataclasses.replace(self, read=lambda: change(self.read()), **fields)

    def transposed(self) -> "Tensor":
        """Returns the same numbers with the axes in reverse order."""
        return self.changed(np.transpose, shape=self.shape[::-1])

    def reshaped(self, shape: tuple) -> "Tensor":
        """Returns the same numbers in another shape."""
        return self.changed(lambda values: values.reshape(shape), shape=shape)

    def cut(self, count: int) -> "Tensor":
        """Returns the tensor without its first `count` rows."""
        return self.changed(lambda values: values[count:],
                            shape=(self.shape[0] - count, *self.shape[1:]),
                            read_cut=lambda: self.read()[:count])

    def uncut(self, count: int) -> np.ndarray:
        """Returns the values with `count` more rows: the rows that `cut` removed, or zeros."""
        rows = self.read()
        cut = self.read_cut() if self.read_cut else rows[:0]
        if len(cut) != count:
            cut = np.zeros((count, *rows.shape[1:]))
        return np.concatenate([cut.astype(rows.dtype), rows])


@dataclasses.dataclass(frozen=True)
class Rule:
    """One variable of ours and another format's tensor with the same numbers.

    Attributes:
        ours, theirs: our name, and the other format's.
        shape: our shape, in the letters of `names`.
        layout: the other's shape in the same letters, or "transpose"; empty: ours. "transpose" and
            letters: that shape, after the axes were reversed.
    """

    ours: str
    theirs: str
    shape: str
    layout: str = ""

    @property
    def their_shape(self) -> str:
        """The shape in the other format, in letters."""
        if self.layout == "transpose":
            return self.shape[::-1]
        return self.layout.removeprefix("transpose ") or self.shape

    def convert(self, tensor: Tensor, shape: tuple) -> Tensor:
        """Converts `tensor`, in either direction, to the side where its shape is `shape`."""
        if not self.layout.startswith("transpose"):
            return tensor.reshaped(shape)
        if len(shape) == len(self.shape):       # ours has two axes
            return tensor.reshaped(shape[::-1]).transposed()
        return tensor.transposed().reshaped(shape)


@dataclasses.dataclass(frozen=True)
class Format:
    """The names of a format.

    Attributes:
        rows: (our prefix, their prefix, endings); endings are (ours, theirs[, layout]). None where
            the format has our own names.
        ignored: (pattern of their names, reason) of tensors that no encoder needs.
        heads: {head's own name: its row in `heads.HEADS`}.
        notes: sentences on written contents that no name shows.
    """

    rows: tuple | None
    ignored: tuple = ()
    heads: Mapping[str, str] = dataclasses.field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def rules(self, config: EncoderConfig) -> list[Rule]:
        """Returns the table written out for the network of `config`."""
        shapes = names.shapes(config, self.heads)
        rows = self.rows
        if rows is None:
            rows = tuple((name, name, SELF) for name in shapes)
        return [Rule(names.numbered(ours, i, config), names.numbered(name, i, config),
                     shapes[ours], *layout)
                for our_prefix, their_prefix, endings in rows
                for end, their_end, *layout in endings
                for ours, name in [(our_prefix + end, their_prefix + their_end)]
                if ours in shapes for i in numbers(config, ours)]

    def reason_to_ignore(self, name: str) -> str | None:
        """Returns the reason why the tensor `name` isn't needed, or None if it is."""
        matching = (reason for pattern, reason in self.ignored if re.fullmatch(pattern, name))
        return next(matching, None)


def encoder_rows(endings: dict[str, tuple], embeddings: Iterable[str], layer: str,
                 parts: Iterable[str]) -> list[tuple]:
    """The rows of a `Format` for the embeddings and the layers of an encoder. `endings` are of each
    kind in `names.LAYER`; "split" and "join" default to "dense". `embeddings` and `parts` are the
    format's names of `names.EMBEDDINGS` and `names.LAYER`; `layer` is the prefix of parts."""
    endings = {"split": endings["dense"], "join": endings["dense"], **endings}
    return [*((f"embeddings/{ours}", name, endings[kind])
              for (ours, kind), name in zip(names.EMBEDDINGS.items(), embeddings, strict=True)),
            *((f"encoder/layer_{{i}}/{ours}", layer + name, endings[kind])
              for (ours, kind), name in zip(names.LAYER.items(), parts, strict=True))]


def conditional_span_rows(dot: str, dense: tuple, norm: tuple) -> list[tuple]:
    """Returns the rows of the head of answers of ALBERT and XLNet; `dot` parts names."""
    return [("conditional_span/start", f"start_logits{dot}dense", dense),
            ("conditional_span/end/hidden", f"end_logits{dot}dense_0", dense),
            ("conditional_span/end/LayerNorm", f"end_logits{dot}LayerNorm", norm),
            ("conditional_span/end/dense", f"end_logits{dot}dense_1", dense),
            ("conditional_span/answerable/hidden", f"answer_class{dot}dense_0", dense),
            ("conditional_span/answerable/dense", f"answer_class{dot}dense_1", dense)]


@dataclasses.dataclass(frozen=True)
class Source:
    """A checkpoint's contents, in its own names.

    Attributes:
        config, vocab_file: the configuration, and the vocabulary, next to the `file`, or None.
        tensors: by the names of the table.
        labels, notes: the names of the classes, if known; sentences on earlier changes.
        generator: the `Source` of the generator in a checkpoint of ELECTRA's pre-training, or None.
        table_of: function from a classifier in `HEADS` to the `Format` with that classifier; None
            where the file names it.
        objectives: class and `get_config()` of each objective of the Learner in a file of ours.
        options: of the head, as `task.json` has them.
    """

    file: str
    config: EncoderConfig | None
    tensors: dict = dataclasses.field(repr=False)
    table: Format
    vocab_file: str | None = None
    do_lower_case: bool | None = None
    labels: tuple = ()
    notes: tuple[str, ...] = ()
    generator: "Source | None" = None
    table_of: Callable[[str], Format] | None = None
    objectives: tuple[tuple[str, dict], ...] = ()
    options: dict = dataclasses.field(default_factory=dict)

    def for_task(self, task: str | None) -> "Source":
        """The checkpoint whose classifier is the head `task`, where the files leave it open."""
        if task not in names.CLASSIFIERS or self.table_of is None:
            return self
        return dataclasses.replace(self, table=self.table_of(task))


def beside(file: str, name: str) -> str | None:
    """Returns the path of the file `name` in the folder of `file`, or None."""
    path = os.path.join(os.path.dirname(file), name)
    return path if is_file(path) else None


def named(path: str, name: str) -> str | None:
    """Returns the file `name` at `path`, itself or in a folder, or None."""
    if is_folder(path):
        path = os.path.join(path, name)
    return path if os.path.basename(path) == name and is_file(path) else None


def config_beside(file: str) -> EncoderConfig | None:
    """Returns the configuration in the `bert_config.json` next to `file`, or None."""
    path = beside(file, CONFIG)
    return read_config(path) if path else None


def vocabulary_beside(file: str) -> str | None:
    """Returns the vocabulary next to `file`, of any kind, or None."""
    return find_vocabulary(os.path.dirname(file) or os.curdir)
