"""Several fine-tuned models that answer together."""

import dataclasses
import os

from bert_tf import training
from bert_tf.errors import InputError
from run_scripts.finetuning.run import Run, open_run


def open_models(script: str, task_flags, model_flags, settings, options: dict | None = None):
    """The run of one model, or of the models of --ensemble together, which `carry_out` does; the
    arguments are those of `make_plan`.

    Raises:
        InputError: see `open_run`; or the models do not go together.
    """
    if not model_flags.ensemble:
        return open_run(script, task_flags, model_flags, settings, options)
    model_flags.check(settings)
    records = model_flags.records_dir or os.path.join(settings.output_dir, "records")
    runs: list[Run] = []
    for number, folder in enumerate(model_flags.ensemble):
        own = dataclasses.replace(model_flags, ensemble=[], init_checkpoint=folder,
                                  records_dir=os.path.join(records, str(number)))
        runs.append(open_run(script, task_flags, own, settings, dict(options or {}),
                             strategy=runs[0].tuning.strategy if runs else None))
    return Ensemble(runs)


@dataclasses.dataclass
class Ensemble:
    """Models that answer together, each with its own tokenizer and records.

    Attributes:
        runs: the `Run` of each.

    Raises:
        InputError: they are of different tasks, or write texts.
    """

    runs: list[Run]

    def __post_init__(self):
        first = self.runs[0].plan
        if first.task.kind.reads:
            raise InputError(f"--ensemble: texts have no mean; {first.model.path} writes texts.")
        for run in self.runs[1:]:
            one, other = first.task, run.plan.task
            if (one.kind, one.labels) != (other.kind, other.labels):
                raise InputError(f"--ensemble: {first.model.path} and {run.plan.model.path} are of "
                                 "different tasks, or of other labels; name models of one.")

    def carry_out(self) -> None:
        """Scores and predicts as the flags ask for, one model after the other."""
        first = self.runs[0]
        with first.tuning.sole_writer():
            answers = [run.answer_all(run.plan.model.path) for run in self.runs]
            found = {}
            for split in first.plan.predicted_splits:
                combined, predicted = first.predictions[split].combine(
                    [(run.predictions[split], one[split][0], run.sets[split])
                     for run, one in zip(self.runs, answers)])
                found[split] = combined, {}, predicted
            if first.is_chief:
                first.write(found)
        training.wait_for_workers(first.tuning.strategy)
