"""Measures the time that batches of similar length save against padding.

One model is fine-tuned twice, from the same weights with the same settings: in batches of similar
length, and with every example padded to --max_seq_length. The command prints the examples per CPU
second of training and of prediction, without start-up and tracing, and the scores of both.

Example:
    bert-benchmark padding --task=MRPC --data_dir=glue/MRPC --init_checkpoint=minilm \\
        --max_seq_length=128 --num_train_epochs=2 --output_dir=/tmp/padding
"""

import dataclasses
import os
import time

from bert_tf import flags, training
from bert_tf.errors import InputError
from bert_tf.files import write_json
from bert_tf.finetuning.model import ModelFlags
from bert_tf.finetuning.run import open_run
from bert_tf.tasks.task_flags import TaskFlags
from bert_tf.training.settings import FineTuneSettings

_WARM_UP_STEPS = 2
_KINDS = {"in batches of similar length": False, "padded to --max_seq_length": True}


def _timed(examples, work):
    """Returns (the result of `work`, the examples that it processed a CPU second)."""
    start = time.process_time()
    result = work()
    return result, examples / (time.process_time() - start)


def measure(task_flags, model_flags, settings):
    """Trains and predicts once; returns a dict of rates and scores."""
    run = open_run(
        "run_classifier", task_flags,
        dataclasses.replace(model_flags, do_train=True, do_eval=True), settings)
    member, = run.members
    examples = member.sets["train"]
    resolved = settings.resolve(member.task.defaults, examples.size)
    steps = resolved.num_train_steps - _WARM_UP_STEPS
    if steps < 1:
        raise InputError(f"--num_train_steps is {resolved.num_train_steps}; of these "
                         f"{_WARM_UP_STEPS} are not measured: give more of them, or more epochs.")
    trainer = run.tuning.make_trainer(resolved)
    run.tuning.initialize(trainer, resolved)
    feed = training.Feed(trainer, examples, (resolved.random_seed, 0, resolved.train_batch_size))
    feed.train(_WARM_UP_STEPS)
    trained, training_rate = _timed(steps * resolved.train_batch_size, lambda: feed.train(steps))
    run.tuning.measure(trainer)         # traces
    evaluated = sum(member.sets[split].size for split in member.wanted.eval_splits)
    scores, prediction_rate = _timed(evaluated, lambda: run.tuning.measure(trainer))
    return {"training": training_rate, "prediction": prediction_rate,
            "training_loss": trained["loss"],
            "scores": {name: value for name, value in scores.items() if "/" in name}}


def main(task_flags, model_flags, settings):
    """Measures both and prints how they compare."""
    found = {name: measure(task_flags, model_flags,
                           dataclasses.replace(settings, pad_to_max_length=is_padded))
             for name, is_padded in _KINDS.items()}
    for name, result in found.items():
        scores = "  ".join(f"{key} {value:.4f}" for key, value in result["scores"].items())
        print(f"{name:<26} training {result['training']:7.1f} examples a CPU second, prediction "
              f"{result['prediction']:7.1f}  {scores}")
    ours, padded = found.values()
    print(f"{'ratio':<26} training {ours['training'] / padded['training']:.2f}, prediction "
          f"{ours['prediction'] / padded['prediction']:.2f}", flush=True)
    write_json(os.path.join(settings.output_dir, "padding.json"), found)


def run():
    flags.run(main, TaskFlags, ModelFlags, FineTuneSettings)


if __name__ == "__main__":
    run()
