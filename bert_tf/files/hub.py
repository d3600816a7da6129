"""Models of the Hugging Face Hub by name: hf://OWNER/NAME, optionally with @REVISION and /FILE.
huggingface_hub downloads the files that are read into its cache: the weights in one format, the
configuration, the vocabulary and the card. Where the Hub can't be reached, the cache is read."""

import contextlib
import dataclasses
import functools
import glob
import os
import re
import sys
from collections.abc import Sequence

import lazy_loader

from bert_tf.errors import InputError, warn
from bert_tf.files import places
from bert_tf.files.places import files_under, first_line, is_file
from bert_tf.files.reading import open_file

hub = lazy_loader.load("huggingface_hub")   # local models need none of it

_NAME = re.compile(r"hf://(?!datasets/|spaces/)([\w.-]+/[\w.-]+?)(?:@([\w.-]+))?(?:/(.+?))?/?")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_CARD = "README.md"
# Files that are read with the weights: configurations, tasks, vocabularies.
_BESIDE = re.compile(
    r"(?:[a-z]+_)?config\.json|task\.json|labels\.txt|"
    r"added_tokens\.json|vocab\.(?:txt|json|bpe)|merges\.txt|"
    r"encoder\.json|dict\.txt|.*\.model|"
    r"modules\.json|(?:\d+_\w+/|sentence_bert_)config\.json|config_sentence_transformers\.json")
_VOCABULARY = re.compile(r"vocab\..*|encoder\.json|.*\.model")
_NEW_VOCABULARY = re.compile(r"tokenizer\.json")        # read where there is no other
# Kinds of weights; the first kind that exists is taken.
_WEIGHTS = tuple(map(re.compile, (
    r"model\.safetensors", r"model\.safetensors\.index\.json|model-\d+-of-\d+\.safetensors",
    r"model\.keras", r"model\.weights\.h5", r"quantised\.safetensors",
    r".*\.(?:index|data-\d+-of-\d+)")))
# The errors of requests and httpx for a download that was cut; a new call goes on with it.
_CUT = ("ChunkedEncodingError", "RemoteProtocolError")
_TRIES = 5      # huggingface_hub before 1.20 makes one
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".h5")


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """A model, or a data set, at one commit. `licence`: as its card says, or ""."""

    name: str
    commit: str
    licence: str

    def __str__(self) -> str:
        return f"hf://{self.name}@{self.commit}, licence {self.licence or 'not stated'}"


@functools.cache
def dataset_commit(path: str, name: str, revision: str = "main") -> str:
    """Returns the commit that a revision of a data set of the Hub means, and prints it, unless the
    revision is a commit. InputError if there is no such data set, it is not open, or the Hub does
    not answer."""
    if _COMMIT.fullmatch(revision):
        return revision
    try:
        info = hub.HfApi().dataset_info(name, revision=revision, timeout=10)
    except Exception as error:      # each transport has errors of its own
        raise InputError(_explained(path, error, "data set")) from error
    licence = str(getattr(info.card_data, "license", None) or "")
    _say(Snapshot(f"datasets/{name}", info.sha, licence))
    return info.sha


def _say(line):
    """Prints a line, not to standard output, which may get predictions."""
    print(line, file=sys.stderr, flush=True)


@functools.cache
def local_copy(path: str, with_weights: bool) -> str:
    """Returns the local folder, or file, of a model; see `places.fetched`."""
    match = _NAME.fullmatch(path)
    if not match:
        raise InputError(f"{path}: write models of the Hub as hf://OWNER/NAME, optionally with "
                         "@REVISION and /FILE.")
    name, revision, inner = match[1], match[2] or "main", match[3] or ""
    folder = _folder(path, name, revision, inner, with_weights)
    card, licence = os.path.join(folder, _CARD), ""
    if is_file(card):
        licence = in_card(card, "license")
    snapshot = Snapshot(name, os.path.basename(folder), licence)
    places.COPIES[os.path.abspath(folder)] = snapshot
    _say(snapshot)
    return os.path.join(folder, *filter(None, inner.split("/")))


