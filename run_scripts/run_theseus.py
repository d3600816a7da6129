"""Makes a fine-tuned model smaller by replacing its layers: BERT-of-Theseus.

Each layer of the successor replaces several layers of the predecessor, with a probability that
grows during training. It starts as a copy of one of the lowest layers. The successor learns only
from the task's labels. Once the probability is 1, the successor is trained by itself. --output_dir
gets the same files as from bert-finetune: the successor is a model like any other. Run the same
command again to resume.

Example:
    bert-distill --recipe=theseus --predecessor=/tmp/mrpc --successor_layers=6 --task=MRPC \\
        --data_dir=glue/MRPC --replacing_rate=0.3 --scheduler_linear_k=0.0006 \\
        --output_dir=/tmp/mrpc_theseus
"""

import dataclasses
import os
from typing import ClassVar

from bert_tf import flags
from bert_tf.compression.replacing import SCHEDULES, Replacing
from bert_tf.errors import InputError
from bert_tf.files import absolute
from bert_tf.finetuning.model import ModelFlags
from bert_tf.flags import only, option
from bert_tf.tasks.saved_task import SavedTask
from bert_tf.tasks.task_flags import TaskFlags, check_kept
from bert_tf.training.settings import FineTuneSettings

# The original's settings, with which the rate falls on a line from the first step on.
_DEFAULTS = {"optimizer": "huggingface_adamw", "weight_decay": 0.0, "warmup_proportion": 0.0,
             "num_train_epochs": 15.0, "train_batch_size": 32, "learning_rate": 2e-5}


@dataclasses.dataclass
class TheseusFlags:
    """Replacement of layers."""

    predecessor: str = option(flags.REQUIRED, "Folder of a fine-tuned model.")
    successor_layers: int = option(
        0, "Number of layers of the successor, a divisor of the predecessor's; 0: half of them.")
    scheduler_type: str = option(
        Replacing.scheduler_type, "How the probability of replacing a layer grows. linear: by "
        "--scheduler_linear_k per step, up to 1. constant: it is --replacing_rate until "
        "--steps_for_replacing, then 1. none: it does not change.", choices=SCHEDULES)
    replacing_rate: float = option(
        Replacing.replacing_rate, "Probability at the first step.", above=0, most=1)
    scheduler_linear_k: float = only("scheduler_type", "linear")(
        Replacing.scheduler_linear_k, "With --scheduler_type=linear, growth of the probability "
        "per step.", least=0)
    steps_for_replacing: int = only("scheduler_type", "constant")(
        Replacing.steps_for_replacing, "With --scheduler_type=constant, number of steps before "
        "the probability is 1; 0: it is 1 from the second step on, as in the original.", least=0)
    clip_all_gradients: bool = option(
        False, "Clip by the norm of all gradients, including the gradients of frozen weights, as "
        "the original does. This needs more memory.")
    do_eval: bool = option(True, "Score the successor, on the files that have labels.")
    do_predict: bool = option(False, "Predict the test files.")
    recipe: str = option(
        "theseus", "The way of distillation; other ways have other flags.", choices=("theseus",))

    @property
    def replacing(self) -> Replacing:
        """The probability at each step."""
        flags.check(self)
        return Replacing(*(getattr(self, field.name) for field in dataclasses.fields(Replacing)))


@dataclasses.dataclass
class Replacement:
    """Training of a run's successor; see `open_run`."""

    flags: TheseusFlags
    replacing: Replacing
    note: ClassVar[str] = ""

    def records(self, plan, folder: str):
        """The records of the task."""
        return plan.task.kind.records(plan.splits.sources["train"], *plan.of_input, folder)

    def goal(self, goal, plan):
        """Returns the `FineTuning` of the successor, made from a single model's."""
        replacing, clips_all = self.replacing, self.flags.clip_all_gradients

        def learner(network, heads):
            from bert_tf.compression import theseus

            return theseus.Theseus(network, heads, replacing=replacing, clips_all=clips_all,
                                   predecessor=theseus.read_predecessor(
                                       self.flags.predecessor, network.dtype_policy.name))

        return dataclasses.replace(goal, learner=learner, options={
            **goal.options, "predecessor": absolute(self.flags.predecessor),
            "clip_all_gradients": clips_all, **dataclasses.asdict(replacing)})


def main(job: TheseusFlags, task_flags: TaskFlags, settings: FineTuneSettings) -> None:
    """Checks everything, then trains, scores and predicts."""
    teaching = Replacement(job, job.replacing)
    saved = SavedTask.require(job.predecessor, "predecessor")
    if saved.task.kind.name == "span":
        raise InputError(f"--predecessor: {job.predecessor} is a model for SQuAD, whose layers "
                         "--recipe=theseus doesn't replace; give another --recipe.")
    if task_flags.long_text:
        raise InputError("--long_text is not for successors, which read texts like the "
                         "predecessor; leave the flag out.")
    check_kept(task_flags, saved.options)
    from bert_tf import checkpoints
    from bert_tf.compression import theseus
    from bert_tf.finetuning.one_task import as_trained, check_has_training_set
    from bert_tf.finetuning.run import open_run
    from bert_tf.opening import check_apart, finetuned_file
    from bert_tf.training import adversarial
    from run_scripts.finetune import carry_out
    from run_scripts.finetuning import alone

    check_apart("predecessor", job.predecessor, settings.output_dir)
    adversarial.check_draws(settings, theseus.Theseus)
    layers = checkpoints.read_config(finetuned_file(job.predecessor)[0]).depth
    depth = job.successor_layers or layers // 2
    theseus.check_layers(layers, depth)
    task = task_flags.read_task(saved.task.kind.name)   # checked before the successor is written
    check_has_training_set(task)
    as_trained(task, saved, job.predecessor, task_flags.names_kind, "predecessor")
    with alone(settings):
        start = theseus.open_successor(job.predecessor, depth,
                                       os.path.join(settings.output_dir, "successor"))
        model = ModelFlags(do_train=True, do_eval=job.do_eval, do_predict=job.do_predict,
                           init_checkpoint=start, keep_head=True,
                           max_seq_length=saved.max_seq_length)
        carry_out(open_run(task_flags, model, settings, teaching=teaching), job)


def run() -> None:
    flags.run(main, TheseusFlags, TaskFlags, FineTuneSettings,
              defaults=lambda typed: ("arXiv:2002.02925", _DEFAULTS))


if __name__ == "__main__":
    run()
