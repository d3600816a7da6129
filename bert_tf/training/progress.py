"""Signs of life between the reports of a run: lines in a file, a bar on a terminal."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from typing import TextIO

_INTERVAL = 0.5     # seconds between two looks at the step
_SAMPLE = 3.0       # seconds after which the rate of the first steps is printed
_WIDTH = 30         # characters of the bar


def duration(seconds: float) -> str:
    """Seconds as people read them: 42 s, 3 min 20 s, 5 h 10 min."""
    seconds = int(seconds)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60} min"


class Progress:
    """Watches the step of a run from a thread of its own, in `with` blocks around training.

    The first block says that the step is compiled, then that the first step is done, and how long
    the rest will take. On a terminal a bar follows, which is gone when a block ends.

    Args:
        read_step: returns the steps taken so far; any thread may call it.
        total: steps of the run.
        output: where to write; standard output if None.
        clock: returns seconds.
    """

    def __init__(self, read_step: Callable[[], int], total: int, output: TextIO | None = None,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self._read, self._total, self._clock = read_step, total, clock
        self._output = output or sys.stdout
        self._has_bar = self._output.isatty() and os.environ.get("TERM") != "dumb"
        self._begin: tuple[int, float] | None = None     # before the first step
        self.first: tuple[int, float] | None = None     # step and seconds after compiling
        self._is_told, self._is_drawn = False, False
        self._end = threading.Event()
        self._thread: threading.Thread | None = None

    def look(self) -> None:
        """Looks at the step; writes that the first step is done, and how much time is left."""
        step, now = self._read(), self._clock()
        assert self._begin is not None
        if step == self._begin[0]:
            return
        if self.first is None:
            self.first = step, now
            self._say(f"compiled, and the first step is done, after "
                      f"{duration(now - self._begin[1])}")
        elapsed = now - self.first[1]
        if step == self.first[0] or elapsed < (_INTERVAL if self._has_bar else _SAMPLE):
            return
        rate = (step - self.first[0]) / elapsed
        left = f"{rate:.3g} steps per second, about {duration((self._total - step) / rate)} left"
        if self._has_bar:
            self._draw(step, left)
        elif not self._is_told:
            self._say(left)
        self._is_told = True

    def _draw(self, step, left):
        done = _WIDTH * step // max(self._total, 1)
        self._output.write(f"\r\x1b[K[{'#' * done}{'.' * (_WIDTH - done)}] step {step:,}/"
                           f"{self._total:,}, {left}")
        self._output.flush()
        self._is_drawn = True

    def _say(self, line):
        self._clear()
        print(line, file=self._output, flush=True)

    def _clear(self):
        if self._is_drawn:
            self._output.write("\r\x1b[K")
            self._output.flush()
            self._is_drawn = False

    def _watch(self):
        while not self._end.wait(_INTERVAL):
            self.look()

    def __enter__(self) -> Progress:
        if self._begin is None:
            self._begin = self._read(), self._clock()
            self._say("compiling the training step")
        if self._has_bar or not self._is_told:
            self._end.clear()
            self._thread = threading.Thread(target=self._watch, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        if self._thread:
            self._end.set()
            self._thread.join()
            self._thread = None
        self._clear()
