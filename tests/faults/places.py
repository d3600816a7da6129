"""Places for a command's files: a folder on this machine's disk, or in a store."""

import contextlib
import io
import os
import re
import subprocess
import zipfile

import fsspec

# Curves and cards, which have times; a number that TensorFlow draws; times in other files.
_VOLATILE = ("metrics.jsonl", "README.md", "tensorboard", "fingerprint.pb")
_TIMES = re.compile(rb'"(?:date_saved|seconds)": (?:"[^"]*"|[\d.e-]+)')


class Place:
    """A folder on a "disk" or in "S3", whose bucket is made; commands need `environment` there."""

    def __init__(self, name: str, root: str, environment: dict[str, str]) -> None:
        self.name, self.root, self.environment = name, root, environment
        self._store = fsspec.filesystem("file" if name == "disk" else "s3",
                                        use_listings_cache=False)
        self._inner = root.removeprefix("s3://")
        with contextlib.suppress(FileExistsError):
            self._store.mkdir(self._inner if name == "disk" else self._inner.partition("/")[0])

    def clear(self) -> None:
        """Removes everything; of a disk not the folder itself."""
        for part in ("in", "out"):
            with contextlib.suppress(FileNotFoundError):
                self._store.rm(f"{self._inner}/{part}", recursive=True)

    def put(self, source: str, name: str) -> None:
        files = [source] if os.path.isfile(source) else [
            os.path.join(base, each) for base, _, names in os.walk(source) for each in names]
        for file in files:
            target = os.path.normpath(os.path.join(self._inner, name, os.path.relpath(
                file, source)))
            self._store.makedirs(os.path.dirname(target), exist_ok=True)
            self._store.put_file(file, target)

    def names(self, folder: str) -> set[str]:
        start = f"{self._inner}/{folder}"
        if self.name == "disk":
            return {os.path.relpath(os.path.join(base, name), start)
                    for base, _, names in os.walk(start) for name in names}
        return {name.removeprefix(start).strip("/") for name in self._store.find(start)}

    def read(self, folder: str) -> dict[str, bytes]:
        contents = {}
        for name in self.names(folder):
            with contextlib.suppress(FileNotFoundError):
                contents[name] = self._store.cat_file(f"{self._inner}/{folder}/{name}")
        return contents

    def write(self, name: str, content: bytes | None) -> None:
        """Replaces a file; None removes it."""
        path = f"{self._inner}/{name}"
        if content is None:
            self._store.rm_file(path)
        else:
            self._store.pipe_file(path, content)


@contextlib.contextmanager
def small_disk(folder: str, room: int):
    """Puts a small disk into the place of a folder; gives a function that mounts it again with
    other options, such as "size=1g", "ro" or "rw". Only root may mount one."""
    os.makedirs(folder, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={room}", "tmpfs", folder], check=True)
    try:
        yield lambda options: subprocess.run(["mount", "-o", f"remount,{options}", folder],
                                             check=True)
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def comparable(files: dict[str, bytes]) -> dict[str, object]:
    """The files that two runs must have in common, without times. An archive counts by its
    members. Only the last training checkpoint counts: a stopped run has others before it."""
    contents: dict[str, object] = {}
    checkpoints = sorted(name for name in files if name.startswith("checkpoint-"))
    for name, content in files.items():
        if name in checkpoints[:-1] or any(part in _VOLATILE for part in name.split("/")):
            continue
        contents[name] = _TIMES.sub(b"", content)
        if name.endswith(".keras"):
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                contents[name] = {one.filename: _TIMES.sub(b"", archive.read(one))
                                  for one in archive.infolist()}
    return contents


def differences(files: dict[str, object], expected: dict[str, object]) -> list[str]:
    """The names of files that are absent, surplus or other than expected."""
    return sorted(name for name in files.keys() | expected.keys()
                  if files.get(name) != expected.get(name))
