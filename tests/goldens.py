"""Finds what tests compare with: outputs of the originals, and the vocabularies and texts for them.

The folder $BERT_TF_TEST_DATA has all of it. tests/golden has the smaller half, which a fresh clone
thus has too; its README.md says where each file comes from.
"""

import atexit
import functools
import lzma
import os
import pathlib
import shutil
import tempfile

import pytest

COMMITTED = pathlib.Path(__file__).parent / "golden"


@functools.cache
def _unpacked():
    """A folder of this process for files that are committed compressed."""
    folder = tempfile.mkdtemp(prefix="golden")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return pathlib.Path(folder)


@functools.cache
def find(name):
    folder = os.environ.get("BERT_TF_TEST_DATA")
    if folder and os.path.exists(os.path.join(folder, name)):
        return pathlib.Path(folder, name)
    path = COMMITTED / name.removeprefix("golden/")
    if path.is_dir():
        for file in path.iterdir():
            if file.is_file():
                _unpack(file, _unpacked() / name / file.name.removesuffix(".xz"))
        return _unpacked() / name
    if path.exists():
        return path
    packed = path.with_name(path.name + ".xz")
    return _unpack(packed, _unpacked() / name) if packed.exists() else None


def _unpack(source, target):
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with (lzma.open if source.suffix == ".xz" else open)(source, "rb") as file:
            target.write_bytes(file.read())
    return target


def at_hand(pattern, cases):
    """The cases of a test for which there is a file, the pattern with the case's name in it (its
    first part if it is a tuple); all of them, which are skipped, if there is no file at all."""
    def is_there(case):
        return find(pattern.format(case[0] if isinstance(case, tuple) else case))
    return list(filter(is_there, cases)) or list(cases)


def part(arrays, prefix):
    """The arrays whose names begin with `prefix`, by the rest of their names."""
    return {name.removeprefix(prefix): arrays[name] for name in arrays if name.startswith(prefix)}


class Material(os.PathLike):
    """A path of `find`, looked for when it is used; the test is skipped where it leads nowhere."""

    def __init__(self, name=""):
        self.name = name

    def __truediv__(self, name):
        return Material(os.path.normpath(os.path.join(self.name, name)))

    def __fspath__(self):
        path = find(self.name)
        if path is None:
            pytest.skip(f"neither BERT_TF_TEST_DATA nor tests/golden has {self.name}")
        return str(path)

    __str__ = __fspath__

    def __getattr__(self, name):
        return getattr(pathlib.Path(self), name)
