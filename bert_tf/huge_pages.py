"""Settings of a program's memory in Linux: huge pages, and which arrays the program returns.

Each step of training allocates large arrays. Linux clears their memory page by page, and a page has
4 KiB: this took a third of the CPU time of a small model's step. Huge pages have 2 MiB. glibc asks
for them if GLIBC_TUNABLES says so when a process starts, so a program starts itself again.
"""

import ctypes
import os
import sys
from collections.abc import Mapping

VARIABLE = "GLIBC_TUNABLES"
_NAME = "glibc.malloc.hugetlb"
_SETTING = f"{_NAME}=1"
_THRESHOLD = "mmap_threshold"
_M_MMAP_THRESHOLD = -3      # its number in malloc.h
_LARGE = 4 << 20            # bytes
_GLIBC = (2, 35)        # the first that knows the name
_PAGES = "/sys/kernel/mm/transparent_hugepage/enabled"


def environment(variables: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Returns the variable that gives a process huge pages, with its other settings; {} if it would
    change nothing: Linux gives them to all programs or to none, glibc is too old, or the user has
    decided."""
    given = variables.get(VARIABLE, "")
    try:
        with open(_PAGES, encoding="utf-8") as file:
            on_request = "[madvise]" in file.read()
        name, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").split()
        is_known = name == "glibc" and tuple(map(int, version.split("."))) >= _GLIBC
    except (OSError, ValueError):
        return {}
    if _NAME in given or not (on_request and is_known):
        return {}
    return {VARIABLE: ":".join(filter(None, (given, _SETTING)))}


def without(variables: Mapping[str, str]) -> dict[str, str]:
    """Returns variables without the settings that `environment` adds, for programs of others."""
    settings = [setting for setting in variables.get(VARIABLE, "").split(":")
                if setting not in ("", _SETTING)]
    rest = {name: value for name, value in variables.items() if name != VARIABLE}
    return {**rest, **({VARIABLE: ":".join(settings)} if settings else {})}


def return_arrays() -> bool:
    """Makes glibc return each array above 4 MiB to Linux as soon as it is free, in a process with
    huge pages. Returns whether it did; a threshold that the user has set stays.

    Otherwise such arrays leave gaps between longer-lived arrays, and huge pages fill the gaps. To
    return and clear the arrays takes a tenth of a small network's step, but little of BERT-Base's,
    which then takes a sixth less memory.
    """
    given = os.environ.get(VARIABLE, "")
    if _SETTING not in given or _THRESHOLD in given:
        return False
    return bool(ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE))


def restart(main_module: str) -> None:
    """Starts the running program again with huge pages, if that helps.

    Nothing happens in a process that does more than this program, such as a test or a notebook, or
    that has loaded TensorFlow. The module "tensorflow" may be a stand-in.

    Args:
        main_module: name of the module of the program's `main`.
    """
    file = os.path.basename(getattr(sys.modules["__main__"], "__file__", None) or "")
    is_own = file.startswith("bert-") or file and main_module == "__main__"
    extra = environment() if is_own and "tensorflow.python" not in sys.modules else {}
    if extra and sys.executable:
        os.environ.update(extra)
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
