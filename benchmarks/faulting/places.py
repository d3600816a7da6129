"""Places for a command's files: a folder on this machine's disk, or a store."""

import contextlib
import io
import os
import re
import shutil
import subprocess
import zipfile
from collections.abc import Iterator

# Curves and cards, which have times; a number that TensorFlow draws; times in other files.
_VOLATILE = ("metrics.jsonl", "README.md", "tensorboard", "fingerprint.pb")
_TIMES = re.compile(rb'"(?:date_saved|seconds)": (?:"[^"]*"|[\d.e-]+)')


class Local:
    """A folder on this machine's disk.

    Attributes:
        name: of the kind of place.
        environment: the variables that commands need to work there.
    """

    name = "disk"

    def __init__(self, root: str) -> None:
        self.root, self.environment = root, {}

    def clear(self) -> None:
        """Removes everything."""
        for part in ("in", "out"):
            shutil.rmtree(os.path.join(self.root, part), ignore_errors=True)
        os.makedirs(self.root, exist_ok=True)

    def put(self, source: str, name: str) -> None:
        """Copies a local file or folder."""
        target = os.path.join(self.root, name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        (shutil.copytree if os.path.isdir(source) else shutil.copy)(source, target)

    def read(self, folder: str) -> dict[str, bytes]:
        """Returns the files of a folder, by relative name."""
        found, start = {}, os.path.join(self.root, folder)
        for base, _, names in os.walk(start):
            for name in names:
                path = os.path.join(base, name)
                with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
                    found[os.path.relpath(path, start)] = file.read()
        return found

    def names(self, folder: str) -> set[str]:
        """Returns the names of a folder's files."""
        start = os.path.join(self.root, folder)
        return {os.path.relpath(os.path.join(base, name), start)
                for base, _, names in os.walk(start) for name in names}

    def write(self, name: str, content: bytes | None) -> None:
        """Replaces a file; None removes it."""
        path = os.path.join(self.root, name)
        if content is None:
            os.remove(path)
            return
        with open(path, "wb") as file:
            file.write(content)

    @contextlib.contextmanager
    def small_disk(self, room: int) -> Iterator["SmallDisk"]:
        """Puts a small disk into the place of the folder.

        Raises:
            PermissionError: this user may not mount one.
        """
        os.makedirs(self.root, exist_ok=True)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={room}", "tmpfs", self.root],
                              capture_output=True, check=False)
        if done.returncode:
            raise PermissionError("this user may not mount a disk")
        try:
            yield SmallDisk(self.root)
        finally:
            subprocess.run(["umount", "-l", self.root], check=True)


class SmallDisk:
    """A disk of limited room."""

    def __init__(self, root: str) -> None:
        self._root = root

    def change(self, options: str) -> None:
        """Mounts it again with other options, such as "size=1g", "ro" or "rw"."""
        subprocess.run(["mount", "-o", f"remount,{options}", self._root], check=True)


class S3:
    """A folder of a store.

    Args:
        root: of the folder, s3://bucket/folder; the bucket is made.
        environment: how the store is reached.
    """

    name = "S3"

    def __init__(self, root: str, environment: dict[str, str]) -> None:
        import fsspec
        self.root, self.environment = root, environment
        self._store = fsspec.filesystem("s3", use_listings_cache=False)
        with contextlib.suppress(FileExistsError):
            self._store.mkdir(root.removeprefix("s3://").partition("/")[0])

    def _path(self, name):
        return f"{self.root}/{name}".removeprefix("s3://").rstrip("/")

    def clear(self) -> None:
        """See `Local.clear`."""
        for name in self._store.find(self._path("")):
            self._store.rm_file(name)

    def put(self, source: str, name: str) -> None:
        """See `Local.put`."""
        files = [source] if os.path.isfile(source) else [
            os.path.join(base, each) for base, _, names in os.walk(source) for each in names]
        for file in files:
            self._store.put_file(file, self._path(os.path.join(name, os.path.relpath(
                file, source))).removesuffix("/."))

    def names(self, folder: str) -> set[str]:
        """See `Local.names`."""
        start = self._path(folder)
        return {name.removeprefix(start).strip("/") for name in self._store.find(start)}

    def read(self, folder: str) -> dict[str, bytes]:
        """See `Local.read`."""
        return {name: self._store.cat_file(self._path(f"{folder}/{name}"))
                for name in self.names(folder)}

    def write(self, name: str, content: bytes | None) -> None:
        """See `Local.write`."""
        if content is None:
            self._store.rm_file(self._path(name))
        else:
            self._store.pipe_file(self._path(name), content)


def comparable(files: dict[str, bytes]) -> dict[str, object]:
    """Returns the files that two runs must have in common, without times. An archive counts by its
    members. Only the last training checkpoint counts: a stopped run has others before it."""
    found: dict[str, object] = {}
    checkpoints = sorted(name for name in files if name.startswith("checkpoint-"))
    files = {name: content for name, content in files.items() if name not in checkpoints[:-1]}
    for name, content in files.items():
        if any(part in _VOLATILE for part in name.split("/")):
            continue
        found[name] = _TIMES.sub(b"", content)
        if name.endswith(".keras"):
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                found[name] = {one.filename: _TIMES.sub(b"", archive.read(one))
                               for one in archive.infolist()}
    return found


def differences(found: dict[str, object], expected: dict[str, object]) -> list[str]:
    """Returns the names of files that are absent, surplus or other than expected."""
    return sorted(name for name in found.keys() | expected.keys()
                  if found.get(name) != expected.get(name))
