"""Files and folders by name, on this machine's disks or, with a scheme such as gs://, in a store
that fsspec reaches. Lists of a store are never cached: another machine may have written since. Also
the files that patterns find, and checks of the names that users give."""

import contextlib
import errno
import fnmatch
import glob
import os
import posixpath
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

import lazy_loader

from bert_tf import files
from bert_tf.errors import InputError, explain_with, naming

fsspec = lazy_loader.load("fsspec")     # names without a scheme need none of it

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
# Beginnings of the names of data sets that a library reads.
TFDS, HUB = "tfds:", "hf://datasets/"
# A name of the Hub that means files.
_OF_FILES = re.compile(r"[*?\[]|\.(?:jsonl|ndjson|json|parquet|txt|xml|csv|tsv|gz|xz|bz2|zst)$")
_TRIES = 1000    # of removing a folder while others still write to it
# The extra of pip that installs the client of a store.
_EXTRAS = {"s3": "bert_tf[s3]", "s3a": "bert_tf[s3]", "gs": "bert_tf[gcs]", "gcs": "bert_tf[gcs]"}
_NUMBERS = {FileNotFoundError: errno.ENOENT, FileExistsError: errno.EEXIST,
            PermissionError: errno.EACCES, IsADirectoryError: errno.EISDIR,
            NotADirectoryError: errno.ENOTDIR}
# A store is given up after so many seconds without a first answer; its client would try for long.
SILENCE = 30.0
# The models of the Hub, `hub.Snapshot`, by the folders that this process took them from.
COPIES: dict[str, Any] = {}
_answered: set[str] = set()     # schemes of the stores that have answered this process
# File of a job's flags in its folder; next to files, with a prefix and a dot.
FLAGFILE = "flags.txt"
# End of the name of a folder with a tokenizer's files, next to the records that it made.
TOKENIZER_ENDING = ".tokenizer"
# Flags that name files or folders.
PATH_FLAGS = re.compile(
    "(?:.*_)?(?:file|filelist|dir|checkpoint|path)|ensemble|eval_text|glove_embs|input|masked_lm|"
    "output|peer_python|picture|predecessor|student|teacher|word_vectors")


def is_remote(path: str | os.PathLike) -> bool:
    path = os.fspath(path)
    return "://" in path and _SCHEME.match(path) is not None


def is_hub_name(path: str | os.PathLike) -> bool:
    return re.match("hf://(?!datasets/|spaces/)", os.fspath(path)) is not None


def fetched(path: str | os.PathLike, with_weights: bool = True) -> str:
    """Returns the local folder, or file, of a model of the Hub; another path as it is. InputError
    if `path` is no path; there is no such model, it is not open, its weights are pickles, or the
    Hub does not answer."""
    if not isinstance(path, (str, os.PathLike)):
        raise InputError(f"the path is {path!r}; give the name of a folder or a file, a str.")
    path = os.fspath(path)
    return files.local_copy(path, with_weights) if is_hub_name(path) else path


def snapshot_of(path: str | os.PathLike) -> Any:
    """Returns the `hub.Snapshot` that this process took a local folder or file from, or None."""
    return next((snapshot for place, snapshot in COPIES.items()
                 if os.path.abspath(path).startswith(place)), None)


def name_of_copies(text: str) -> str:
    """Returns a text with hf:// names, with the commit, in place of this process's local copies."""
    for place, snapshot in COPIES.items():
        text = text.replace(place, f"hf://{snapshot.name}@{snapshot.commit}")
    return text


def is_library_name(name: str | os.PathLike) -> bool:
    """Returns whether a name is a data set that a library reads, not files."""
    name = os.fspath(name)
    return name.startswith(TFDS) or name.startswith(HUB) and not _OF_FILES.search(name)


def scheme_of(path: str | os.PathLike) -> str:
    return os.fspath(path).partition("://")[0].lower()


@contextlib.contextmanager
def reaching(path: str | os.PathLike) -> Iterator[tuple[Any, str]]:
    """Gives the store of a remote name, and the name there; OSError, with `strerror`, as for a
    local file, or InputError if the store can't be reached."""
    path = os.fspath(path)
    try:
        store = store_of(path)
        _await_answer(store, path)
        yield store, _inner(path)
    except InputError:
        raise
    except OSError as error:
        number = next((n for kind, n in _NUMBERS.items() if isinstance(error, kind)),
                      error.errno or errno.EIO)
        raise OSError(number, first_line(error.strerror or error) or os.strerror(number), path
                      ) from error
    except Exception as error:      # each library has errors of its own
        raise InputError(f"{path} can't be reached ({type(error).__name__}: {first_line(error)}); "
                         "check the name, the credentials and the connection.") from error


