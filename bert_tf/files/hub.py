"""Models of the Hugging Face Hub by name: hf://OWNER/NAME, with @REVISION and /FILE if wanted.

Only files that are read are fetched, into the cache of huggingface_hub. A note next to them records
the commit that a name meant, its files and its licence. With the note, a commit needs no request,
and a name that was used before needs no network. A pickle is refused before anything is fetched.
"""

import contextlib
import dataclasses
import functools
import hashlib
import importlib
import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import lazy_loader

from bert_tf.errors import InputError, warn
from bert_tf.files.places import files_under, first_line
from bert_tf.files.writing import write_json

hub = lazy_loader.load("huggingface_hub")   # local models need none of it

_NAME = re.compile(r"hf://(?!datasets/|spaces/)([\w.-]+/[\w.-]+?)(?:@([\w.-]+))?(?:/(.+?))?/?")
_COMMIT = re.compile(r"[0-9a-f]{40}")
# Files that are read with the weights: configurations, tasks, vocabularies.
_BESIDE = re.compile(
    r"(?:bert_|ernie_|albert_|xlnet_)?config\.json|task\.json|labels\.txt|tokenizer_config\.json|"
    r"added_tokens\.json|vocab\.(?:txt|json|bpe)|merges\.txt|"
    r"encoder\.json|dict\.txt|.*\.model")
_VOCABULARY = re.compile(r"vocab\..*|encoder\.json|.*\.model")
_NEW_VOCABULARY = "tokenizer.json"      # read where there is no other
# Kinds of weights; the first kind that exists is taken.
_WEIGHTS = (r"model\.safetensors", r".*\.safetensors\.index\.json", r"model\.keras",
            r"model\.weights\.h5", r"quantised\.safetensors", r".*\.(?:index|data-\d+-of-\d+)")
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".h5")
# A server is given up after so many seconds without an answer, or without a new byte.
SILENCE = 25.0


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """A model at one commit.

    Attributes:
        licence: as its card says; "" if it does not.
    """

    name: str
    commit: str
    licence: str
    files: tuple[str, ...]

    def __str__(self) -> str:
        return f"hf://{self.name}@{self.commit}, licence {self.licence or 'not stated'}"


_taken: dict[str, Snapshot] = {}


def is_hub_name(path: str | os.PathLike) -> bool:
    """Returns whether a name is a model of the Hub."""
    return os.fspath(path).startswith("hf://") and not os.fspath(path).startswith(
        ("hf://datasets/", "hf://spaces/"))


def taken() -> list[Snapshot]:
    """Lists the models that this process took from the Hub."""
    return list(dict.fromkeys(_taken.values()))


def snapshot_of(path: str | os.PathLike) -> Snapshot | None:
    """Returns the model of the Hub that a local folder or file was taken from by this process."""
    return next((found for place, found in _taken.items()
                 if os.path.abspath(path).startswith(place)), None)


def name_of_copies(text: str) -> str:
    """Returns a text with hf:// names, with the commit, in place of this process's local copies."""
    for place, found in _taken.items():
        text = text.replace(place, f"hf://{found.name}@{found.commit}")
    return text


@functools.cache
def dataset_commit(path: str, name: str, revision: str = "main") -> str:
    """Returns the commit that a revision of a data set of the Hub means, and prints it.

    The Hub is not asked where the revision is a commit.

    Args:
        path: how errors name the data set.

    Raises:
        InputError: there is no such data set, it is not open, or the Hub does not answer.
    """
    if _COMMIT.fullmatch(revision):
        return revision
    _load_parts()
    info = _watched(path, lambda: hub.HfApi().dataset_info(name, revision=revision, timeout=10))
    _say(Snapshot(f"datasets/{name}", info.sha, _licence(info), ()))
    return info.sha


def _say(line):
    """Prints a line, not to standard output, which may get predictions."""
    print(line, file=sys.stderr, flush=True)


