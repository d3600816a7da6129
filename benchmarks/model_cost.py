"""Measures the size, the speed and the score of a fine-tuned model.

The folder comes from bert-finetune, bert-distill, bert-prune or bert-quantise-model. The time is
the minimum over --repeats passes over a split, in CPU seconds an example, in this process.

Example:
    bert-benchmark model-cost --model_dir=mrpc_int8 --task=mrpc --data_dir=glue/MRPC \\
        --output_dir=/tmp/cost
"""

import dataclasses
import os

from bert_tf import flags
from bert_tf.files import make_folder, write_json
from bert_tf.flags import REQUIRED, option
from bert_tf.tasks.task_flags import TaskFlags
from run_scripts.finetuning.scoring import ScoredModel, weights_bytes


@dataclasses.dataclass
class ModelCostFlags:
    """The model, and how it is timed."""

    model_dir: str = option(REQUIRED, "The --output_dir of the command that made the model.")
    output_dir: str = option(REQUIRED, "Folder for records and metrics.json.")
    split: str = option(
        "", "The split to score on (default: the first labelled split other than train).")
    examples: int = option(0, "Number of examples of the split, from its start; 0: all.", least=0)
    batch_size: int = option(32, "Examples per batch.", least=1)
    repeats: int = option(3, "Number of timed passes over the split.", least=1)

    __post_init__ = flags.check


def main(task_flags: TaskFlags, job: ModelCostFlags) -> None:
    """Measures the model and writes metrics.json."""
    make_folder(job.output_dir, "output_dir")
    model = ScoredModel(job.model_dir, task_flags, job.output_dir, job.batch_size)
    split = model.split(job.split, job.examples)
    _, seconds = split.timed(runs=job.repeats)
    metrics = {"bytes": weights_bytes(job.model_dir), "weights": model.learner.count_params(),
               "cpu_seconds": seconds, "score": split.score(split.answer())}
    write_json(os.path.join(job.output_dir, "metrics.json"), {"metrics": metrics})
    print(f"{metrics['bytes']:,} bytes, {metrics['weights']:,} weights, {1000 * seconds:.2f} CPU "
          f"ms an example, {model.metric} {metrics['score']:.2f}", flush=True)