def _await_answer(store, path):
    """Asks a store that this process has not asked yet, and gives it up if no answer comes."""
    if scheme_of(path) in _answered or not store.async_impl:
        return
    try:
        store.info(_inner(path), timeout=SILENCE)
    except fsspec.exceptions.FSTimeoutError as error:
        raise InputError(f"{path}: the store has not answered for {SILENCE:g} s; check the "
                         "address and the connection.") from error
    except OSError:         # an answer, such as that there is no such file
        pass
    _answered.add(scheme_of(path))


def first_line(error: Any) -> str:
    """Returns the first line of an error's message, without its full stop."""
    return str(error).strip().partition("\n")[0].rstrip(".")


def store_of(path: str) -> Any:
    """Returns fsspec's file system of a remote name; InputError if there is no such scheme, or its
    package is not installed."""
    scheme = scheme_of(path)
    if scheme in ("file", "local"):
        raise InputError(f"{path}: write local files without {scheme}://.")
    try:
        return fsspec.filesystem(scheme, use_listings_cache=False)
    except ImportError as error:
        extra = _EXTRAS.get(scheme, f"fsspec[{scheme}]")
        raise InputError(f"{path}: {scheme}:// needs a package that is not installed ({error}); "
                         f"pip install '{extra}'.") from error
    except ValueError as error:
        raise InputError(f"{path}: {scheme}:// is not known; give gs://, s3:// or another protocol "
                         "of fsspec.") from error


def _inner(path):
    """Returns the name in the store, without "..", which stores take literally."""
    scheme, _, name = path.partition("://")
    return f"{scheme.lower()}://{posixpath.normpath('/' + name).lstrip('/')}"


def outer(path: str, name: str) -> str:
    """Returns the full name of a store's entry `name`, with the scheme of `path`."""
    return f"{path.partition('://')[0]}://{name.partition('://')[2] or name.lstrip('/')}"


def _info(path):
    """The store's facts about a name, a dict; empty if there is nothing."""
    with reaching(path) as (store, name):
        try:
            return store.info(name)
        except (FileNotFoundError, NotADirectoryError):
            return {}


def exists(path: str | os.PathLike) -> bool:
    return bool(_info(path)) if is_remote(path) else os.path.exists(path)


def is_taken(path: str | os.PathLike) -> bool:
    """Returns whether the name is in use, be it by a link that leads nowhere."""
    return os.path.islink(path) or exists(path)


def is_file(path: str | os.PathLike) -> bool:
    return _info(path).get("type") == "file" if is_remote(path) else os.path.isfile(path)


def is_folder(path: str | os.PathLike) -> bool:
    """Returns whether there is a folder of this name; in a store, with something in it."""
    return _info(path).get("type") == "directory" if is_remote(path) else os.path.isdir(path)


def file_size(path: str | os.PathLike) -> int:
    if not is_remote(path):
        return os.path.getsize(path)
    with reaching(path) as (store, name):
        return store.info(name)["size"]


def identity(path: str | os.PathLike) -> str:
    """A text that changes when the file does: a store's ETag and dates, or size and time."""
    if is_remote(path):
        with reaching(path) as (store, name):
            facts = store.info(name)
            known = {key: str(facts[key]) for key in (
                "ETag", "etag", "blob_id", "generation", "md5Hash", "size", "mtime", "created",
                "LastModified") if facts.get(key)}
            return str(sorted(known.items()))
    facts = os.stat(path)
    return f"{facts.st_size} {facts.st_mtime_ns}"


def list_folder(path: str | os.PathLike) -> list[str]:
    """Lists the names in a folder, in no order."""
    if not is_remote(path):
        return os.listdir(path)
    with reaching(path) as (store, name):
        own = name.partition("://")[2].rstrip("/")
        entries = {each["name"].partition("://")[2] or each["name"] for each in store.ls(
            name, detail=True)}
        return [posixpath.basename(each.rstrip("/")) for each in entries
                if each.strip("/") != own.strip("/")]