def fetched(path: str | os.PathLike, with_weights: bool = True) -> str:
    """Returns the local folder, or file, of a model of the Hub; another path as it is.

    Args:
        with_weights: whether weights are wanted besides the configuration and the vocabulary.

    Raises:
        InputError: `path` is no path; there is no such model, it is not open, its weights are
            pickles, a file differs from the Hub's description, or the Hub does not answer.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise InputError(f"the path is {path!r}; give the name of a folder or a file, a str.")
    path = os.fspath(path)
    return _place(path, with_weights) if is_hub_name(path) else path


@functools.cache
def _place(path, with_weights):
    """The local folder, or file, of a model of the Hub."""
    match = _NAME.fullmatch(path)
    if not match:
        raise InputError(f"{path}: write models of the Hub as hf://OWNER/NAME, with @REVISION and "
                         "/FILE if wanted.")
    _load_parts()
    name, revision, inner = match[1], match[2] or "main", match[3] or ""
    snapshot = _find(path, name, revision)
    wanted = _wanted(path, snapshot, inner, with_weights)
    place = _fetch(path, snapshot, wanted)
    _taken[os.path.abspath(place)] = snapshot
    return os.path.join(place, *inner.split("/")) if inner else place


def _load_parts():
    """Loads the modules of huggingface_hub that it gives only when they are asked for."""
    for part in ("constants", "errors"):
        importlib.import_module(f"huggingface_hub.{part}")


def _cache(name):
    return os.path.join(hub.constants.HF_HUB_CACHE, f"models--{name.replace('/', '--')}")


def _note(name, revision):
    return os.path.join(_cache(name), "bert_tf", f"{revision}.json")


def _read_note(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}


def _find(path, name, revision):
    """Returns the `Snapshot` that a name means now, or the last known if the Hub can't be asked."""
    note = _read_note(_note(name, revision))
    known = Snapshot(name, note["commit"], note["licence"], tuple(note["files"])) if note else None
    if known and (_COMMIT.fullmatch(revision) or hub.constants.HF_HUB_OFFLINE):
        return known
    try:
        info = _watched(path, lambda: hub.HfApi().model_info(name, revision=revision, timeout=10))
    except InputError as error:
        if not known or isinstance(error.__cause__, hub.errors.RepositoryNotFoundError):
            raise
        warn(f"{error} The earlier download is used.")
        return known
    found = Snapshot(name, info.sha, _licence(info),
                     tuple(sorted(each.rfilename for each in info.siblings)))
    for each in {revision, info.sha}:
        os.makedirs(os.path.dirname(_note(name, each)), exist_ok=True)
        write_json(_note(name, each), {"commit": found.commit, "licence": found.licence,
                                       "files": list(found.files)})
    return found


def _licence(info):
    tagged = (tag.removeprefix("license:") for tag in info.tags or () if tag.startswith("license:"))
    return str(getattr(info.card_data, "license", None) or next(tagged, ""))


def _wanted(path, snapshot, inner, with_weights):
    """The names of the files to fetch."""
    if inner in snapshot.files:
        folder, name = os.path.split(inner)
        beside = _beside(snapshot, folder)
        if not name.endswith((*PICKLES, ".safetensors", ".keras", ".index", ".json")) or (
                _BESIDE.fullmatch(name)):
            return [inner] if not name.startswith(("vocab", "merges", "encoder", "dict")) else [
                inner, *beside]
        if name.endswith(PICKLES) and not name.endswith(".weights.h5"):
            raise InputError(_pickled(path, name))
        return [inner, *beside]
    beside = _beside(snapshot, inner)
    if not with_weights:
        return beside
    for pattern in _WEIGHTS:
        if found := _in_folder(snapshot, inner, pattern):
            return found + beside
    pickles = [name for name in _in_folder(snapshot, inner, ".*") if name.endswith(PICKLES)]
    if pickles:
        raise InputError(_pickled(path, pickles[0]))
    raise InputError(f"{path} has no file of weights that bert_tf reads; its files are "
                     f"{', '.join(snapshot.files[:8]) or 'none'}.")


def _pickled(path, name):
    return (f"{path}: {name} isn't fetched, because such files can run code or need other "
            "libraries; name a revision of the model that has model.safetensors.")


def _beside(snapshot, folder):
    """The names of the files that are read with the weights of a folder."""
    found = _in_folder(snapshot, folder, _BESIDE.pattern)
    if any(_VOCABULARY.fullmatch(os.path.basename(name)) for name in found):
        return found
    return found + _in_folder(snapshot, folder, re.escape(_NEW_VOCABULARY))


def _in_folder(snapshot, folder, pattern):
    start = f"{folder.rstrip('/')}/" if folder else ""
    return [name for name in snapshot.files if name.startswith(start)
            and re.fullmatch(pattern, name.removeprefix(start))]


