"""Reports of a run while it trains: a console line, TensorBoard curves, and JSON lines."""

import json
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TextIO, TypeVar

import lazy_loader

from bert_tf import files
from bert_tf.errors import InputError

tf = lazy_loader.load("tensorflow")
T = TypeVar("T")

_METRICS = "metrics.jsonl"
_INTERVAL = 0.5     # seconds between two looks at the step
_SAMPLE = 3.0       # seconds after which the rate of the first steps is printed


def duration(seconds: float) -> str:
    """Seconds as people read them: 42 s, 3 min 20 s, 5 h 10 min."""
    seconds = int(seconds)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60} min"


class TimeLeft:
    """Prints every few seconds how many of `total` are done, and the time left. `what` names them,
    such as "heads"."""

    SECONDS = 5

    def __init__(self, what: str, total: int) -> None:
        self._what, self._total, self._done = what, total, 0.0
        self._start = self._last = time.monotonic()

    def __call__(self, count: float = 1) -> None:
        """Counts further ones."""
        self._done += count
        now = time.monotonic()
        if now - self._last >= self.SECONDS and self._done < self._total:
            self._last = now
            left = (now - self._start) * (self._total / self._done - 1)
            print(f"{self._done:,.0f}/{self._total:,} {self._what}, about {duration(left)} left",
                  flush=True)

    def over(self, items: Iterable[T]) -> Iterator[T]:
        """Yields the items; each counts when the next one is asked for."""
        for item in items:
            yield item
            self()


class Progress:
    """Says what happens between two reports, in `with` blocks around training: that the step is
    compiled, that the first step is done, and how long the rest will take. A terminal shows the
    last on one line, which is gone when a block ends.

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
        self._is_terminal = self._output.isatty() and os.environ.get("TERM") != "dumb"
        self._begin: tuple[int, float] | None = None     # before the first step
        self.first: tuple[int, float] | None = None     # step and seconds after compiling
        self._is_told = False

    def _say(self, text):
        if self._is_terminal:
            text = f"\r\x1b[K{text}"     # instead of the last line
        self._output.write(text)
        self._output.flush()

    def look(self) -> None:
        """Looks at the step; writes that the first step is done, and how much time is left."""
        step, now = self._read(), self._clock()
        assert self._begin is not None
        if step == self._begin[0]:
            return
        if self.first is None:
            self.first = step, now
            self._say("compiled, and the first step is done, after "
                      f"{duration(now - self._begin[1])}\n")
        steps, elapsed = step - self.first[0], now - self.first[1]
        if steps and elapsed >= _SAMPLE and (self._is_terminal or not self._is_told):
            left = duration((self._total - step) / steps * elapsed)
            end = "" if self._is_terminal else "\n"
            self._say(f"step {step:,}/{self._total:,}, {steps / elapsed:.3g} steps per second, "
                      f"about {left} left{end}")
            self._is_told = True

    def _watch(self):
        while not self._end.wait(_INTERVAL):
            self.look()

    def __enter__(self) -> "Progress":
        if self._begin is None:
            self._begin = self._read(), self._clock()
            self._say("compiling the training step\n")
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._end.set()
        self._thread.join()
        self._say("")


class Reporter:
    """Writes metrics to the console, `metrics.jsonl` and TensorBoard event files of a folder. The
    end of its block sends what no checkpoint has sent, if the folder is in a store.

    Args:
        folder: the run's; None writes to the console alone (workers that are not the chief).
        evaluated_on: the name of the evaluation's records on the console.
        sequences_per_step: of the next steps; the attribute `sequences`, which may change.
        start_step: step at which the run is resumed. Lines of later steps are removed from
            `metrics.jsonl`, since a run that was killed takes those steps again; TensorBoard drops
            them, too.
    """

    def __init__(self, folder: str | None, start_step: int, total_steps: int,
                 sequences_per_step: int, evaluated_on: str = "held-out") -> None:
        self._folder, self._evaluated_on = folder, evaluated_on
        self._total_steps, self.sequences = total_steps, sequences_per_step
        self._writers = {}
        self._start_step, self._draws = start_step, True
        self._last = None
        self._rate = None
        self._has_news = False      # that were not sent
        if folder:
            # Files that grow can't be in a store, which takes whole ones.
            self._local = folder
            if files.is_remote(folder):
                self._holder = tempfile.TemporaryDirectory(dir=files.stage_folder())
                self._local = self._holder.name
            self._path = os.path.join(self._local, _METRICS)
            if files.exists(earlier := os.path.join(folder, _METRICS)) and earlier != self._path:
                files.copy_file(earlier, self._path)
            _keep_lines(self._path, lambda line: line["step"] <= start_step)

    def start(self, step: int) -> None:
        """Notes that training continues at `step` now; evaluating and saving are not timed."""
        self._last = (step, time.monotonic())

    def train(self, step: int, metrics: dict[str, float],
              compiled: tuple[int, float] | None = None, taken: int | None = None) -> None:
        """Reports the steps since the last call, or since `start`.

        Args:
            taken: the sequences of these steps; None: `sequences` in each.
            compiled: the steps taken when the compiled step was first seen to run, and the seconds
                of `time.monotonic` then; the rate leaves out the time before.
        """
        if compiled and compiled[0] < step:
            last_step, last_time = max(self._last, compiled)
        else:
            last_step, last_time = self._last
        elapsed = time.monotonic() - last_time
        rate = self.sequences * (step - last_step) / max(elapsed, 1e-9)
        if taken is not None:
            rate *= taken / (self.sequences * (step - self._last[0]))
        # The first report may include the compilation; later ones are averaged.
        if self._rate is None or rate > 2 * self._rate:
            self._rate = rate
        else:
            self._rate = 0.7 * self._rate + 0.3 * rate
        metrics = {**metrics, "sequences_per_second": rate}
        left = (self._total_steps - step) * self.sequences / self._rate
        print(f"step {step:,}/{self._total_steps:,}  {_line(metrics)}  "
              f"lr {metrics['learning_rate']:.2e}  grad {metrics['grad_norm']:.2f}  "
              f"{metrics['sequences_per_second']:,.0f} seq/s  {duration(left)} left", flush=True)
        self._write("train", step, {**metrics, "seconds_left": round(left, 1)})
        self.start(step)

    def evaluate(self, step: int, metrics: dict[str, float]) -> None:
        """Reports an evaluation, in the place of an earlier one of the same step."""
        print(f"{self._evaluated_on} at step {step:,}: {_line(metrics)}", flush=True)
        if self._folder:
            _keep_lines(self._path, lambda line: (line["kind"], line["step"]) != ("eval", step))
        self._write("eval", step, metrics)

    def _write(self, kind, step, metrics):
        if not self._folder:
            return
        self._has_news = True
        with open(self._path, "a", encoding="utf-8") as file:
            file.write(json.dumps({"kind": kind, "step": step, **metrics}) + "\n")
        if self._draws:
            self._draw(kind, step, metrics)

    def _draw(self, kind, step, metrics):
        """Writes points of TensorBoard's curves; a disk that is full ends them, not the run."""
        folder = os.path.join(self._local, "tensorboard", kind)
        try:
            if kind not in self._writers:
                self._writers[kind] = _curves(folder, self._start_step)
            with self._writers[kind].as_default(step=step):
                for name, value in metrics.items():
                    tf.summary.scalar(name, value)
            self._writers[kind].flush()
        except tf.errors.OpError:
            self._draws, self._writers = False, {}
            print(f"warning: {folder} can't be written, perhaps because the disk is full; the run "
                  "continues without curves for TensorBoard", flush=True)

    def __enter__(self) -> "Reporter":
        return self

    def __exit__(self, kind, *_) -> None:
        if self._has_news and not kind:
            self.publish()

    def publish(self) -> None:
        """Sends the reports to the run's folder, if it is in a store."""
        self.copied()()

    def copied(self) -> Callable[[], None]:
        """Copies the reports until now; returns a function that sends the copy to the run's folder,
        if it is in a store."""
        if not self._folder or self._local == self._folder:
            return lambda: None
        self._has_news = False
        copy = tempfile.TemporaryDirectory(dir=files.stage_folder())
        shutil.copytree(self._local, copy.name, dirs_exist_ok=True)

        def send() -> None:
            with copy:
                files.send_folder(copy.name, self._folder)
        return send