def files_under(folder: str) -> list[str]:
    """Lists the paths of all files in a folder and in the folders in it, in no order."""
    if is_remote(folder):
        with reaching(folder) as (store, name):
            return [outer(folder, each) for each in store.find(name)]
    return [os.path.join(root, name) for root, _, names in os.walk(folder) for name in names]


def _normal(path, local):
    return _inner(os.fspath(path)) if is_remote(path) else local(path)


def absolute(path: str) -> str:
    """Returns the whole name, without "..", from the root or the scheme."""
    return _normal(path, os.path.abspath)


def normal_path(path: str) -> str:
    """Returns the name without "..", doubled and last slashes."""
    return _normal(path, os.path.normpath)


def real_path(path: str) -> str:
    """Returns the full name of the target of a name through links; equal names are one file."""
    return _normal(path, os.path.realpath)


def same_file(path: str, other: str) -> bool:
    """Returns whether two names, both in use, lead to one file."""
    if is_remote(path) or is_remote(other):
        return real_path(path) == real_path(other)
    return os.path.samefile(path, other)


def relative(path: str, folder: str) -> str:
    """Returns the name of a file as seen from a folder; its whole name from another store."""
    path, folder = absolute(path), absolute(folder)
    if not is_remote(path) and not is_remote(folder):
        return os.path.relpath(path, folder)
    if not (is_remote(path) and is_remote(folder)) or scheme_of(path) != scheme_of(folder):
        return path
    return posixpath.relpath(*("/" + each.partition("://")[2] for each in (path, folder)))


def join_path(folder: str, name: str) -> str:
    """Returns the name of a file that is relative to a folder, as `relative` gave it."""
    return name if is_remote(name) else _normal(os.path.join(folder, name), str)


def remove_file(path: str | os.PathLike) -> None:
    """Removes a file; FileNotFoundError if it is absent."""
    if not is_remote(path):
        os.remove(path)
    elif not _info(path):       # a store does not say so
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(path))
    else:
        with reaching(path) as (store, name):
            store.rm_file(name)


def remove_folder(path: str | os.PathLike) -> None:
    """Removes a folder with all that is in it; nothing if it is absent. Meanwhile other processes
    may rename or remove files of the folder, or add one."""
    if is_remote(path):
        with contextlib.suppress(FileNotFoundError), reaching(path) as (store, name):
            store.rm(name, recursive=True)
        return
    for tries in range(1, _TRIES + 1):
        try:
            shutil.rmtree(path)
            return
        except OSError as error:
            if not os.path.lexists(path):
                return
            if error.errno not in (errno.ENOENT, errno.ENOTEMPTY) or tries == _TRIES:
                raise


def stage_folder() -> str:
    """Returns the folder of copies, which only this user may read; makes it."""
    folder = os.environ.get("BERT_TF_STAGE_FOLDER") or os.path.join(
        tempfile.gettempdir(), f"bert_tf-{getattr(os, 'getuid', lambda: 'user')()}")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    return folder


def make_folders(path: str | os.PathLike) -> None:
    """Makes a folder and its parent folders, if they are absent; a store needs no folders."""
    if not is_remote(path):
        os.makedirs(path, exist_ok=True)


