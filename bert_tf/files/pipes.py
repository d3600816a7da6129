"""Standard input and pipes, whose bytes come once: kept in a file, which may be read again."""

import atexit
import os
import re
import shutil
import stat
import tempfile

from bert_tf.files.places import is_remote
from bert_tf.files.reading import PIPES, STANDARD
from bert_tf.files.staging import stage_folder

# Flags that name files to read, which may be pipes. Other flags may name a pipe to write to.
READ_FLAGS = re.compile("(?:.*_)?(?:input|train|dev|test|predict|transfer|vocab|config)_file")
_STANDARD_NAMES = (STANDARD, "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")


def is_pipe(path: str) -> bool:
    """Returns whether a name is standard input, a pipe or a device, whose bytes come once."""
    if path == STANDARD:
        return True
    try:
        mode = os.stat(path).st_mode if path and not is_remote(path) else 0
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or stat.S_ISSOCK(mode)


def as_file(path: str, default: str | None = None) -> str:
    """Returns the name of a file with the bytes of a pipe, or the name itself if it is not a pipe.
    The file lasts as long as the process.

    Args:
        default: of the flag. A flag that reads standard input by default can read it piece by
            piece; its value is then `STANDARD`.
    """
    if not isinstance(path, str) or not is_pipe(path):
        return path
    if path in _STANDARD_NAMES:
        path = STANDARD
        if default == STANDARD:
            return path
    known = {source: name for name, source in PIPES.items()}
    if path not in known:
        folder = tempfile.mkdtemp(prefix="pipe-", dir=stage_folder())
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        known[path] = os.path.join(folder, os.path.basename(path) if path != STANDARD else "stdin")
        with (open(0, "rb", closefd=False) if path == STANDARD else open(path, "rb")) as file, \
                open(known[path], "wb") as copy:
            shutil.copyfileobj(file, copy, 1 << 20)
        PIPES[known[path]] = path
    return known[path]
