"""What is seen of a run between two reports."""

import io

import pytest

from bert_tf.training.progress import Progress


@pytest.fixture(name="run")
def fixture_run(monkeypatch):
    """function(is_terminal, looks): what is written to a file or a terminal at (step, seconds)."""
    def watch(is_terminal, looks, step=0):
        monkeypatch.setenv("TERM", "xterm")
        output, now = io.StringIO(), [step, 0.0]
        output.isatty = lambda: is_terminal
        progress = Progress(lambda: now[0], 1000, output, lambda: now[1])
        with progress:
            for now[:] in looks:
                progress.look()
        return output.getvalue()
    return watch


LOOKS = [[10, 2.0], [11, 12.5], [12, 13.0], [31, 17.5], [61, 22.5]]


def test_lines_in_a_file(run):
    assert run(False, LOOKS, 10).splitlines() == [
        "compiling the training step",
        "compiled, and the first step is done, after 12 s",
        "4 steps per second, about 4 min 2 s left"]


def test_a_bar_on_a_terminal_is_gone_at_the_end(run):
    said = run(True, LOOKS, 10)
    assert f"[#{29 * '.'}] step 61/1,000, 5 steps per second, about 3 min 7 s left" in said
    assert said.endswith("\r\x1b[K") and said.count("\n") == 2


def test_nothing_is_said_of_steps_that_were_not_taken(run):
    assert run(False, [[3, 60.0]], 3) == "compiling the training step\n"
