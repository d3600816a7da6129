"""Work during training, such as writing a checkpoint, in one thread."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


class Background:
    """Does one thing at a time in a thread; the end of its block waits for it."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._work: Future | None = None

    def start(self, work: Callable[..., Any], *args: Any) -> None:
        """Begins `work(*args)`; the work before must have been waited for."""
        self._work = self._pool.submit(work, *args)

    def wait(self) -> None:
        """Waits until the work is done; raises its error."""
        if work := self._take():
            work.result()

    def check(self) -> None:
        """Raises the error of the work if it has failed already."""
        if self._work and self._work.done():
            self.wait()

    def _take(self):
        work, self._work = self._work, None
        return work

    def __enter__(self) -> "Background":
        return self

    def __exit__(self, kind, *_) -> None:
        self._pool.shutdown()
        work = self._take()
        error = work and work.exception()
        if error and kind:      # another error ends the block, and must not be hidden
            print(f"warning: {error}", flush=True)
        elif error:
            raise error
