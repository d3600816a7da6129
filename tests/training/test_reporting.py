"""What a run leaves behind for people and programs to read."""

import io
import json

import pytest
import tensorflow as tf
from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator

from bert_tf.errors import InputError
from bert_tf.training.reporting import (
    Progress,
    Reporter,
    duration,
    evaluated_on,
    read_metrics,
)

METRICS = {"loss": 3.5, "masked_lm/loss": 3.0, "learning_rate": 1e-4, "grad_norm": 2.0}


def report(folder, start, steps):
    reporter = Reporter(folder, start, 100, 8)
    reporter.start(start)
    for step in steps:
        reporter.train(step, METRICS)
    return reporter


def steps_of(folder, kind):
    return [line["step"] for line in read_metrics(folder, kind)]


@pytest.mark.parametrize("seconds, text", [(0.9, "0 s"), (59, "59 s"), (200, "3 min 20 s"),
                                           (18_630, "5 h 10 min"), (360_000, "100 h 0 min")])
def test_durations(seconds, text):
    assert duration(seconds) == text


def test_a_run_that_goes_on_replaces_what_comes_after(tmp_path, capsys):
    report(tmp_path, 0, (10, 20)).evaluate(20, METRICS)
    report(tmp_path, 10, (20, 30))
    assert steps_of(tmp_path, "train") == [10, 20, 30] and steps_of(tmp_path, "eval") == []
    assert "step 30/100  loss 3.5000  masked_lm loss 3.0000" in capsys.readouterr().out


def curve(folder, kind):
    """The steps of a curve as TensorBoard draws it; its files are then an hour older."""
    events = EventAccumulator(str(folder / "tensorboard" / kind))
    steps = [point.step for point in events.Reload().Tensors("loss")]
    for path in (folder / "tensorboard" / kind).iterdir():
        written, rest = path.name.removeprefix("events.out.tfevents.").split(".", 1)
        path.rename(path.with_name(f"events.out.tfevents.{int(written) - 3600}.{rest}"))
    return steps


def test_tensorboard_drops_what_comes_after(tmp_path):
    first = report(tmp_path, 0, (10, 20, 30))
    for step in (10, 20):
        first.evaluate(step, METRICS)
    assert curve(tmp_path, "train") == [10, 20, 30] and curve(tmp_path, "eval") == [10, 20]
    report(tmp_path, 10, (15, 20)).evaluate(20, METRICS)
    assert curve(tmp_path, "train") == [10, 15, 20] and curve(tmp_path, "eval") == [10, 20]
    report(tmp_path, 20, ()).evaluate(20, METRICS)
    assert curve(tmp_path, "eval")[:2] == [10, 20]
    report(tmp_path, 0, (5,))
    assert curve(tmp_path, "train") == [5]


@pytest.mark.parametrize("place", ["create_file_writer", "scalar"])
def test_curves_that_cannot_be_written_end_no_run(tmp_path, monkeypatch, capsys, place):
    def fail(*_, **__):
        raise tf.errors.ResourceExhaustedError(None, None, "No space left on device")

    monkeypatch.setattr(tf.summary, place, fail)
    report(tmp_path, 0, (10, 20)).evaluate(20, METRICS)
    assert steps_of(tmp_path, "train") == [10, 20] and steps_of(tmp_path, "eval") == [20]
    said = capsys.readouterr().out
    assert said.count("warning: ") == 1
    assert "tensorboard/train can't be written, perhaps because the disk is full" in said


def test_an_evaluation_replaces_that_of_the_same_step(tmp_path, capsys):
    reporter = report(tmp_path, 0, (10,))
    for step, loss in ((5, 3.0), (10, 2.0), (10, 1.0)):
        reporter.evaluate(step, {"loss": loss})
    assert [(line["step"], line["loss"]) for line in read_metrics(tmp_path, "eval")] == [
        (5, 3.0), (10, 1.0)]
    assert steps_of(tmp_path, "train") == [10]
    assert "held-out at step 10: loss 1.0000" in capsys.readouterr().out


def test_evaluations_of_training_records_are_called_so(tmp_path, capsys):
    assert evaluated_on(["a"], ["b"]) == "held-out"
    Reporter(tmp_path, 0, 100, 8, evaluated_on(["a"], ["a"])).evaluate(10, METRICS)
    said = capsys.readouterr().out
    assert "training records at step 10: loss 3.5000" in said and "held-out" not in said