def evaluated_on(train_files: str | list[str], eval_files: str | list[str]) -> str:
    """Returns the name in reports of the records that a run is evaluated on."""
    return "training records" if eval_files == train_files else "held-out"


def write_eval_results(folder: str, metrics: dict[str, float]) -> None:
    """Writes `eval_results.txt`, as google-research/bert run_classifier.py does."""
    with files.write_aside(os.path.join(folder, "eval_results.txt")) as file:
        file.writelines(f"{name.replace('/', '_')} = {value}\n"
                        for name, value in sorted(metrics.items()))


def _curves(folder, start_step):
    """A writer of TensorBoard's curves. It begins with a start event, as TensorFlow 1 writes it,
    which makes TensorBoard drop the points of that step and later."""
    writer = tf.summary.create_file_writer(folder)
    v1 = tf.compat.v1
    start = v1.Event(wall_time=time.time(), step=start_step + 1,
                     session_log=v1.SessionLog(status=v1.SessionLog.START))
    for _ in range(2):      # the first that TensorBoard sees is not a restart to it
        tf.raw_ops.ImportEvent(writer=writer._resource, event=start.SerializeToString())
    return writer


def _line(metrics):
    return "  ".join(f"{name.replace('/', ' ')} {value:.4f}" for name, value in metrics.items()
                     if name == "loss" or "/" in name)


def _keep_lines(path: str, is_kept: Callable[[dict], bool]) -> None:
    """Removes the lines of a metrics file that `is_kept` does not want, and damaged ones: a process
    that is killed may leave half a line."""
    if not files.exists(path):
        return
    intact = []
    try:
        with files.open_file(path, "rb") as file:
            lines = file.readlines()
    except OSError as error:
        raise InputError(f"{path} can't be read ({error.strerror}); remove the file.") from error
    for number, line in enumerate(lines):
        try:
            if is_kept(_parse(line)):
                intact.append(line.rstrip(b"\n") + b"\n")
        except ValueError:
            if number + 1 < len(lines):
                print(f"warning: {path}, line {number + 1} is damaged and is removed", flush=True)
    with files.write_aside(path, "wb") as file:
        file.writelines(intact)


def _parse(line):
    """Parses a line; raises ValueError if it is not a dict with a kind and a step."""
    value = json.loads(line)
    if not isinstance(value, dict) or not {"kind", "step"} <= value.keys():
        raise ValueError
    return value


def read_metrics(folder: str, kind: str) -> list[dict]:
    """Returns the JSON lines of one kind ("train" or "eval") of a run."""
    path = os.path.join(folder, _METRICS)
    if not files.is_file(path):
        raise InputError(f"{folder} holds no metrics.jsonl; name the --output_dir of a run.")
    lines = []
    with files.open_file(path, "rb") as file:
        for number, line in enumerate(file):
            try:
                lines.append(_parse(line))
            except ValueError as error:
                raise InputError(
                    f"{path}, line {number + 1} is damaged; remove the line.") from error
    return [line for line in lines if line["kind"] == kind]
