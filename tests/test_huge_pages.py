"""Programs that start again with huge pages of memory."""

import os
import subprocess
import sys

import pytest

from bert_tf import huge_pages

ADDED = "glibc.malloc.hugetlb=1"
# A program that says how it was started, and with which variable.
PROGRAM = """
import os, sys
from bert_tf import flags
from bert_tf import huge_pages

def main():
    print(os.environ.get(huge_pages.VARIABLE), sys.argv[1:], os.getpid(), input())

huge_pages._PAGES = os.environ["PAGES"]
flags.run(main, loads_tensorflow=os.environ["LOADS"] == "True")
"""


@pytest.fixture
def start(tmp_path):
    """Function that runs the program and returns what it prints, and whether its process says
    so."""
    (tmp_path / "program.py").write_text(PROGRAM)

    def run(pages="always [madvise] never", loads=True, **environment):
        (tmp_path / "pages").write_text(pages)
        program = subprocess.Popen(
            [sys.executable, str(tmp_path / "program.py")], stdin=subprocess.PIPE, text=True,
            stdout=subprocess.PIPE, env={
                **{name: value for name, value in os.environ.items()
                   if name != huge_pages.VARIABLE},
                "PAGES": str(tmp_path / "pages"), "LOADS": str(loads), **environment})
        variable, *rest = program.communicate("typed\n")[0].split()
        assert rest == ["[]", str(program.pid), "typed"]
        return None if variable == "None" else variable
    return run


# A program that counts the arrays of 8 MiB that are mappings of their own: Linux gets these back.
COUNT = """
import ctypes
from bert_tf import huge_pages

libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
class Counts(ctypes.Structure):     # struct mallinfo2
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks",
        "fordblks", "keepcost")]
libc.mallinfo2.restype = Counts

def mapped():
    before = libc.mallinfo2().hblks
    libc.malloc(8 << 20)
    return libc.mallinfo2().hblks - before

libc.free(libc.malloc(16 << 20))    # glibc now keeps arrays of up to 16 MiB
print(mapped(), huge_pages.return_arrays(), mapped())
"""


needs_glibc = pytest.mark.skipif(not os.confstr("CS_GNU_LIBC_VERSION"), reason="glibc is needed")


@needs_glibc
def test_a_program_starts_again_once_with_huge_pages(start):
    assert start() == ADDED
    assert start(GLIBC_TUNABLES="glibc.malloc.check=1") == f"glibc.malloc.check=1:{ADDED}"


@pytest.mark.parametrize("pages", ["[always] madvise never", "always madvise [never]"])
def test_nothing_changes_where_linux_gives_them_to_all_or_to_none(start, pages):
    assert start(pages) is None


def test_the_user_decides(start):
    assert start(GLIBC_TUNABLES="glibc.malloc.hugetlb=0") == "glibc.malloc.hugetlb=0"
    assert start(loads=False) is None


@needs_glibc
def test_programs_of_others_do_not_get_them():
    given = {"A": "b", huge_pages.VARIABLE: "glibc.malloc.check=1"}
    added = {**given, huge_pages.VARIABLE: f"{given[huge_pages.VARIABLE]}:{ADDED}"}
    assert huge_pages.without(added) == given == huge_pages.without(given)
    assert huge_pages.without({"A": "b", **huge_pages.environment({})}) == {"A": "b"}


def test_a_process_that_does_more_is_left_alone(monkeypatch):
    monkeypatch.setattr(os, "execv", lambda *_: pytest.fail("the tests would start again"))
    monkeypatch.setattr(huge_pages, "environment", lambda: {huge_pages.VARIABLE: "x"})
    huge_pages.restart("run_scripts.run_pretraining")
    monkeypatch.setitem(sys.modules, "tensorflow.python", os)
    huge_pages.restart("__main__")


@needs_glibc
@pytest.mark.parametrize("variable, counted", [
    ("glibc.malloc.hugetlb=1", "0 True 1"), ("glibc.malloc.hugetlb=0", "0 False 0"),
    ("glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=33554432", "0 False 0")])
def test_large_arrays_are_returned_to_linux(variable, counted):
    said = subprocess.run([sys.executable, "-c", COUNT], check=True, text=True,
                          stdout=subprocess.PIPE,
                          env={**os.environ, huge_pages.VARIABLE: variable}).stdout
    assert said.strip() == counted
