"""Programs end in one line; those who import their packages keep their own handlers."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading

import pytest

from bert_tf import signals
from bert_tf.files import write_aside

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


def test_a_signal_while_an_unfinished_file_is_removed_leaves_no_part(tmp_path, monkeypatch):
    remove = shutil.rmtree

    def remove_at_a_signal(folder, **options):
        os.kill(os.getpid(), signal.SIGTERM)
        remove(folder, **options)

    monkeypatch.setattr(shutil, "rmtree", remove_at_a_signal)
    with pytest.raises(SystemExit), signals.ending(), write_aside(tmp_path / "records") as file:
        file.write("half")
        raise OSError
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("becomes_another", [False, True])
@pytest.mark.parametrize("number", signals.STATUS)
def test_signals_end_a_block(number, becomes_another, capsys):
    """Also where C++ calls Python, and raises an error of its own."""
    before = signal.getsignal(number)
    removed = []
    with pytest.raises(SystemExit) as error, signals.ending():
        try:
            os.kill(os.getpid(), number)
            signal.pause()
        except BaseException:
            if becomes_another:
                raise AttributeError("'list' object has no attribute '_type_spec'") from None
            raise
        finally:
            removed.append("temporary files")
    assert error.value.code == 128 + number and removed
    assert len(capsys.readouterr().err.splitlines()) == 1
    signal.signal(number, before)       # the program would have ended
    with pytest.raises(AttributeError), signals.ending():       # no signal arrived
        raise AttributeError("a defect")


def test_handlers_are_put_back():
    before = [signal.getsignal(number) for number in signals.STATUS]
    with signals.ending():
        assert [signal.getsignal(number) for number in signals.STATUS] != before
    assert [signal.getsignal(number) for number in signals.STATUS] == before


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


def test_the_first_signal_is_noted_and_a_second_one_interrupts():
    with pytest.raises(KeyboardInterrupt), signals.FirstSignal() as first:
        signal.raise_signal(signal.SIGINT)
        assert first.noted == signal.SIGINT
        signal.raise_signal(signal.SIGINT)
    assert signal.set_wakeup_fd(-1) == -1
