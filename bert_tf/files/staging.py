"""Copies of remote files on this machine's disk, in BERT_TF_STAGE_FOLDER, for libraries that open
files by name. A copy's name has the version of the file. Copies beyond BERT_TF_STAGE_BYTES go, the
least recently used first."""

import contextlib
import hashlib
import os
import posixpath
import shutil
import tempfile
import time

from bert_tf.errors import InputError
from bert_tf.files.places import files_under, identity, is_remote, reaching, stage_folder
from bert_tf.files.reading import open_unpacked, read_range

# Room for copies, in bytes, where BERT_TF_STAGE_BYTES does not say it.
_ROOM = 20 << 30
# Seconds that a copy is kept after its last use: another process may be about to open it.
_IN_USE = 600


def upload_place(path: str) -> str:
    """Returns the local name of a remote file that is written here before it is sent."""
    named = hashlib.sha256(os.fspath(path).encode()).hexdigest()[:16]
    return os.path.join(stage_folder(), f"upload-{named}-{posixpath.basename(path)}")


def send(source: str, target: str) -> None:
    """Sends a local file to a store, where its name appears once all its bytes are there."""
    with reaching(target) as (store, name):
        store.put_file(source, name)


def staged(path: str) -> str:
    """Returns the name of a local file with a remote one's content; the name itself if it is local.
    OSError if the file is absent; InputError if the store can't be reached."""
    if not is_remote(path):
        return path

    def fetch(aside):
        with reaching(path) as (store, name):
            _make_room(store.info(name)["size"])
            store.get_file(name, aside)

    return _copied(path, identity(path), fetch)


def tensorflow_name(path: str) -> str:
    """The name that TensorFlow opens a file by: it reads gs:// itself, else local files."""
    return path if path.startswith("gs://") else staged(path)


def copy_file(source: str, target: str) -> None:
    local = staged(source)
    if is_remote(target):
        send(local, target)
    else:
        shutil.copyfile(local, target)


def _copied(path, version, write):
    """The name of a copy of a file in this version, which `write` makes if there is none."""
    version = hashlib.sha256(f"{path}\n{version}".encode()).hexdigest()
    place = os.path.join(stage_folder(), "files", version, posixpath.basename(path))
    if not os.path.isfile(place):
        os.makedirs(os.path.dirname(place), exist_ok=True)
        handle, aside = tempfile.mkstemp(dir=os.path.dirname(place))
        os.close(handle)
        try:
            write(aside)
            os.replace(aside, place)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.remove(aside)
    os.utime(place)
    return place


def unpacked_size(path: str, version: str) -> int:
    """The size of a packed file when unpacked, in bytes; for `version` see `identity`."""
    return os.path.getsize(_unpacked(path, version))


def unpacked_range(path: str, version: str, start: int, end: int) -> bytes:
    """Returns bytes of a packed file by their places when it is unpacked, into a copy."""
    return read_range(_unpacked(path, version), start, end)


def _unpacked(path, version):
    def unpack(aside):
        with open(aside, "wb") as copy, open_unpacked(path) as file:
            while block := file.read(1 << 20):
                try:
                    copy.write(block)
                except OSError as error:
                    raise InputError(
                        f"{path} can't be unpacked into {stage_folder()} ({error.strerror}); make "
                        "room, or set BERT_TF_STAGE_FOLDER to another folder.") from error
        _make_room(0)

    return _copied(path, f"{version}\nunpacked", unpack)


def _make_room(size):
    """Removes the copies used least recently, so that `size` bytes more stay within the room."""
    room = os.environ.get("BERT_TF_STAGE_BYTES", str(_ROOM))
    if not room.isdecimal():
        raise InputError(f"BERT_TF_STAGE_BYTES is {room!r}; it must be a number of bytes.")
    copies = []
    for name in files_under(os.path.join(stage_folder(), "files")):
        with contextlib.suppress(FileNotFoundError):    # another process removes it too
            copies.append((os.path.getmtime(name), os.path.getsize(name), name))
    size += sum(copy[1] for copy in copies)
    for used, freed, name in sorted(copies):
        if size <= int(room) or used > time.time() - _IN_USE:
            break
        with contextlib.suppress(OSError):
            os.remove(name)
            os.rmdir(os.path.dirname(name))
        size -= freed
