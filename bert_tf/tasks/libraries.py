"""Rows of data sets by name, from the libraries that have them: tfds:NAME:SPLIT of
tensorflow_datasets, and hf://datasets/OWNER/NAME of the Hugging Face Hub by `datasets`."""

import dataclasses
import re
from collections.abc import Iterator
from typing import Any

from bert_tf.errors import InputError
from bert_tf.files import dataset_commit

TFDS, HUB = "tfds:", "hf://datasets/"
# A name of the Hub that is of files.
_OF_FILES = re.compile(r"[*?\[]|\.(?:jsonl|ndjson|json|parquet|txt|xml|csv|tsv|gz|xz|bz2|zst)$")
_HUB_NAME = re.compile(r"hf://datasets/([\w.-]+(?:/[\w.-]+)?)(?:@([\w.-]+))?(?:/([\w.-]+))?(?::(.+))?")

_VERSION = re.compile(r"[\d*]+(?:\.[\d*]+){2}")       # of a data set of tensorflow_datasets


def is_library_name(name: str) -> bool:
    """Returns whether a name is a data set that a library reads, not files."""
    return name.startswith(TFDS) or name.startswith(HUB) and not _OF_FILES.search(name)


@dataclasses.dataclass(frozen=True)
class DataSet:
    """A split of a data set, with all that says which version it is."""

    name: str
    config: str
    split: str
    commit: str = ""

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yields rows of plain values; classes are their names."""
        return (_hub_rows if self.commit else _tfds_rows)(self)


def find(name: str, split: str = "train") -> DataSet:
    """Returns the data set of a name, tfds:NAME or hf://datasets/OWNER/NAME[@REVISION][/CONFIG].

    The name ends in :SPLIT where it is not `split`.

    Raises:
        InputError: the name has another form, or the Hub has no such data set.
    """
    if name.startswith(TFDS):
        known, _, own = name.removeprefix(TFDS).rpartition(":")
        if not known or _VERSION.fullmatch(own):
            known, own = name.removeprefix(TFDS), split
        return DataSet(known, "", own)
    match = _HUB_NAME.fullmatch(name)
    if not match:
        raise InputError(f"{name}: write data sets of the Hub as hf://datasets/OWNER/NAME, with "
                         "@REVISION, /CONFIGURATION and :SPLIT if wanted.")
    known, revision, config, own = match.groups()
    return DataSet(known, config or "", own or split,
                   dataset_commit(name, known, revision or "main"))


def _tfds_rows(data_set):
    try:
        import tensorflow_datasets as tfds
    except ImportError as error:
        raise InputError(f"{TFDS}{data_set.name} needs tensorflow_datasets: pip install "
                         "'bert_tf[tfds]'.") from error
    try:
        rows, info = tfds.load(data_set.name, split=data_set.split, with_info=True)
    except (ImportError, OSError, ValueError) as error:
        raise InputError(f"tensorflow_datasets has no split {data_set.split!r} of "
                         f"{data_set.name!r} ({_first_line(error)}).") from error
    # A list of classes is a feature of features.
    classes = {key: getattr(getattr(feature, "feature", feature), "names", None)
               for key, feature in info.features.items()}
    for row in tfds.as_numpy(rows):
        yield {key: _plain(value, classes[key]) for key, value in row.items()}


def _hub_rows(data_set):
    try:
        import datasets
    except ImportError as error:
        raise InputError(f"{HUB}{data_set.name} needs the package datasets: pip install "
                         "'bert_tf[datasets]'.") from error
    try:
        rows = datasets.load_dataset(data_set.name, data_set.config or None, split=data_set.split,
                                     revision=data_set.commit, streaming=True)
    except (OSError, ValueError, RuntimeError) as error:
        raise InputError(f"{HUB}{data_set.name}: there is no split {data_set.split!r}"
                         f"{f' of {data_set.config!r}' if data_set.config else ''} "
                         f"({_first_line(error)}).") from error
    classes = {key: getattr(getattr(feature, "feature", feature), "names", None)
               for key, feature in (rows.features or {}).items()}
    for row in rows:
        yield {key: _plain(value, classes.get(key)) for key, value in row.items()}


def _first_line(error):
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def _plain(value, names):
    """Returns str, int, float or a list of these, from bytes or NumPy's types."""
    value = getattr(value, "tolist", lambda: value)()
    if isinstance(value, list):
        return [_plain(part, names) for part in value]
    if isinstance(value, bytes):
        return value.decode("utf-8")
    # A class of -1 is hidden.
    return names[value] if names and isinstance(value, int) and value >= 0 else value