def test_the_first_rate_leaves_compiling_out(tmp_path, monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    reporter = Reporter(tmp_path, 0, 110, 8)
    reporter.start(0)
    now[0] = 32.0       # 30 seconds of compiling, 2 steps a second
    reporter.train(10, METRICS, (6, 30.0))
    assert "16 seq/s  50 s left" in capsys.readouterr().out
    now[0] = 37.0
    reporter.train(20, METRICS, (6, 30.0))
    assert "16 seq/s  45 s left" in capsys.readouterr().out
    # Steps that were all taken when the first was seen have no other rate.
    other = Reporter(tmp_path, 20, 110, 8)
    other.start(20)
    now[0] = 42.0
    other.train(30, METRICS, (30, 42.0))
    assert "16 seq/s  40 s left" in capsys.readouterr().out


def test_the_rate_counts_the_sequences_of_steps_that_grow(tmp_path, monkeypatch, capsys):
    """64 sequences a second: two steps of 8 and two of 24 take a second, and each of 24 steps of 24
    takes 24 / 64 of one."""
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    reporter = Reporter(tmp_path, 0, 28, 8)
    reporter.start(0)
    now[0], reporter.sequences = 1.0, 24
    reporter.train(4, METRICS, taken=2 * 8 + 2 * 24)
    assert "64 seq/s  9 s left" in capsys.readouterr().out


@pytest.mark.parametrize("ending, steps", [
    ('{"kind": "train", "st', [10, 20]),
    (json.dumps({"kind": "train", "step": 11}), [10, 11, 20])])
def test_a_line_without_an_end_spoils_no_other(tmp_path, ending, steps):
    report(tmp_path, 0, (10,))
    with open(tmp_path / "metrics.jsonl", "a", encoding="utf-8") as file:
        file.write(ending)
    report(tmp_path, 15, (20,))
    assert steps_of(tmp_path, "train") == steps


@pytest.mark.parametrize("line", [b"\xff{}", b"[1]", b'{"step": 3}', b"{"])
def test_a_damaged_line_is_removed_or_named(tmp_path, capsys, line):
    report(tmp_path, 0, (10,))
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(line + b"\n" + path.read_bytes())
    with pytest.raises(InputError, match=f"{path}, line 1 is damaged"):
        read_metrics(tmp_path, "train")
    report(tmp_path, 15, (20,))
    assert f"warning: {path}, line 1 is damaged" in capsys.readouterr().out
    assert steps_of(tmp_path, "train") == [10, 20]


def test_curves_that_cannot_be_read(tmp_path):
    (tmp_path / "metrics.jsonl").mkdir()
    with pytest.raises(InputError, match="metrics.jsonl can't be read"):
        report(tmp_path, 0, ())
    with pytest.raises(InputError, match="holds no metrics.jsonl"):
        read_metrics(tmp_path, "train")


def test_workers_that_write_no_files_report_to_the_console(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    report(None, 0, (10,)).evaluate(10, METRICS)
    assert not list(tmp_path.iterdir()) and "step 10/100" in capsys.readouterr().out


@pytest.fixture(name="progress")
def fixture_progress(monkeypatch):
    """function(is_terminal, looks): what is written to a file or a terminal at (step, seconds)."""
    def watch(is_terminal, looks, step=0):
        monkeypatch.setenv("TERM", "xterm")
        output, now = io.StringIO(), [step, 0.0]
        output.isatty = lambda: is_terminal
        shown = Progress(lambda: now[0], 1000, output, lambda: now[1])
        with shown:
            for now[:] in looks:
                shown.look()
        return output.getvalue()
    return watch


LOOKS = [[10, 2.0], [11, 12.5], [12, 13.0], [31, 17.5], [61, 22.5]]


def test_lines_in_a_file(progress):
    assert progress(False, LOOKS, 10).splitlines() == [
        "compiling the training step",
        "compiled, and the first step is done, after 12 s",
        "step 31/1,000, 4 steps per second, about 4 min 2 s left"]


def test_the_line_on_a_terminal_is_gone_at_the_end(progress):
    said = progress(True, LOOKS, 10)
    assert "\r\x1b[Kstep 61/1,000, 5 steps per second, about 3 min 7 s left" in said
    assert said.endswith("\r\x1b[K") and said.count("\n") == 2


def test_nothing_is_said_of_steps_that_were_not_taken(progress):
    assert progress(False, [[3, 60.0]], 3) == "compiling the training step\n"
