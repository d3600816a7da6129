"""What a run says while it trains: a console line, TensorBoard curves, and JSON lines."""

import json
import os
import time

from bert_tf.errors import InputError
from bert_tf.files import write_aside


def duration(seconds):
    """Seconds as people read them: 42 s, 3 min 20 s, 5 h 10 min."""
    seconds = int(seconds)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60} min"


class Reporter:
    """Writes metrics to the console, `metrics.jsonl` and TensorBoard event files of a folder.

    Args:
        folder: of the run; None writes to the console alone (workers that are not the chief).
        start_step: lines of later steps, of a run that was killed, are dropped from
            `metrics.jsonl`, since those steps will be taken again.
        total_steps: of the run, for the time left.
        sequences_per_step: the global batch size.
    """

    def __init__(self, folder, start_step, total_steps, sequences_per_step):
        import tensorflow as tf  # pylint: disable=import-outside-toplevel
        self._tf, self._folder = tf, folder
        self._total_steps, self._sequences = total_steps, sequences_per_step
        self._writers = {}
        self._last = None
        self._rate = None
        if folder:
            self._path = os.path.join(folder, "metrics.jsonl")
            _keep_lines(self._path, lambda line: line["step"] <= start_step)

    def start(self, step):
        """Notes that training goes on from `step` now; evaluating and saving are not timed."""
        self._last = (step, time.monotonic())

    def train(self, step, metrics):
        """Reports the steps since the last call, or since `start`."""
        last_step, last_time = self._last
        elapsed = time.monotonic() - last_time
        rate = (step - last_step) / max(elapsed, 1e-9)
        # The first report holds the compilation; later ones are averaged.
        self._rate = rate if self._rate is None or rate > 2 * self._rate else (
            0.7 * self._rate + 0.3 * rate)
        metrics = {**metrics, "sequences_per_second": rate * self._sequences}
        left = (self._total_steps - step) / self._rate
        print(f"step {step:,}/{self._total_steps:,}  {_line(metrics)}  "
              f"lr {metrics['learning_rate']:.2e}  grad {metrics['grad_norm']:.2f}  "
              f"{metrics['sequences_per_second']:,.0f} seq/s  {duration(left)} left", flush=True)
        self._write("train", step, {**metrics, "seconds_left": round(left, 1)})
        self.start(step)

    def evaluate(self, step, metrics):
        """Reports an evaluation, in the place of an earlier one of the same step."""
        print(f"held-out at step {step:,}: {_line(metrics)}", flush=True)
        if self._folder:
            _keep_lines(self._path, lambda line: (line["kind"], line["step"]) != ("eval", step))
        self._write("eval", step, metrics)

    def _write(self, kind, step, metrics):
        if not self._folder:
            return
        with open(self._path, "a", encoding="utf-8") as file:
            file.write(json.dumps({"kind": kind, "step": step, **metrics}) + "\n")
        if kind not in self._writers:
            self._writers[kind] = self._tf.summary.create_file_writer(
                os.path.join(self._folder, "tensorboard", kind))
        with self._writers[kind].as_default(step=step):
            for name, value in metrics.items():
                self._tf.summary.scalar(name, value)
        self._writers[kind].flush()


def write_eval_results(folder, metrics):
    """Writes `eval_results.txt`, as google-research/bert run_classifier.py does.

    Args:
        folder: where to.
        metrics: dict of number by name.
    """
    with write_aside(os.path.join(folder, "eval_results.txt")) as file:
        file.writelines(f"{name.replace('/', '_')} = {value}\n"
                        for name, value in sorted(metrics.items()))


def _line(metrics):
    """The losses and accuracies of a console line."""
    return "  ".join(f"{name.replace('/', ' ')} {value:.4f}" for name, value in metrics.items()
                     if name == "loss" or "/" in name)


def _keep_lines(path, is_kept):
    """Removes the lines of a metrics file that `is_kept` does not want, and a broken last one."""
    if not os.path.exists(path):
        return
    kept = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            try:
                if is_kept(json.loads(line)):
                    kept.append(line.rstrip("\n") + "\n")
            except ValueError:      # the last line of a process that was killed
                continue
    with write_aside(path) as file:
        file.writelines(kept)


def read_metrics(folder, kind):
    """The JSON lines of one kind ("train" or "eval") of a run: list of dicts.

    Raises:
        InputError: the folder is not that of a run.
    """
    path = os.path.join(folder, "metrics.jsonl")
    if not os.path.exists(path):
        raise InputError(f"{folder} is not the --output_dir of a run: it holds no metrics.jsonl.")
    with open(path, encoding="utf-8") as file:
        return [line for line in map(json.loads, file) if line["kind"] == kind]
