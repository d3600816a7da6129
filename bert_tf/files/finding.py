"""Finds the files that patterns name, and checks names that users give."""

import contextlib
import fnmatch
import glob
import os
import re
from collections.abc import Mapping
from typing import Any

from bert_tf.errors import InputError
from bert_tf.files import places
from bert_tf.files.places import files_under, is_file, is_folder, is_remote, real_path

# File of a job's flags in its folder; next to files, with a prefix and a dot.
FLAGFILE = "flags.txt"
# End of the name of a folder with a tokenizer's files, next to the records that it made.
TOKENIZER_ENDING = ".tokenizer"
# Flags that name files or folders.
PATH_FLAGS = re.compile(
    "(?:.*_)?(?:file|filelist|dir|checkpoint|path)|ensemble|eval_text|glove_embs|input|masked_lm|"
    "output|peer_python|picture|predecessor|student|teacher|word_vectors")


def with_whole_names(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Returns values by flag; a file has one name in them, however a user spells it."""
    def whole(value):
        if isinstance(value, list):
            return list(map(whole, value))
        return real_path(value) if isinstance(value, str) and value else value

    return {name: whole(value) if PATH_FLAGS.fullmatch(name) else value
            for name, value in flags.items()}


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
            try:
                places.store_of(value)
            except InputError as error:
                raise InputError(f"{source}{error}") from error


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
        names = places.list_folder(folder) if is_folder(folder) else []
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
    with places.reaching(pattern) as (store, name):
        return [places.outer(pattern, each) for each, info in store.glob(name, detail=True).items()
                if info["type"] == "file" and _hidden_parts(each) <= _hidden_parts(name)]


def _hidden_parts(path):
    return sum(part.startswith(".") for part in path.split("/"))


def _is_of_job(path, output):
    """Returns whether a file is an output, one of its shards, or a temporary file of the job."""
    body, ending = (output.removesuffix(".gz"), ".gz") if output.endswith(".gz") else (output, "")
    body, stem, whole, ending = map(re.escape, (
        body, body.removesuffix(".tfrecord"), output, ending))
    return re.fullmatch(rf"{body}(-\d+-of-\d+)?{ending}(\.tmp-.*)?|"
                        rf"({whole}|{stem})\.progress.*|{stem}\.manifest\.json", path) is not None


def find_files(patterns, flag, outputs=()):
    """Lists the files of comma-separated names, globs and folders, each pattern sorted. Flagfiles
    and tokenizers, which jobs write next to their output, are only found by their names.

    Args:
        patterns: a string such as "a.txt,more/*.txt,gs://bucket/folder" or a list of them.
        outputs: files that the job writes, which folders and globs do not find.

    Raises:
        InputError: a pattern finds nothing, or is the name of an output.
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
            raise InputError(f"--{flag}: no file matches {pattern!r}.")
        paths += names
    if not paths:
        raise InputError(f"--{flag} names no file; name at least one.")
    check_decodable(paths, f"--{flag}")
    return paths