def _fetch(path, snapshot, wanted: Sequence[str]) -> str:
    """Fetches files that are not here yet, checks them, and returns their folder."""
    place = os.path.join(_cache(snapshot.name), "snapshots", snapshot.commit)
    checked = _note(snapshot.name, "checked")
    known = set(_read_note(checked).get("files", ()))
    todo, fresh = list(wanted), 0
    while todo:
        name = todo.pop(0)
        file = os.path.join(place, *name.split("/"))
        blob = os.path.basename(os.path.realpath(file))
        if not os.path.exists(file) or blob not in known:
            file = _watched(path, functools.partial(
                hub.hf_hub_download, snapshot.name, name, revision=snapshot.commit),
                _cache(snapshot.name))
            blob = _check(path, name, file)
            known.add(blob)
            write_json(checked, {"files": sorted(known)})
            fresh += os.path.getsize(file)
        if name.endswith(".safetensors.index.json"):
            todo += _shards(path, file, name, snapshot)
    _say(f"{snapshot}{f', {fresh / 1e6:,.1f} MB fetched' if fresh else ''}")
    return place


def _shards(path, file, name, snapshot):
    """The files of weights that an index names."""
    places = _read_note(file).get("weight_map")
    found = sorted(set(places.values())) if isinstance(places, dict) else []
    folder = os.path.dirname(name)
    shards = [f"{folder}/{each}" if folder else str(each) for each in found]
    if not shards or not {*shards} <= {*snapshot.files}:
        raise InputError(f"{path}: {name} does not list the files of the weights; name another "
                         "model.")
    return shards


def _check(path, name, file):
    """Returns the checksum that is the name of a file's blob, if its bytes have it.

    The Hub names large files by SHA-256, others by Git's checksum of a blob.
    """
    blob = os.path.realpath(file)
    promised = os.path.basename(blob)
    with open(blob, "rb") as content:
        if len(promised) == 64:
            found = hashlib.file_digest(content, "sha256").hexdigest()
        else:
            data = content.read()
            found = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
    if len(promised) in (40, 64) and found != promised:
        for each in {file, blob}:
            with contextlib.suppress(FileNotFoundError):
                os.remove(each)
        raise InputError(f"{path}: the checksum of {name} is {found}, but the Hub says {promised}; "
                         "the download was removed: run the command again.")
    return promised


def _watched(path: str, work: Callable[[], Any], folder: str | None = None) -> Any:
    """Does `work`, which asks the Hub; gives up where no answer, and no byte in `folder`, comes."""
    answer: list[Any] = []
    failed: list[BaseException] = []

    def do():
        try:
            answer.append(work())
        except BaseException as error:
            failed.append(error)
    thread = threading.Thread(target=do, daemon=True)
    thread.start()
    last, size = time.monotonic(), -1
    while thread.is_alive():
        thread.join(0.2)
        now = _size(folder)
        if now != size:
            last, size = time.monotonic(), now
        if time.monotonic() - last > SILENCE:
            raise InputError(f"{path}: the Hub has not answered for {SILENCE:.0f} s; run the "
                             "command again, or download the model elsewhere and name its folder.")
    if failed:
        raise InputError(_explained(path, failed[0])) from failed[0]
    return answer[0]


def _size(folder):
    found = 0
    for name in files_under(folder or os.devnull):
        with contextlib.suppress(FileNotFoundError):
            found += os.lstat(name).st_size
    return found


def _explained(path, error):
    """The sentence for an error of huggingface_hub's."""
    known = hub.errors
    what = "data set" if path.startswith("hf://datasets/") else "model"
    for kind, reason in (
            (known.GatedRepoError, "is open only to those who accepted its terms; accept them on "
                                   "huggingface.co, then run `hf auth login`"),
            (known.RepositoryNotFoundError, f"is no {what} of the Hub, or a private one; check the "
                                            "name, or run `hf auth login`"),
            (known.RevisionNotFoundError, "has no such revision; name a branch, tag or commit"),
            (known.EntryNotFoundError, "has lost a file that it listed, or the Hub can't be "
                                       "reached; try again")):
        if isinstance(error, kind):
            return f"{path} {reason}."
    return f"{path}: the Hub can't be reached ({type(error).__name__}: {first_line(error)})."