def is_alive(process: int) -> bool:
    """Returns whether a process of this machine runs. A zombie does not run; containers whose first
    process is no init have zombies."""
    try:
        os.kill(process, 0)
        with open(f"/proc/{process}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:     # another user's, or this system has no /proc
        return True


def _explain_store(error):
    if isinstance(error, OSError) and is_remote(str(error.filename or "")):
        return InputError(f"{error.filename}: {error.strerror}; check that you may read and write "
                          "there, and start the same command again.")
    return None


explain_with(_explain_store)


def with_whole_names(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Returns values by flag; a file has one name in them, however a user spells it."""
    def whole(value):
        if isinstance(value, list):
            return list(map(whole, value))
        return real_path(value) if isinstance(value, str) and value else value

    return {**flags, **{name: whole(value) for name, value in flags.items()
                        if PATH_FLAGS.fullmatch(name)}}


def check_decodable(values: list, source: str) -> None:
    """Raises InputError if a text, such as the name of a file, holds bytes that are not UTF-8, for
    which Python has lone surrogates. Other values are ignored."""
    for value in values:
        try:
            if isinstance(value, str):
                value.encode()
        except UnicodeEncodeError as error:
            raise InputError(f"{source}: {value!r} is not UTF-8; rename the "
                             "file or folder.") from error


def check_stores(values: list, source: str) -> None:
    """Raises InputError if a name begins with a scheme that is not known, or whose package is not
    installed. Values that are not texts are ignored; errors begin with `source`, such as a flag."""
    for value in values:
        if isinstance(value, str) and is_remote(value) and not value.startswith("hf://"):
            with naming(source):
                store_of(value)


def match_names(folder: str, pattern: str) -> list[str]:
    """Lists the paths in a folder whose names fit a pattern, sorted; nothing if the folder is
    absent. The pattern may begin with "**/"."""
    if not is_remote(folder):
        return sorted(glob.glob(os.path.join(glob.escape(folder), pattern), recursive=True))
    if pattern.startswith("**/"):
        return sorted(path for path in files_under(folder) if fnmatch.fnmatchcase(
            os.path.basename(path), pattern.removeprefix("**/")))
    names = []
    with contextlib.suppress(FileNotFoundError):    # its last file may go while it is looked at
        if is_folder(folder):
            names = list_folder(folder)
    return sorted(os.path.join(folder, name) for name in names if fnmatch.fnmatchcase(name, pattern)
                  and (not name.startswith(".") or pattern.startswith(".")))


def _matching(pattern):
    """The paths that a folder or a glob finds, in a store only files; * finds no hidden names."""
    if is_folder(pattern):      # its visible files, without those of tokenizers in it
        return [name for name in files_under(pattern)
                if not os.path.basename(name).startswith(".")
                and (not (parent := os.path.dirname(name)).endswith(TOKENIZER_ENDING)
                     or parent == pattern.rstrip("/"))]
    if not is_remote(pattern):
        return glob.glob(pattern, recursive=True)
    if not any(mark in pattern for mark in "*?["):
        return []
    with reaching(pattern) as (store, name):
        return [outer(pattern, each) for each, info in store.glob(name, detail=True).items()
                if info["type"] == "file" and _hidden_parts(each) <= _hidden_parts(name)]


def _hidden_parts(path):
    return sum(part.startswith(".") for part in path.split("/"))


def _is_of_job(path, output):
    """Returns whether a file is an output, one of its shards, or a temporary file of the job."""
    body = output.removesuffix(".gz")
    body, stem, whole, ending = map(re.escape, (
        body, body.removesuffix(".tfrecord"), output, output.removeprefix(body)))
    return re.fullmatch(rf"{body}(-\d+-of-\d+)?{ending}(\.tmp-.*)?|"
                        rf"({whole}|{stem})\.progress.*|{stem}\.manifest\.json", path) is not None


def find_files(patterns, flag, outputs=()):
    """Lists the files of comma-separated names, globs and folders, each pattern sorted. Flagfiles
    and tokenizers, which jobs write next to their output, are only found by their names. InputError
    if a pattern finds nothing, or is the name of an output.

    Args:
        patterns: a string such as "a.txt,more/*.txt,gs://bucket/folder" or a list of them.
        outputs: files that the job writes, which folders and globs do not find.
    """
    if isinstance(patterns, str):
        patterns = patterns.split(",")
    paths, outputs = [], list(map(real_path, outputs))
    for pattern in filter(None, (p.strip() for p in patterns)):
        if outputs and real_path(pattern) in outputs:
            raise InputError(f"--{flag}: {pattern!r} is also the output file; name another output.")
        names = [pattern]
        if not is_file(pattern):
            names = [name for name in _matching(pattern) if (is_remote(name) or is_file(name))
                     and not f".{os.path.basename(name)}".endswith(f".{FLAGFILE}")]
        names = [name for name in sorted(names)
                 if not any(_is_of_job(real_path(name), output) for output in outputs)]
        if not names:
            raise InputError(f"--{flag}: no file matches {pattern!r}; name a file, a folder that "
                             "holds files, or a glob.")
        paths += names
    if not paths:
        raise InputError(f"--{flag} names no file; name at least one.")
    check_decodable(paths, f"--{flag}")
    return paths