def _folder(path, name, revision, inner, with_weights):
    get = functools.partial(hub.snapshot_download, name, revision=revision)
    try:
        info = hub.HfApi().model_info(name, revision=revision, timeout=10)
        names = _wanted(path, [each.rfilename for each in info.siblings], inner, with_weights)
        return _downloaded(functools.partial(get, allow_patterns=list(map(glob.escape, names))))
    except InputError:
        raise
    except Exception as error:      # each transport has errors of its own
        explained = InputError(_explained(path, error, "model"))
        with contextlib.suppress(InputError, OSError):
            if not _is(error, "RepositoryNotFoundError"):
                folder = get(local_files_only=True, allow_patterns=_CARD)
                _wanted(path, [os.path.relpath(file, folder) for file in files_under(folder)],
                        inner, with_weights)
                if not _is(error, "OfflineModeIsEnabled"):
                    warn(f"{explained} The earlier download is used.")
                return folder
        raise explained from error


def _downloaded(get):
    for _ in range(_TRIES - 1):
        try:
            return get()
        except Exception as error:
            if not any(_is(error, kind) for kind in _CUT):
                raise
    return get()


def in_card(path: str | os.PathLike, key: str) -> str:
    """Returns the text of a key in the head of a model's card, a file; "" without such a key."""
    with open_file(path, "rb") as file:
        text = file.read().decode("utf-8", "replace")
    if not text.startswith("---"):
        return ""
    try:
        value = hub.ModelCard(text, ignore_metadata_errors=True).data.get(key)
    except Exception:       # as the damage has it
        return ""
    return value if isinstance(value, str) else ""


def _wanted(path, names: Sequence[str], inner, with_weights) -> list[str]:
    card = [name for name in names if name == _CARD]
    if inner in names:
        folder, name = os.path.split(inner)
        if name.endswith(PICKLES) and not name.endswith(".weights.h5"):
            raise InputError(_pickled(path, name))
        stem = re.sub(r"\.index$|\.safetensors\.index\.json$", "", inner)
        parts = [each for each in names if stem != inner and each.startswith(stem)]
        return [inner, *parts, *_beside(names, folder), *card]
    beside = _beside(names, inner)
    if not with_weights:
        return beside + card
    for pattern in _WEIGHTS:
        if weights := _in_folder(names, inner, pattern):
            return weights + beside + card
    for name in _in_folder(names, inner, re.compile(".*")):
        if name.endswith(PICKLES):
            raise InputError(_pickled(path, name))
    raise InputError(f"{path} has no file of weights that bert_tf reads; its files are "
                     f"{', '.join(names[:8]) or 'none'}.")


def _pickled(path, name):
    return (f"{path}: {name} isn't fetched, because such files can run code or need other "
            "libraries; name a revision of the model that has model.safetensors.")


def _beside(names, folder):
    """The names of the files that are read with the weights of a folder."""
    beside = _in_folder(names, folder, _BESIDE)
    if any(_VOCABULARY.fullmatch(os.path.basename(name)) for name in beside):
        return beside
    return beside + _in_folder(names, folder, _NEW_VOCABULARY)


def _in_folder(names, folder, pattern):
    start = os.path.join(folder.rstrip("/"), "")
    return [name for name in names if name.startswith(start)
            and pattern.fullmatch(name.removeprefix(start))]


def _is(error, kind):
    return kind in (each.__name__ for each in type(error).__mro__)


def _explained(path: str, error: Exception, what: str) -> str:
    for kind, reason in (
            ("GatedRepoError", "is open only to those who accepted its terms; accept them on "
                               "huggingface.co, then run `hf auth login`"),
            ("RepositoryNotFoundError", f"is not a {what} of the Hub, or a private one; check the "
                                        "name, or run `hf auth login`"),
            ("RevisionNotFoundError", "has no such revision; name a branch, tag or commit"),
            ("EntryNotFoundError", "has lost a file that it listed, or the Hub can't be reached; "
                                   "try again")):
        if _is(error, kind):
            return f"{path} {reason}."
    return f"{path}: the Hub can't be reached ({type(error).__name__}: {first_line(error)})."
