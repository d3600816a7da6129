"""Programs end in one line; those who import their packages keep their own handlers."""

import importlib
import os
import signal
import socket
import subprocess
import sys
import threading

import pytest

from bert_tf import signals

CODE = """
import signal, sys
sys.argv[0] = sys.argv[1]
import data_prep, run_scripts
print(signal.getsignal(signal.SIGINT) is signal.SIG_DFL)
"""


@pytest.mark.parametrize("program, is_ours", [
    ("-m", True), ("/usr/bin/bert-run-squad", True), ("", False), ("notebook.py", False)])
def test_only_programs_of_ours_are_quiet_while_they_import(program, is_ours):
    done = subprocess.run([sys.executable, "-c", CODE, program], capture_output=True, text=True,
                          check=True)
    assert done.stdout == f"{is_ours}\n"


WORKER = """
import os, signal
from bert_tf import signals
signals.obey_parent()
try:
    os.kill(os.getpid(), signal.SIGTERM)
finally:
    os.kill(os.getpid(), signal.SIGTERM)
    print("removed")
"""


def test_a_second_signal_does_not_disturb_what_a_worker_removes():
    done = subprocess.run([sys.executable, "-c", WORKER], capture_output=True, text=True,
                          check=False)
    assert (done.returncode, done.stdout) == (143, "removed\n")


@pytest.mark.parametrize("number", signals.STATUS)
def test_signals_end_a_block(number, capsys):
    before = signal.getsignal(number)
    removed = []
    with pytest.raises(SystemExit) as error, signals.ending():
        try:
            os.kill(os.getpid(), number)
            signal.pause()
        finally:
            removed.append("temporary files")
    assert error.value.code == 128 + number and removed
    assert len(capsys.readouterr().err.splitlines()) == 1
    signal.signal(number, before)       # the program would have ended


def test_handlers_are_put_back():
    before = [signal.getsignal(number) for number in signals.STATUS]
    with signals.ending():
        assert [signal.getsignal(number) for number in signals.STATUS] != before
    assert [signal.getsignal(number) for number in signals.STATUS] == before


class Dying:
    """Is sent a signal while it is removed, when Python drops exceptions."""

    def __init__(self, number):
        self.number = number

    def __del__(self):
        os.kill(os.getpid(), self.number)
        for _ in range(1000):       # the handler runs in here
            pass


@pytest.mark.parametrize("number", signals.STATUS)
def test_a_signal_that_a_destructor_drops_ends_the_block_too(number, capsys):
    before = signal.getsignal(number)
    with pytest.raises(SystemExit) as error, signals.ending():
        Dying(number)
        threading.Event().wait(10)
    assert error.value.code == 128 + number
    assert len(capsys.readouterr().err.splitlines()) == 1
    signal.signal(number, before)


@pytest.mark.parametrize("number", signals.STATUS)
def test_a_signal_that_becomes_another_error_ends_the_block_too(number, capsys):
    """As where C++ calls Python, and raises an error of its own."""
    before = signal.getsignal(number)
    with pytest.raises(SystemExit) as error, signals.ending():
        try:
            os.kill(os.getpid(), number)
            signal.pause()
        except BaseException:
            raise AttributeError("'list' object has no attribute '_type_spec'") from None
    assert error.value.code == 128 + number
    assert len(capsys.readouterr().err.splitlines()) == 1
    signal.signal(number, before)
    with pytest.raises(AttributeError), signals.ending():       # no signal arrived
        raise AttributeError("a defect")


def test_a_signal_waits_for_the_end_of_cpp_that_prints_tracebacks(tmp_path, capsys):
    before = signal.getsignal(signal.SIGINT)
    path = tmp_path / "tensorflow/python/util/nest_util.py"
    done = []
    code = compile("def _tf_core_flatten():\n    call()\n    done.append(1)", str(path), "exec")

    def call():
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):       # the handler runs in here
            pass
    with pytest.raises(SystemExit) as error, signals.ending():
        exec(code, names := {"call": call, "done": done})
        names["_tf_core_flatten"]()
        threading.Event().wait(10)
    assert error.value.code == 130 and done
    assert len(capsys.readouterr().err.splitlines()) == 1
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("number", signals.STATUS)
def test_a_signal_waits_for_the_end_of_an_import(number, tmp_path, monkeypatch, capsys):
    name = f"drops_{number.name}"
    (tmp_path / f"{name}.py").write_text(f"""import os
dropped = False
try:
    os.kill(os.getpid(), {int(number)})
    for _ in range(1000):
        pass
except BaseException:
    dropped = True
""")
    monkeypatch.syspath_prepend(tmp_path)
    before = signal.getsignal(number)
    with pytest.raises(SystemExit) as error, signals.ending():
        importlib.import_module(name)
        threading.Event().wait(10)
    assert error.value.code == 128 + number and not sys.modules[name].dropped
    assert len(capsys.readouterr().err.splitlines()) == 1
    signal.signal(number, before)


def test_a_signal_that_another_thread_gets_is_held_too():
    """As NumPy's threads get some of them."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    ready, end, done = threading.Event(), threading.Event(), []
    thread = threading.Thread(target=lambda: (ready.set(), end.wait()))
    thread.start()
    ready.wait()
    before = signal.set_wakeup_fd(theirs.fileno())
    try:
        with pytest.raises(SystemExit) as error, signals.ending():
            with signals.held():
                signal.pthread_kill(thread.ident, signal.SIGINT)
                ours.recv(1)        # it has arrived
                done.append("whole")
            signal.pause()
    finally:
        signal.set_wakeup_fd(before)
        end.set()
        thread.join()
    assert done == ["whole"] and error.value.code == 130
