"""Times a fine-tuned model in TensorFlow, ONNX Runtime, OpenVINO and LiteRT.

    bert-benchmark runtimes --init_checkpoint=mrpc --task=mrpc --data_dir=glue/MRPC \\
        --output_dir=runtimes

Each runtime answers the same examples, one at a time, all padded to one length, with one thread.
With --batch_size=32 they come in batches of similar length, which are padded for LiteRT alone. The
table has the bytes of the file, the CPU seconds an example (the least of --repeats), and the score.
Files and results.json stay in --output_dir, so the command resumes. In 8 bits, weights are rounded
when the file is written, and inputs while it runs. A runtime that is not installed is left out.
"""

import contextlib
import dataclasses
import functools
import os
import time
from collections.abc import Callable

import numpy as np

from bert_tf.data.batches.bucketing import sorted_batches
from bert_tf.errors import InputError
from bert_tf.files import digest
from bert_tf.flags import REQUIRED, check, option
from bert_tf.tasks.task_flags import TaskFlags
from run_scripts.finetuning.scoring import ScoredModel, ScoredSplit, weights_files
from run_scripts.kept_results import open_results

_RUNTIMES = ("tensorflow", "onnx", "onnx_int8", "openvino", "lite", "lite_int8")


@dataclasses.dataclass(kw_only=True)
class RuntimesFlags:
    """The model, and what is timed."""

    init_checkpoint: str = option(REQUIRED, "The --output_dir of a fine-tuning command.")
    output_dir: str = option(REQUIRED, "The folder to write into.")
    runtimes: list[str] = option([*_RUNTIMES], "Runtimes to time.", choices=_RUNTIMES)
    batch_size: int = option(1, "Examples a batch; with more than 1, batches are of similar length "
                              "and all are timed.", least=1)
    examples: int = option(0, "Number of examples of the first dev split; 0: all.", least=0)
    repeats: int = option(3, "Number of times that the first 32 examples are timed.", least=1)


def _open_tensorflow(job, model, length):
    """The file of the model, and the function that answers features."""
    import tensorflow as tf

    from bert_tf import export
    from bert_tf.checkpoints import names
    from bert_tf.opening import finetuned_file
    module = export.IdsModel(model, length)
    reads = model.encoder.reads
    path = names.resolve(finetuned_file(job.init_checkpoint)[0])[1]
    return path, lambda features: {name: value.numpy() for name, value in module.function(
        *(tf.constant(features[name], tf.int32) for name in reads)).items()}


def _write_onnx(job, model, length, int8=False):
    """Writes the file; returns its path, and the function that gives it features."""
    from bert_tf import export
    path = os.path.join(job.output_dir, "int8.onnx" if int8 else "model.onnx")
    with export.quiet():
        export.save_onnx(export.IdsModel(model, length), path, int8=int8)
    ours = {export.LIBRARY_INPUTS.get(name, name): name for name in model.encoder.reads}
    return path, lambda reads, features: {
        name: features[ours[name]].astype(np.int64) for name in reads}


def _open_onnx(job, model, length, int8=False):
    import onnxruntime
    path, inputs = _write_onnx(job, model, length, int8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    reads = [taken.name for taken in session.get_inputs()]
    return path, lambda features: dict(zip(names, session.run(None, inputs(reads, features))))


def _open_openvino(job, model, length):
    import openvino
    path, inputs = _write_onnx(job, model, length)
    compiled = openvino.Core().compile_model(path, "CPU", {
        "INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32"})
    request, reads = compiled.create_infer_request(), [one.any_name for one in compiled.inputs]
    return path, lambda features: {     # an output may have several names
        name: value for output, value in request.infer(inputs(reads, features)).items()
        for name in output.names}


def _open_lite(job, model, length, int8=False):
    import tensorflow as tf

    from bert_tf import export
    path = os.path.join(job.output_dir, "int8.tflite" if int8 else "model.tflite")
    with export.quiet():
        export.save_lite(export.IdsModel(model, length), path, int8=int8)
        runner = tf.lite.Interpreter(path, num_threads=1).get_signature_runner()
    reads = list(runner.get_input_details())
    return path, lambda features: runner(**{
        name: features[name].astype(np.int32) for name in reads})


_OPEN: dict[str, Callable] = {
    "tensorflow": _open_tensorflow, "onnx": _open_onnx, "lite": _open_lite,
    "openvino": _open_openvino,
    "onnx_int8": lambda *given: _open_onnx(*given, int8=True),
    "lite_int8": lambda *given: _open_lite(*given, int8=True)}


def _measure(split: ScoredSplit, answer: Callable, batches: list[np.ndarray], length: int,
             repeats: int) -> tuple[float, float]:
    """The least CPU seconds an example, and the score of all. `batches` are rows, int [B]; single
    ones are timed for the first 32. `length`: S; 0: as the longest of a batch."""
    records = [split.batch(rows, length) for rows in batches]
    answer(records[0])
    timed = min(32, len(records)) if len(batches[0]) == 1 else len(records)
    size, seconds = sum(map(len, batches[:timed])), []
    for _ in range(repeats):
        start = time.process_time()
        for features in records[:timed]:
            answer(features)
        seconds.append((time.process_time() - start) / size)
    answers, order = [answer(features) for features in records], np.concatenate(batches).argsort()
    merged = {name: np.concatenate([one[name] for one in answers])[order] for name in answers[0]}
    decoded = split.predictions.decode(split.predictions.join(merged), split.examples)
    return min(seconds) * (split.records / split.size), split.score(decoded)


def main(task_flags: TaskFlags, job: RuntimesFlags) -> None:
    """Times all runtimes and prints a table."""
    check(job)
    results = open_results(job, ("runtimes",), task_flags, weights=digest(
        *weights_files(job.init_checkpoint, "init_checkpoint")))
    import tensorflow as tf
    with contextlib.suppress(RuntimeError):     # it runs already, with the threads that it has
        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(1)
    model = ScoredModel(job.init_checkpoint, task_flags, job.output_dir, flag="init_checkpoint")
    split = model.split(examples=job.examples)
    batches = list(np.arange(split.records)[:, None])
    if job.batch_size > 1:
        batches = sorted_batches(split.examples.lengths, job.batch_size)

    def measure(name):
        length = model.max_seq_length if job.batch_size == 1 or "lite" in name else None
        file, answer = _OPEN[name](job, model.learner, length)
        seconds, score = _measure(split, answer, batches, length or 0, job.repeats)
        return {"bytes": os.path.getsize(file), "seconds": seconds, "score": score}

    rows = {}
    for name in job.runtimes:
        try:
            rows[name] = results.get("rows", name, measure=functools.partial(measure, name))
        except (ImportError, InputError) as error:
            print(f"{name} is left out: {error}", flush=True)
    print(f"{'runtime':12}{'bytes':>14}{'CPU s an example':>18}{model.metric:>12}")
    for name, row in rows.items():
        print(f"{name:12}{row['bytes']:>14,}{row['seconds']:>18.4f}{row['score']:>12.2f}",
              flush=True)
